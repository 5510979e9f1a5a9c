// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// merge-writer: several writers of one merge region, each its own units, all in the same pages.
//
//     merge-writer FILE --part P --parts N [--memory] [--ops K] [--seed S] [--unit BYTES] [--break]
//     merge-writer FILE --check --parts N ...       FILE holds what the N plans say
//
// Who owns a unit and what each command does follow from the seed, so that the result can be known
// afterwards, with no word between the writers. A writer compares its own units with what it wrote,
// now and then after an acquire. With --memory it stands where the accelerator would: FILE is the
// memory itself, no barriers, and it looks at every other writer's watched word, which only ever
// changes between two values that differ in all bytes: a third is a store seen half-written.
//
// Failure: exit 1 with the offset and both values.
#include "common.hpp"

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <vector>

#include <fcntl.h>
#include <getopt.h>
#include <sys/mman.h>
#include <sys/stat.h>

using namespace smc::test;

namespace {

constexpr std::uint64_t kRegionBytes = 64 * kPageBytes; // few, so that all meet in each
constexpr std::uint32_t kWatched[2] = {0x3f91c5a6, 0xc06e3a59};
constexpr std::uint64_t kBarrierEvery = 24;
constexpr std::uint64_t kAcquireEvery = 40;

struct Options {
    std::string file;
    std::uint64_t part = 0;
    std::uint64_t parts = 0;
    std::uint64_t ops = 20000;
    std::uint64_t seed = 1;
    std::uint64_t unit = 64;
    bool memory = false;
    bool check = false;
    bool broken = false;
};

struct Step {
    std::uint64_t offset;
    std::uint64_t length;
    std::uint64_t value;
    bool by_write; // else through the mapping
};

class Plan {
public:
    explicit Plan(const Options& options) : o_(options) {}

    std::uint64_t owner(std::uint64_t unit) const
    {
        // The first units are watched, one of each writer, and written by nothing else.
        return unit < o_.parts ? unit : mix(o_.seed ^ mix(unit)) % o_.parts;
    }
    std::uint64_t watched(std::uint64_t part) const { return part * o_.unit; }

    Step step(std::uint64_t part, std::uint64_t number) const
    {
        Random random{mix(mix(o_.seed) + part) ^ number};
        std::uint64_t units = kRegionBytes / o_.unit;
        std::uint64_t unit = 0;
        do
            unit = o_.parts + random.below(units - o_.parts);
        while (owner(unit) != part);
        Step step{};
        step.by_write = random.one_in(8);
        step.value = random.next();
        // Words, as programs store them; by write(2) any bytes.
        std::uint64_t grain = step.by_write ? 1 : 4;
        std::uint64_t grains = o_.unit / grain;
        std::uint64_t first = random.below(grains);
        std::uint64_t count = random.one_in(3) ? 1 + random.below(grains - first) : 1;
        step.offset = unit * o_.unit + first * grain;
        step.length = count * grain;
        return step;
    }

private:
    const Options& o_;
};

void bytes_of(const Step& step, std::uint8_t* to)
{
    for (std::uint64_t i = 0; i < step.length; i++)
        to[i] = static_cast<std::uint8_t>(mix(step.value + (step.offset + i) / 4) >>
                                          ((step.offset + i) % 4 * 8));
}

// What all writers up to `ops` commands each leave.
std::vector<std::uint8_t> outcome(const Options& options)
{
    Plan plan(options);
    std::vector<std::uint8_t> bytes(kRegionBytes);
    for (std::uint64_t part = 0; part < options.parts; part++) {
        for (std::uint64_t n = 0; n < options.ops; n++) {
            Step step = plan.step(part, n);
            bytes_of(step, bytes.data() + step.offset);
        }
        std::memcpy(bytes.data() + plan.watched(part), &kWatched[(options.ops - 1) % 2], 4);
    }
    return bytes;
}

class Writer {
public:
    explicit Writer(const Options& options) : o_(options), plan_(options), mine_(kRegionBytes)
    {
        fd_ = Fd{open(o_.file.c_str(), O_RDWR | O_CLOEXEC)};
        if (!fd_)
            die(o_.file, errno);
        void* base = mmap(nullptr, kRegionBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd_.get(), 0);
        if (base == MAP_FAILED)
            die("mmap", errno);
        base_ = static_cast<std::uint8_t*>(base);
    }

    int run()
    {
        for (std::uint64_t n = 0; n < o_.ops; n++) {
            store(plan_.step(o_.part, n), n);
            word(o_.part).store(kWatched[n % 2], std::memory_order_release);
            if (o_.memory)
                look();
            else
                sync(n);
        }
        if (!o_.memory && fsync(fd_.get()) < 0)
            die("fsync", errno);
        compare();
        std::printf("merge-writer: part %llu of %llu, %llu commands\n", num(o_.part), num(o_.parts),
                    num(o_.ops));
        return kPassed;
    }

private:
    static unsigned long long num(std::uint64_t n) { return n; }
    std::atomic<std::uint32_t>& word(std::uint64_t part)
    {
        return *reinterpret_cast<std::atomic<std::uint32_t>*>(base_ + plan_.watched(part));
    }

