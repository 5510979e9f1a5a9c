// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// Mapping, ranges and copying on a file of the host: what the library does itself. What the file system
// promises is tested in guests, on regions.
#include "internal.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

using smc::Fd;
using smc::abi::map_region;
using smc::abi::page_bytes;
using smc::abi::range_fits;
using smc::abi::read_opts;

namespace {

struct Detacher {
    void operator()(smc_region* region) const { smc_detach(region); }
};
using Region = std::unique_ptr<smc_region, Detacher>;

Fd file_of(uint64_t bytes)
{
    Fd fd(memfd_create("region_test", MFD_CLOEXEC));
    REQUIRE(fd);
    REQUIRE(ftruncate(fd.get(), static_cast<off_t>(bytes)) == 0);
    return fd;
}

smc_attach_opts opts_of(uint64_t offset = 0, uint64_t length = 0, uint32_t flags = 0)
{
    smc_attach_opts opts{};
    opts.size = sizeof(opts);
    opts.offset = offset;
    opts.length = length;
    opts.flags = flags;
    return opts;
}

Region mapped(Fd fd, const smc_attach_opts& opts)
{
    smc_region* region = nullptr;
    int error = map_region(std::move(fd), opts, &region);
    REQUIRE(error == 0);
    return Region(region);
}

char* bytes_of(const Region& region)
{
    return static_cast<char*>(smc_addr(region.get()));
}

} // namespace

TEST_CASE("ranges are checked without overflow", "[region]")
{
    CHECK(range_fits(0, 0, 0));
    CHECK(range_fits(10, 0, 10));
    CHECK(range_fits(3, 7, 10));
    CHECK_FALSE(range_fits(3, 8, 10));
    CHECK_FALSE(range_fits(11, 0, 10));
    CHECK_FALSE(range_fits(UINT64_MAX, 2, 10));
    CHECK_FALSE(range_fits(2, UINT64_MAX, 10));
    CHECK(range_fits(0, UINT64_MAX, UINT64_MAX));
}

TEST_CASE("options: defaults, bounds, and structs of other versions", "[region]")
{
    smc_attach_opts out{};
    CHECK(read_opts(nullptr, out) == 0);
    CHECK(out.timeout_ms == SMC_TIMEOUT_MS_DEFAULT);

    smc_attach_opts opts = opts_of();
    opts.timeout_ms = SMC_TIMEOUT_MS_MAX;
    CHECK(read_opts(&opts, out) == 0);
    opts.timeout_ms++;
    CHECK(read_opts(&opts, out) == -EINVAL);
    opts = opts_of(0, 0, 0x80000000U);
    CHECK(read_opts(&opts, out) == -EINVAL);
    opts = opts_of(1);
    CHECK(read_opts(&opts, out) == -EINVAL);
    opts = opts_of();
    opts.size = sizeof(opts) - 1;
    CHECK(read_opts(&opts, out) == -EINVAL);
    opts.size = 0;
    CHECK(read_opts(&opts, out) == -EINVAL);

    // A caller that was compiled with a later header, and does not use what is new there, works.
    struct Later {
        smc_attach_opts known;
        uint64_t added;
    } later{opts_of(), 0};
    later.known.size = sizeof(later);
    CHECK(read_opts(&later.known, out) == 0);
    later.added = 1;
    CHECK(read_opts(&later.known, out) == -E2BIG);
}

TEST_CASE("the size is exact, not rounded to pages", "[region]")
{
    Region region = mapped(file_of(2 * page_bytes() + 123), opts_of());
    CHECK(smc_size(region.get()) == 2 * page_bytes() + 123);
    CHECK(reinterpret_cast<uintptr_t>(smc_addr(region.get())) % page_bytes() == 0);
}

TEST_CASE("a window maps its part, and its offsets begin at 0", "[region]")
{
    Fd fd = file_of(4 * page_bytes());
    const char mark = 'm';
    REQUIRE(pwrite(fd.get(), &mark, 1, static_cast<off_t>(2 * page_bytes() + 5)) == 1);
    Fd keep(dup(fd.get()));
    Region region = mapped(std::move(fd), opts_of(2 * page_bytes(), page_bytes()));
    CHECK(smc_size(region.get()) == page_bytes());
    CHECK(bytes_of(region)[5] == mark);

    char loaded = 0;
    CHECK(smc_load(region.get(), 5, &loaded, 1) == 0);
    CHECK(loaded == mark);
    const char stored = 's';
    CHECK(smc_store(region.get(), 7, &stored, 1) == 0);
    CHECK(bytes_of(region)[7] == stored);
    char in_file = 0;
    REQUIRE(pread(keep.get(), &in_file, 1, static_cast<off_t>(2 * page_bytes() + 7)) == 1);
    CHECK(in_file == stored);
}

TEST_CASE("what does not fit into the file is not mapped", "[region]")
{
    smc_region* region = nullptr;
    CHECK(map_region(file_of(page_bytes()), opts_of(page_bytes()), &region) == -ERANGE);
    CHECK(map_region(file_of(page_bytes()), opts_of(0, page_bytes() + 1), &region) == -ERANGE);
    CHECK(map_region(file_of(page_bytes()), opts_of(0, UINT64_MAX), &region) == -ERANGE);
    CHECK(map_region(file_of(0), opts_of(), &region) == -ERANGE);
    CHECK(region == nullptr);
}

