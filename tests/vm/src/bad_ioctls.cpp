// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// bad-ioctls FILE: what no program should ask of a region's file, and how each call must end: with the
// errno that <linux/smcfs.h> says, and with the region as it was.
//
// FILE is a region of at least three pages whose size is no multiple of 4. Nobody else changes it.
//
// Failure: exit 1, after all calls were made, with a line for each that ended otherwise.
#include "common.hpp"

#include <linux/smcfs.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>

using namespace smc::test;

namespace {

constexpr std::uint64_t kWordOffset = 8; // on the first page, which the good calls may change
constexpr std::uint64_t kBeyond = std::uint64_t{1} << 63;
constexpr std::uint64_t kMax = std::numeric_limits<std::uint64_t>::max();
constexpr std::uint32_t kMax32 = std::numeric_limits<std::uint32_t>::max();
constexpr std::uintptr_t kKernelAddress = 0xffff888000000000;

unsigned calls = 0;
unsigned wrong = 0;

void expect(const std::string& what, int result, int wanted)
{
    const int got = result < 0 ? errno : 0;
    calls++;
    if (got == wanted)
        return;
    wrong++;
    std::printf("%s: %d (%s) instead of %d (%s)\n", what.c_str(), got, strerrorname_np(got), wanted,
                strerrorname_np(wanted));
}

// One of the three calls: its number, and arguments that are right.
template <typename Argument>
struct Kind {
    const char* name;
    unsigned long request;
    Argument good;
    int good_result;
};

const Kind<smcfs_ioc_publish> kPublish{
    "publish", SMCFS_IOC_PUBLISH, {.flag_offset = kWordOffset, .value = 1, .size = 8}, 0};
const Kind<smcfs_ioc_atomic> kAtomic{
    "atomic",
    SMCFS_IOC_ATOMIC,
    {.offset = kWordOffset, .operand = 1, .op = SMCFS_ATOMIC_FETCH_ADD},
    0};
// One look at a word that is not like that.
const Kind<smcfs_ioc_wait> kWait{
    "wait",
    SMCFS_IOC_WAIT,
    {.offset = kWordOffset, .value = kMax, .mask = kMax, .size = 8, .cond = SMCFS_WAIT_EQ},
    ETIMEDOUT};

struct Region {
    std::string path;
    std::uint64_t size = 0;
    Fd both;
    Fd reader;
    Fd writer;
};

Fd open_or_die(const std::string& path, int flags)
{
    Fd fd{open(path.c_str(), flags | O_CLOEXEC)};
    if (!fd)
        die(path, errno);
    return fd;
}

template <typename Argument>
class Tries {
public:
    Tries(const Kind<Argument>& kind, const Region& region) : kind_(kind), region_(region) {}

    // As the good call, but for what `change` does to it.
    void with(const char* what, int wanted, const std::function<void(Argument&)>& change) const
    {
        Argument argument = kind_.good;
        change(argument);
        call(what, region_.both.get(), address(&argument), wanted);
    }
    void good(const char* what, const Fd& fd) const { on(what, fd, kind_.good_result); }
    void on(const char* what, const Fd& fd, int wanted) const
    {
        Argument argument = kind_.good;
        call(what, fd.get(), address(&argument), wanted);
    }
    void at(const char* what, std::uintptr_t where, int wanted) const
    {
        call(what, region_.both.get(), where, wanted);
    }

    void words(__u64 Argument::*offset) const
    {
        const std::uint64_t end = region_.size;
        for (const std::uint64_t at :
             {kWordOffset + 1, kWordOffset + 2, kWordOffset + 4, end, kMax, kBeyond + 1})
            with("an offset that is not aligned", EINVAL, [&](Argument& a) { a.*offset = at; });
        for (const std::uint64_t at : {end / 8 * 8, page_up(end), page_up(end) + kPageBytes,
                                       kBeyond, kMax - 7, kBeyond >> 20})
            with("a word beyond the end", ERANGE, [&](Argument& a) { a.*offset = at; });
        with("the last word", kind_.good_result, [&](Argument& a) { a.*offset = end / 8 * 8 - 8; });
    }
    void sizes(__u64 Argument::*offset, __u32 Argument::*size) const
    {
        for (const std::uint32_t bad :
             {0U, 1U, 2U, 3U, 5U, 7U, 9U, 12U, 16U, 4096U, 0x80000008U, kMax32})
            with("a size of a word", EINVAL, [&](Argument& a) { a.*size = bad; });
        for (const std::uint64_t odd : {1, 2, 3, 6})
            with("four bytes that are not aligned", EINVAL, [&](Argument& a) {
                four_bytes(a);
                a.*offset = odd;
            });
        with("four bytes across the end", ERANGE, [&](Argument& a) {
            four_bytes(a);
            a.*offset = region_.size / 4 * 4;
        });
        with("four bytes", kind_.good_result, [&](Argument& a) { four_bytes(a); });
    }
    void flags() const
    {
        for (const std::uint32_t flag : {1U, 2U, 0x80000000U, kMax32})
            with("unknown flags", EINVAL, [&](Argument& a) { a.flags = flag; });
    }

