// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
#include "memory/mapping.hpp"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <utility>

#include <catch2/catch.hpp>

#include "core/fd.hpp"

using namespace smc;
using memory::Mapping;
using memory::MappingParams;

namespace {

Fd make_file(std::uint64_t length)
{
    Fd fd(::memfd_create("test", MFD_CLOEXEC));
    REQUIRE(::ftruncate(fd.get(), static_cast<off_t>(length)) == 0);
    return fd;
}

// Whether reading the byte faults, found out by a child.
bool faults(const std::byte* place)
{
    const pid_t child = ::fork();
    if (child == 0) {
        ::signal(SIGSEGV, SIG_DFL); // not a sanitizer's
        const auto value = *static_cast<const volatile std::byte*>(place);
        ::_exit(value == std::byte{0xff} ? 2 : 0);
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV;
}

} // namespace

TEST_CASE("a mapping shows the bytes of the file from any offset", "[mapping]")
{
    const auto fd = make_file(20000);
    const char text[] = "contents";
    REQUIRE(::pwrite(fd.get(), text, sizeof text, 5001) == sizeof text);
    MappingParams params;
    params.fd = fd.get();
    params.offset_bytes = 5001;
    params.length_bytes = 9000;
    params.writable = true;
    auto mapping = Mapping::create(params);
    REQUIRE(mapping);
    CHECK(mapping->size() == 9000);
    CHECK(std::memcmp(mapping->data(), text, sizeof text) == 0);
    std::memcpy(mapping->data() + 8999, "z", 1);
    char last = 0;
    REQUIRE(::pread(fd.get(), &last, 1, 5001 + 8999) == 1);
    CHECK(last == 'z');
}

TEST_CASE("an access beyond either end of a mapping faults", "[mapping]")
{
    const auto fd = make_file(8192);
    MappingParams params;
    params.fd = fd.get();
    params.length_bytes = 8192;
    params.writable = GENERATE(true, false);
    auto mapping = Mapping::create(params);
    REQUIRE(mapping);
    CHECK_FALSE(faults(mapping->data()));
    CHECK_FALSE(faults(mapping->data() + 8191));
    CHECK(faults(mapping->data() - 1));
    CHECK(faults(mapping->data() + 8192));
    // Guards are more than a page.
    CHECK(faults(mapping->data() - (1 << 20)));
    CHECK(faults(mapping->data() + 8192 + (1 << 20)));
    // The owner moves, the memory stays.
    const auto* place = mapping->data();
    const Mapping moved = std::move(*mapping);
    CHECK(moved.data() == place);
    CHECK_FALSE(faults(place));
}

TEST_CASE("a mapping that cannot be made is an error", "[mapping]")
{
    MappingParams params;
    params.fd = -1;
    params.length_bytes = 4096;
    const auto result = Mapping::create(params);
    REQUIRE_FALSE(result);
    CHECK(result.error().code == EBADF);
}