TEST_CASE("ranges past the end do nothing and say so", "[region]")
{
    Region region = mapped(file_of(100), opts_of());
    char buf[200] = {};
    std::memset(buf, 'x', sizeof(buf));
    CHECK(smc_store(region.get(), 0, buf, 101) == -ENOSPC);
    CHECK(smc_store(region.get(), 100, buf, 1) == -ENOSPC);
    CHECK(smc_store(region.get(), UINT64_MAX, buf, 1) == -ENOSPC);
    CHECK(bytes_of(region)[0] == 0);
    CHECK(smc_load(region.get(), 1, buf, 100) == -ERANGE);
    CHECK(buf[0] == 'x');
    CHECK(smc_barrier_range(region.get(), 50, 51) == -ERANGE);
    CHECK(smc_acquire(region.get(), 101, 0) == -ERANGE);

    CHECK(smc_store(region.get(), 100, buf, 0) == 0);
    CHECK(smc_load(region.get(), 100, nullptr, 0) == 0);
    CHECK(smc_barrier_range(region.get(), 100, 0) == 0);
    CHECK(smc_acquire(region.get(), 100, 0) == 0);
    CHECK(smc_store(region.get(), 0, nullptr, 1) == -EINVAL);
    CHECK(smc_load(region.get(), 0, nullptr, 1) == -EINVAL);
}

TEST_CASE("barriers take any range, aligned or not", "[region]")
{
    Region region = mapped(file_of(3 * page_bytes() + 1), opts_of());
    bytes_of(region)[0] = 1;
    CHECK(smc_barrier(region.get()) == 0);
    CHECK(smc_barrier_range(region.get(), page_bytes() - 1, 2) == 0);
    CHECK(smc_barrier_range(region.get(), 3 * page_bytes(), 1) == 0);
    CHECK(smc_acquire(region.get(), 0, 0) == 0);
    CHECK(bytes_of(region)[0] == 1);
}

TEST_CASE("a barrier of a range that was unmapped fails instead of skipping it", "[region]")
{
    Region region = mapped(file_of(3 * page_bytes()), opts_of());
    REQUIRE(munmap(bytes_of(region) + page_bytes(), page_bytes()) == 0);
    CHECK(smc_barrier(region.get()) == -ENOMEM);
    CHECK(smc_barrier_range(region.get(), 0, page_bytes()) == 0);
}

TEST_CASE("copies that the system cuts short or interrupts are whole", "[region]")
{
    // 2 GiB minus a page is the most that one call moves; here it is 3 bytes.
    std::vector<std::pair<size_t, off_t>> calls;
    int interrupts = 2;
    auto move = [&](size_t done, size_t left, off_t at) -> ssize_t {
        if (interrupts-- > 0) {
            errno = EINTR;
            return -1;
        }
        calls.emplace_back(done, at);
        return static_cast<ssize_t>(std::min<size_t>(left, 3));
    };
    const uint64_t at = uint64_t{1} << 33;
    CHECK(smc::abi::move_all(at, 8, move) == 0);
    const auto base = static_cast<off_t>(at);
    CHECK(calls == std::vector<std::pair<size_t, off_t>>{{0, base}, {3, base + 3}, {6, base + 6}});

    auto fails = [](size_t, size_t, off_t) -> ssize_t {
        errno = EIO;
        return -1;
    };
    CHECK(smc::abi::move_all(0, 8, fails) == -EIO);
}

TEST_CASE("a file that shrank under the handle is an error, not a loop", "[region]")
{
    Fd fd = file_of(2 * page_bytes());
    Fd keep(dup(fd.get()));
    Region region = mapped(std::move(fd), opts_of());
    REQUIRE(ftruncate(keep.get(), 0) == 0);
    char buf[16];
    CHECK(smc_load(region.get(), 0, buf, sizeof(buf)) == -EIO);
}

TEST_CASE("a read-only handle refuses to store", "[region]")
{
    char path[] = "/tmp/smc-test-XXXXXX";
    Fd writable(mkstemp(path));
    REQUIRE(writable);
    REQUIRE(ftruncate(writable.get(), 100) == 0);
    Fd readable(open(path, O_RDONLY | O_CLOEXEC));
    unlink(path);
    Region region = mapped(std::move(readable), opts_of(0, 0, SMC_ATTACH_READONLY));
    char byte = 1;
    CHECK(smc_store(region.get(), 0, &byte, 1) == -EBADF);
    CHECK(smc_load(region.get(), 0, &byte, 1) == 0);
    CHECK(smc_barrier(region.get()) == 0);
}

TEST_CASE("a buffer that is not there is EFAULT, not a crash", "[region]")
{
    Region region = mapped(file_of(4096), opts_of());
    CHECK(smc_store(region.get(), 0, reinterpret_cast<const void*>(8), 16) == -EFAULT);
    CHECK(smc_load(region.get(), 0, reinterpret_cast<void*>(8), 16) == -EFAULT);
}

TEST_CASE("attach takes only regions", "[region]")
{
    smc_region* region = nullptr;
    CHECK(smc_attach("/tmp", nullptr, &region) == -EISDIR);
    CHECK(smc_attach("/proc/self/exe", nullptr, &region) != 0);
    smc_attach_opts opts = opts_of(0, 0, SMC_ATTACH_READONLY);
    CHECK(smc_attach("/proc/self/exe", &opts, &region) == -ENODEV);
    CHECK(smc_attach("/smc-test-nothing-here", nullptr, &region) == -ENOENT);
    CHECK(smc_attach("relative/path", nullptr, &region) == -EINVAL);
    CHECK(region == nullptr);
}