    void store(const Step& step, std::uint64_t n)
    {
        std::uint8_t* now = mine_.data() + step.offset;
        bytes_of(step, now);
        if (o_.broken && n == o_.ops - 1)
            return;
        if (!step.by_write || o_.memory) {
            std::memcpy(base_ + step.offset, now, step.length);
            return;
        }
        if (pwrite(fd_.get(), now, step.length, static_cast<off_t>(step.offset)) !=
            static_cast<ssize_t>(step.length))
            die("pwrite", errno);
    }

    void sync(std::uint64_t n)
    {
        Random random{mix(o_.seed + n) + o_.part};
        if (random.one_in(kBarrierEvery)) {
            std::uint64_t pages = kRegionBytes / kPageBytes;
            std::uint64_t first = random.below(pages);
            std::uint64_t count = 1 + random.below(pages - first);
            if (msync(base_ + first * kPageBytes, count * kPageBytes, MS_SYNC) < 0)
                die("msync", errno);
        }
        if (random.one_in(kAcquireEvery)) {
            if (int err = posix_fadvise(fd_.get(), 0, 0, POSIX_FADV_DONTNEED))
                die("acquire", err);
            compare();
        }
    }

    // My units are what I wrote, whatever the others do beside them.
    void compare()
    {
        for (std::uint64_t at = o_.parts * o_.unit; at < kRegionBytes; at++) {
            if (plan_.owner(at / o_.unit) != o_.part || base_[at] == mine_[at])
                continue;
            std::printf("part %llu: offset %llu is 0x%02x, was written 0x%02x\n", num(o_.part),
                        num(at), base_[at], mine_[at]);
            leave(kRefuted, "a unit of this writer has changed");
        }
    }

    void look()
    {
        for (std::uint64_t part = 0; part < o_.parts; part++) {
            std::uint32_t seen = word(part).load(std::memory_order_acquire);
            if (seen == 0 || seen == kWatched[0] || seen == kWatched[1])
                continue;
            std::printf("the watched word of part %llu is 0x%08x\n", num(part), seen);
            leave(kRefuted, "a store was seen half-written");
        }
    }

    const Options& o_;
    Plan plan_;
    Fd fd_;
    std::uint8_t* base_ = nullptr;
    std::vector<std::uint8_t> mine_;
};

int check(const Options& options)
{
    std::vector<std::uint8_t> want = outcome(options);
    std::vector<std::uint8_t> got(kRegionBytes);
    Fd fd{open(options.file.c_str(), O_RDONLY | O_CLOEXEC)};
    if (!fd || pread(fd.get(), got.data(), got.size(), 0) != static_cast<ssize_t>(got.size()))
        die(options.file, errno);
    Plan plan(options);
    for (std::uint64_t at = 0; at < kRegionBytes; at++) {
        if (got[at] == want[at])
            continue;
        std::printf("offset %llu, of part %llu: 0x%02x, expected 0x%02x\n",
                    static_cast<unsigned long long>(at),
                    static_cast<unsigned long long>(plan.owner(at / options.unit)), got[at],
                    want[at]);
        leave(kRefuted, "the memory is not what the writers wrote");
    }
    std::printf("merge-writer: all %llu bytes are as written\n",
                static_cast<unsigned long long>(kRegionBytes));
    return kPassed;
}

} // namespace

int main(int argc, char** argv)
{
    static const option longs[] = {
        {"part", required_argument, nullptr, 'p'},
        {"parts", required_argument, nullptr, 'n'},
        {"ops", required_argument, nullptr, 'o'},
        {"seed", required_argument, nullptr, 's'},
        {"unit", required_argument, nullptr, 'u'},
        {"memory", no_argument, nullptr, 'm'},
        {"check", no_argument, nullptr, 'c'},
        {"break", no_argument, nullptr, 'b'},
        {nullptr, 0, nullptr, 0},
    };
    Options options;
    for (int c = 0; (c = getopt_long(argc, argv, "", longs, nullptr)) != -1;) {
        switch (c) {
        case 'p':
            options.part = parse_number("--part", optarg);
            break;
        case 'n':
            options.parts = parse_number("--parts", optarg);
            break;
        case 'o':
            options.ops = parse_number("--ops", optarg);
            break;
        case 's':
            options.seed = parse_number("--seed", optarg);
            break;
        case 'u':
            options.unit = parse_number("--unit", optarg);
            break;
        case 'm':
            options.memory = true;
            break;
        case 'c':
            options.check = true;
            break;
        case 'b':
            options.broken = true;
            break;
        default:
            die("usage: merge-writer FILE --part P --parts N [--check] [--memory] ...");
        }
    }
    if (optind + 1 != argc || options.parts == 0 || options.part >= options.parts ||
        options.ops == 0 || options.unit < 4 || options.unit > kPageBytes)
        die("usage: merge-writer FILE --part P --parts N [--check] [--memory] ...");
    options.file = argv[optind];
    return options.check ? check(options) : Writer(options).run();
}
