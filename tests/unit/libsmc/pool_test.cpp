// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// Pools, and what is checked before a word goes to the kernel: on memory of the host.
#include "internal.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <vector>

#include <catch2/catch.hpp>
#include <sys/mman.h>

namespace {

// Neither function looks at the memory itself.
std::unique_ptr<smc_region> region_of(size_t bytes)
{
    auto region = std::make_unique<smc_region>();
    region->fd = smc::Fd(memfd_create("pool_test", MFD_CLOEXEC));
    REQUIRE(region->fd);
    region->size = bytes;
    return region;
}

struct Destroyer {
    void operator()(smc_pool* pool) const { smc_pool_destroy(pool); }
};
using Pool = std::unique_ptr<smc_pool, Destroyer>;

Pool pool_of(smc_region& region, uint64_t offset = 0, uint64_t length = 0, size_t alignment = 0)
{
    smc_pool* pool = nullptr;
    REQUIRE(smc_pool_create(&region, offset, length, alignment, &pool) == 0);
    return Pool(pool);
}

uint64_t take(const Pool& pool, size_t bytes)
{
    uint64_t offset = UINT64_MAX;
    REQUIRE(smc_pool_alloc(pool.get(), bytes, &offset) == 0);
    return offset;
}

} // namespace

TEST_CASE("a pool gives out aligned pieces until none is left, and the same again", "[pool]")
{
    const auto region = region_of(10UL * 64);
    const auto pool = pool_of(*region);
    for (int round = 0; round < 2; round++) {
        std::vector<uint64_t> pieces;
        pieces.reserve(10);
        for (int i = 0; i < 10; i++)
            pieces.push_back(take(pool, 1 + i * 7));
        for (int i = 0; i < 10; i++)
            CHECK(pieces[i] == static_cast<uint64_t>(i) * 64);
        uint64_t offset = 5;
        CHECK(smc_pool_alloc(pool.get(), 1, &offset) == -ENOBUFS);
        CHECK(offset == 5);
        for (const auto piece : pieces)
            CHECK(smc_pool_free(pool.get(), piece) == 0);
    }
    CHECK(take(pool, 640) == 0); // all that was free has grown together again
}

TEST_CASE("a pool keeps to the whole units of its part", "[pool]")
{
    const auto region = region_of(1000);
    const auto pool = pool_of(*region, 65, 500); // 128..512
    CHECK(take(pool, 384) == 128);
    uint64_t offset = 0;
    CHECK(smc_pool_alloc(pool.get(), 1, &offset) == -ENOBUFS);

    smc_pool* none = nullptr;
    CHECK(smc_pool_create(region.get(), 65, 100, 0, &none) == -ENOBUFS);
    CHECK(smc_pool_create(region.get(), 1000, 0, 0, &none) == -ENOBUFS);
    CHECK(smc_pool_create(region.get(), 1001, 0, 0, &none) == -ERANGE);
    CHECK(smc_pool_create(region.get(), 1, UINT64_MAX, 0, &none) == -ERANGE);
    CHECK(smc_pool_create(nullptr, 0, 0, 0, &none) == -EINVAL);
    CHECK(none == nullptr);
}

TEST_CASE("pieces have the alignment that was asked for, in the region", "[pool]")
{
    const auto region = region_of(3UL * 4096);
    region->offset = 4096 + 1024; // of smc_addr() in the region
    const auto pool = pool_of(*region, 0, 0, 4096);
    CHECK(take(pool, 1) == 3072);
    CHECK(take(pool, 4096) == 3072 + 4096);
    uint64_t offset = 0;
    CHECK(smc_pool_alloc(pool.get(), 1, &offset) == -ENOBUFS);

    smc_pool* none = nullptr;
    for (const size_t bad : {size_t{1}, size_t{32}, size_t{96}, size_t{2} * SMC_POOL_ALIGN_MAX})
        CHECK(smc_pool_create(region.get(), 0, 0, bad, &none) == -EINVAL);
    CHECK(smc_pool_create(region.get(), 0, 0, SMC_POOL_ALIGN_MAX, &none) == -ENOBUFS);
    CHECK(none == nullptr);
}

TEST_CASE("a pool takes back what it gave out, once", "[pool]")
{
    const auto region = region_of(4096);
    const auto pool = pool_of(*region);
    const auto piece = take(pool, 100);
    CHECK(smc_pool_free(pool.get(), piece + 64) == -EINVAL);
    CHECK(smc_pool_free(pool.get(), piece) == 0);
    CHECK(smc_pool_free(pool.get(), piece) == -EINVAL);
    uint64_t offset = 0;
    CHECK(smc_pool_alloc(pool.get(), 0, &offset) == -EINVAL);
    CHECK(smc_pool_alloc(pool.get(), SIZE_MAX, &offset) == -ENOBUFS);
    CHECK(smc_pool_alloc(nullptr, 1, &offset) == -EINVAL);
}