    // Files and arguments of all kinds.
    void files(int reader, int writer) const
    {
        on("a file open for reading", region_.reader, reader);
        on("a file open for writing", region_.writer, writer);
        on("a directory of the mount", open_or_die(parent(), O_RDONLY | O_DIRECTORY), ENOTTY);
        on("a device", open_or_die("/dev/null", O_RDWR), ENOTTY);
        on("a path", open_or_die(region_.path, O_PATH), EBADF);
        on("no file", Fd{}, EBADF);
    }
    void pointers() const
    {
        at("a null pointer", 0, EFAULT);
        at("an address of the kernel", kKernelAddress, EFAULT);
        at("the highest address", kMax, EFAULT);
        auto* pages = static_cast<std::uint8_t*>(mmap(
            nullptr, 2 * kPageBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
        if (pages == MAP_FAILED)
            die("mmap", errno);
        munmap(pages + kPageBytes, kPageBytes);
        at("memory that is not mapped", address(pages + kPageBytes), EFAULT);
        std::uint8_t* across = pages + kPageBytes - sizeof(Argument) + 8;
        std::memcpy(across, &kind_.good, sizeof(Argument) - 8);
        at("an argument that is mapped in part", address(across), EFAULT);
        // Any address will do, if it is readable, and writable for what has an answer.
        std::memcpy(pages + 1, &kind_.good, sizeof(Argument));
        at("an argument at an odd address", address(pages + 1), kind_.good_result);
        mprotect(pages, kPageBytes, PROT_READ);
        const bool answers = (_IOC_DIR(kind_.request) & _IOC_READ) != 0;
        at("an argument that cannot be written", address(pages + 1),
           answers ? EFAULT : kind_.good_result);
        munmap(pages, kPageBytes);
        in_the_region();
    }

private:
    static void four_bytes(Argument& argument)
    {
        if constexpr (requires { argument.size; })
            argument.size = 4;
        if constexpr (requires { argument.mask; })
            argument.value = argument.mask = kMax32;
    }
    std::string parent() const { return region_.path.substr(0, region_.path.rfind('/')); }

    // The argument itself on the page of its word.
    void in_the_region() const
    {
        void* base =
            mmap(nullptr, kPageBytes, PROT_READ | PROT_WRITE, MAP_SHARED, region_.both.get(), 0);
        if (base == MAP_FAILED)
            die("mmap of the region", errno);
        auto* argument = reinterpret_cast<Argument*>(static_cast<std::uint8_t*>(base) + 256);
        *argument = kind_.good;
        at("an argument on the page of its word", address(argument), kind_.good_result);
        munmap(base, kPageBytes);
    }

    static std::uintptr_t address(const void* at) { return reinterpret_cast<std::uintptr_t>(at); }
    void call(const char* what, int fd, std::uintptr_t argument, int wanted) const
    {
        expect(std::string(kind_.name) + ", " + what, ioctl(fd, kind_.request, argument), wanted);
    }

    const Kind<Argument>& kind_;
    const Region& region_;
};

void try_publish(const Region& region)
{
    using P = smcfs_ioc_publish;
    const Tries<P> tries(kPublish, region);
    const std::uint64_t size = region.size;
    tries.good("as it should be", region.both);
    tries.flags();
    tries.words(&P::flag_offset);
    tries.sizes(&P::flag_offset, &P::size);
    tries.with("a value of more than four bytes", EINVAL, [](P& p) {
        p.size = 4;
        p.value = 1ULL << 32;
    });
    struct Span {
        std::uint64_t offset, length;
    };
    for (const Span span : {Span{size + 1, 0},
                            {size, 1},
                            {0, size + 1},
                            {1, size},
                            {0, kMax},
                            {kPageBytes, kMax - kPageBytes + 1},
                            {kMax, 0},
                            {kMax, 1},
                            {kMax, kMax},
                            {kBeyond, kBeyond},
                            {kPageBytes, kBeyond},
                            {page_up(size), 0}})
        tries.with("a range beyond the end", ERANGE, [&](P& p) {
            p.offset = span.offset;
            p.length = span.length;
        });
    for (const Span span : {Span{size, 0}, {0, size}, {size - 1, 1}})
        tries.with("a range up to the end", 0, [&](P& p) {
            p.offset = span.offset;
            p.length = span.length;
        });
    tries.files(EBADF, 0);
    tries.pointers();
}

void try_atomic(const Region& region)
{
    using A = smcfs_ioc_atomic;
    const Tries<A> tries(kAtomic, region);
    tries.good("as it should be", region.both);
    tries.flags();
    tries.words(&A::offset);
    for (const std::uint32_t op : {0U, SMCFS_ATOMIC_MAX + 1U, 256U, 0x80000001U, kMax32})
        tries.with("an unknown operation", EINVAL, [&](A& a) { a.op = op; });
    tries.files(EBADF, 0);
    tries.pointers();
}

void try_wait(const Region& region)
{
    using W = smcfs_ioc_wait;
    const Tries<W> tries(kWait, region);
    tries.good("as it should be", region.both);
    tries.flags();
    tries.words(&W::offset);
    tries.sizes(&W::offset, &W::size);
    for (const std::uint32_t cond : {0U, SMCFS_WAIT_MAX + 1U, 256U, 0x80000002U, kMax32})
        tries.with("an unknown condition", EINVAL, [&](W& w) { w.cond = cond; });
    for (const std::uint32_t ms : {SMCFS_WAIT_TIMEOUT_MS_MAX + 1U, 0x80000000U, kMax32})
        tries.with("too long a time", EINVAL, [&](W& w) { w.timeout_ms = ms; });
    tries.with("an empty mask", EINVAL, [](W& w) { w.mask = 0; });
    tries.with("a mask of more than four bytes", EINVAL, [](W& w) {
        w.size = 4;
        w.value = 0;
    });
    tries.with("a value of more than four bytes", EINVAL, [](W& w) {
        w.size = 4;
        w.mask = 1;
    });
    tries.files(ETIMEDOUT, EBADF);
    tries.pointers();
}

// Numbers beside the three, and their neighbours in size and direction.
void try_unknown(const Region& region)
{
    std::uint64_t words[32]{};
    const std::vector<unsigned long> requests{_IOW(SMCFS_IOC_MAGIC, 0, smcfs_ioc_publish),
                                              _IOW(SMCFS_IOC_MAGIC, 255, smcfs_ioc_publish),
                                              _IOR(SMCFS_IOC_MAGIC, 1, smcfs_ioc_publish),
                                              _IOW(SMCFS_IOC_MAGIC, 1, std::uint64_t),
                                              _IOW(SMCFS_IOC_MAGIC, 2, smcfs_ioc_atomic),
                                              _IOWR(SMCFS_IOC_MAGIC, 2, std::uint64_t),
                                              _IOW(SMCFS_IOC_MAGIC, 3, smcfs_ioc_wait),
                                              _IOWR(SMCFS_IOC_MAGIC, 3, smcfs_ioc_atomic),
                                              _IO(SMCFS_IOC_MAGIC, 1),
                                              _IOW(SMCFS_IOC_MAGIC + 1, 1, smcfs_ioc_publish)};
    for (const unsigned long request : requests)
        expect("request " + std::to_string(request), ioctl(region.both.get(), request, words),
               ENOTTY);
}

std::vector<std::uint8_t> content(const Region& region)
{
    std::vector<std::uint8_t> bytes(region.size);
    if (int err = posix_fadvise(region.both.get(), 0, 0, POSIX_FADV_DONTNEED))
        die("acquire", err);
    if (pread(region.both.get(), bytes.data(), bytes.size(), 0) !=
        static_cast<ssize_t>(bytes.size()))
        die("pread", errno);
    return bytes;
}

// But for the first page and the last word.
void expect_unchanged(const Region& region, const std::vector<std::uint8_t>& before)
{
    const std::vector<std::uint8_t> now = content(region);
    for (std::uint64_t at = kPageBytes; at < region.size / 8 * 8 - 8; at++) {
        if (now[at] == before[at])
            continue;
        wrong++;
        std::printf("offset %llu is 0x%02x instead of 0x%02x\n",
                    static_cast<unsigned long long>(at), now[at], before[at]);
        return;
    }
}

} // namespace

int main(int argc, char** argv)
{
    if (argc != 2)
        die("usage: bad-ioctls FILE");
    Region region{.path = argv[1]};
    region.both = open_or_die(region.path, O_RDWR);
    region.reader = open_or_die(region.path, O_RDONLY);
    region.writer = open_or_die(region.path, O_WRONLY);
    struct stat st {};
    if (fstat(region.both.get(), &st) < 0)
        die("fstat", errno);
    region.size = static_cast<std::uint64_t>(st.st_size);
    if (region.size < 3 * kPageBytes || region.size % 4 == 0)
        die("the size of " + region.path + " is not one to test with");

    const std::vector<std::uint8_t> before = content(region);
    try_publish(region);
    try_atomic(region);
    try_wait(region);
    try_unknown(region);
    expect_unchanged(region, before);
    std::printf("bad-ioctls: %u calls, %u of them ended otherwise\n", calls, wrong);
    return wrong ? kRefuted : kPassed;
}
