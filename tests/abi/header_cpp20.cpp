// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// smc.hpp first and alone, in C++20: both forms of errors, moves, the empty object.
#include <smc/smc.hpp>

#include <cstdio>
#include <cstring>
#include <type_traits>

static_assert(!std::is_copy_constructible_v<smc::Region>);
static_assert(std::is_nothrow_move_constructible_v<smc::Region>);
static_assert(std::is_nothrow_move_assignable_v<smc::Region>);

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                   \
            return 1;                                                                              \
        }                                                                                          \
    } while (0)

int main()
{
    std::error_code ec;
    smc::Region region = smc::Region::attach("no region", {}, ec);
    CHECK(ec == std::errc::invalid_argument && ec.category() == smc::error_category());
    CHECK(!region && region.bytes().empty() && region.size() == 0);

    try {
        (void)smc::Region::attach("/dev/null", {.access = smc::Access::read_only});
        CHECK(!"attach of /dev/null must throw");
    } catch (const std::system_error& error) {
        CHECK(error.code() == std::errc::no_such_device);
        CHECK(std::strstr(error.what(), "smc_attach /dev/null") != nullptr);
        CHECK(std::strstr(error.what(), ::smc_strerror(error.code().value())) != nullptr);
    }

    region.barrier(ec);
    CHECK(ec == std::errc::invalid_argument);
    region.load(0, {}, ec);
    CHECK(ec == std::errc::invalid_argument);
    (void)region.status(ec);
    CHECK(ec == std::errc::invalid_argument);
    region.publish(0, 0, 0, std::uint64_t{1}, ec);
    CHECK(ec == std::errc::invalid_argument);
    CHECK(region.fetch_add(0, 1, ec) == 0 && ec == std::errc::invalid_argument);
    CHECK(region.wait(0, {}, ec) == 0 && ec == std::errc::invalid_argument);
    smc::Pool pool;
    CHECK(pool.alloc(1, ec) == 0 && ec == std::errc::invalid_argument);
    CHECK(smc::guard([] { return 7; }) == 7);
    smc::Region moved = std::move(region);
    moved.detach(); // of nothing: no error
    return 0;
}