TEST_CASE("pieces never overlap, whatever is taken and given back", "[pool]")
{
    const auto region = region_of(64UL * 1024);
    const auto pool = pool_of(*region);
    std::map<uint64_t, uint64_t> held;
    uint32_t random = 1;
    for (int step = 0; step < 20000; step++) {
        random = random * 1664525 + 1013904223;
        const uint64_t bytes = 1 + (random >> 8) % 3000;
        uint64_t at = 0;
        if (random >> 31 && smc_pool_alloc(pool.get(), bytes, &at) == 0) {
            const auto after = held.lower_bound(at);
            REQUIRE(at % 64 == 0);
            REQUIRE(at + bytes <= 64UL * 1024);
            REQUIRE((after == held.end() || after->first >= at + bytes));
            REQUIRE((after == held.begin() ||
                     std::prev(after)->first + std::prev(after)->second <= at));
            held.emplace(at, bytes);
        } else if (!held.empty()) {
            const auto piece =
                std::next(held.begin(), static_cast<std::ptrdiff_t>(random % held.size()));
            REQUIRE(smc_pool_free(pool.get(), piece->first) == 0);
            held.erase(piece);
        }
    }
    for (const auto& [at, bytes] : held)
        REQUIRE(smc_pool_free(pool.get(), at) == 0);
    CHECK(take(pool, 64UL * 1024) == 0);
}

TEST_CASE("words are checked before the kernel is asked", "[word]")
{
    const auto region = region_of(100);
    smc_region* r = region.get();
    CHECK(smc_publish(nullptr, 0, 0, 0, 0, 8) == -EINVAL);
    CHECK(smc_publish(r, 0, 0, 4, 0, 8) == -EINVAL);
    CHECK(smc_publish(r, 0, 0, 0, 0, 2) == -EINVAL);
    CHECK(smc_publish(r, 0, 0, 0, 1ULL << 32, 4) == -EINVAL);
    CHECK(smc_publish(r, 0, 101, 0, 0, 8) == -ERANGE);
    CHECK(smc_publish(r, 0, 0, 96, 0, 8) == -ERANGE);
    CHECK(smc_fetch_add(r, 4, 1, nullptr) == -EINVAL);
    CHECK(smc_compare_swap(r, 96, 1, 1, nullptr) == -ERANGE);
    // A file that is no region.
    CHECK(smc_publish(r, 0, 0, 96, 0, 4) == -EOPNOTSUPP);
    CHECK(smc_fetch_add(r, 8, 1, nullptr) == -EOPNOTSUPP);

    smc_wait_opts opts{};
    CHECK(smc_wait(r, 0, &opts, nullptr) == -EINVAL);
    opts.size = sizeof(opts);
    CHECK(smc_wait(r, 0, nullptr, nullptr) == -EINVAL);
    CHECK(smc_wait(r, 4, &opts, nullptr) == -EINVAL);
    CHECK(smc_wait(r, 96, &opts, nullptr) == -ERANGE);
    CHECK(smc_wait(r, 8, &opts, nullptr) == -EOPNOTSUPP);
    opts.until = SMC_WAIT_AT_LEAST + 1;
    CHECK(smc_wait(r, 8, &opts, nullptr) == -EINVAL);
    opts.until = 0;
    opts.timeout_ms = SMC_TIMEOUT_MS_MAX + 1;
    CHECK(smc_wait(r, 8, &opts, nullptr) == -EINVAL);
    opts.timeout_ms = 0;
    opts.reserved = 1;
    CHECK(smc_wait(r, 8, &opts, nullptr) == -EINVAL);
    opts.reserved = 0;
    // A word of 4 bytes: what it cannot hold is refused, and all of its bits count by default.
    opts.bytes = 4;
    CHECK(smc_wait(r, 96, &opts, nullptr) == -EOPNOTSUPP);
    opts.value = UINT64_MAX;
    CHECK(smc_wait(r, 96, &opts, nullptr) == -EINVAL);
    opts.value = UINT32_MAX;
    opts.mask = 1ULL << 32;
    CHECK(smc_wait(r, 96, &opts, nullptr) == -EINVAL);
    opts.mask = 0;
    opts.bytes = 2;
    CHECK(smc_wait(r, 96, &opts, nullptr) == -EINVAL);

    struct {
        smc_wait_opts known{};
        uint64_t later = 0;
    } longer;
    longer.known.size = sizeof(longer);
    CHECK(smc_wait(r, 8, &longer.known, nullptr) == -EOPNOTSUPP);
    longer.later = 1;
    CHECK(smc_wait(r, 8, &longer.known, nullptr) == -E2BIG);
}
