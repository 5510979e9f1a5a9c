// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// barrier-race: stores that race barriers are never lost, and two barriers at once are both true.
//
//     storers            counters, each on a page of its own, raised without pause; and a log of
//                        cells, each written once per lap, so that no later store hides a lost one
//     barrier threads    read what has been stored, call msync or fsync, then ask the target, which
//                        must hold that much or more
//
// Failure: exit 1 with the counter or cell, what was stored before the barrier, what the target has.
#include "common.hpp"
#include "target.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <getopt.h>
#include <sys/mman.h>
#include <sys/stat.h>

using namespace smc::test;

namespace {

constexpr std::uint64_t kCounters = 32;
constexpr std::uint64_t kCounterBytes = kCounters * kPageBytes;
constexpr std::uint64_t kLogCells = 64 * kPageBytes / sizeof(std::uint64_t);
constexpr std::uint64_t kCellsChecked = 1024; // the newest
constexpr std::uint64_t kRegionBytesMin = kCounterBytes + kLogCells * sizeof(std::uint64_t);
// The log may not lap what a barrier thread has yet to check.
constexpr std::uint64_t kAheadMax = kLogCells - 2 * kCellsChecked;

struct Options {
    std::string region;
    std::string target;
    std::uint64_t barriers = 200; // of each thread
    bool broken = false;
};

using Word = std::atomic<std::uint64_t>;
static_assert(Word::is_always_lock_free && sizeof(Word) == 8);

struct Race {
    Fd fd;
    std::uint8_t* base = nullptr;
    std::atomic<bool> stop{false};
    Word appended{0};             // cells of the log that are stored; release, read with acquire
    Word checked[2] = {{0}, {0}}; // by each barrier thread: how far it has looked
    Word rounds{0};
    std::atomic<bool> refuted{false};

    Word& counter(std::uint64_t i) { return *reinterpret_cast<Word*>(base + i * kPageBytes); }
    Word& cell(std::uint64_t k)
    {
        return *reinterpret_cast<Word*>(base + kCounterBytes + k % kLogCells * sizeof(Word));
    }
};

void count_up(Race& race)
{
    for (std::uint64_t value = 1; !race.stop; value++) {
        for (std::uint64_t i = 0; i < kCounters; i++)
            race.counter(i).store(value, std::memory_order_release);
        race.rounds.store(value, std::memory_order_relaxed);
        std::this_thread::yield();
    }
}

// Cell k holds k + 1.
void append(Race& race)
{
    for (std::uint64_t k = 0; !race.stop; k++) {
        while (!race.stop &&
               k >= std::min(race.checked[0].load(), race.checked[1].load()) + kAheadMax)
            std::this_thread::yield();
        race.cell(k).store(k + 1, std::memory_order_release);
        race.appended.store(k + 1, std::memory_order_release);
        if (k % 64 == 0)
            std::this_thread::yield();
    }
}

std::uint64_t word_at(const std::vector<std::uint8_t>& bytes, std::uint64_t offset)
{
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data() + offset, sizeof word);
    return word;
}

void refute(Race& race, const char* what, std::uint64_t which, std::uint64_t wanted,
            std::uint64_t got)
{
    std::printf("LOST STORE: %s %llu: stored %llu before the barrier, the target has %llu\n", what,
                static_cast<unsigned long long>(which), static_cast<unsigned long long>(wanted),
                static_cast<unsigned long long>(got));
    race.refuted = true;
}

void check_once(Race& race, Target& target, unsigned self, bool use_msync, bool broken)
{
    std::uint64_t stored[kCounters];
    for (std::uint64_t i = 0; i < kCounters; i++)
        stored[i] = race.counter(i).load(std::memory_order_acquire);
    std::uint64_t appended = race.appended.load(std::memory_order_acquire);

    int error = use_msync ? msync(race.base, kRegionBytesMin, MS_SYNC) : fsync(race.fd.get());
    if (error)
        leave(kRefuted, use_msync ? "msync" : "fsync", errno);

    if (broken)
        appended += 4 * kLogCells; // claims what was never stored
    std::vector<std::uint8_t> bytes = target.read(0, kRegionBytesMin);
    for (std::uint64_t i = 0; i < kCounters; i++)
        if (word_at(bytes, i * kPageBytes) < stored[i])
            refute(race, "counter", i, stored[i], word_at(bytes, i * kPageBytes));
    for (std::uint64_t k = appended - std::min(appended, kCellsChecked); k < appended; k++) {
        std::uint64_t got = word_at(bytes, kCounterBytes + k % kLogCells * sizeof(Word));
        if (got < k + 1)
            refute(race, "cell", k, k + 1, got);
    }
    race.checked[self].store(appended);
}

void barriers(Race& race, const Options& options, unsigned self)
{
    auto target = open_target(options.target);
    for (std::uint64_t n = 0; n < options.barriers && !race.refuted; n++)
        check_once(race, *target, self, (n + self) % 4 != 0,
                   options.broken && n == options.barriers / 2);
    race.checked[self].store(~std::uint64_t{0} / 2); // holds the log back no longer
}

Options parse_options(int argc, char** argv)
{
    static const option known[] = {{"region", required_argument, nullptr, 1},
                                   {"target", required_argument, nullptr, 2},
                                   {"barriers", required_argument, nullptr, 3},
                                   {"break", no_argument, nullptr, 4},
                                   {nullptr, 0, nullptr, 0}};
    Options options;
    for (int opt; (opt = getopt_long(argc, argv, "", known, nullptr)) != -1;) {
        switch (opt) {
        case 1:
            options.region = optarg;
            break;
        case 2:
            options.target = optarg;
            break;
        case 3:
            options.barriers = parse_number("--barriers", optarg);
            break;
        case 4:
            options.broken = true;
            break;
        default:
            options.region.clear();
            optind = argc;
            break;
        }
    }
    if (options.region.empty() || options.target.empty() || optind != argc)
        die("usage: barrier-race --region FILE --target file:PATH|tcp:HOST:PORT [--barriers N] "
            "[--break]");
    return options;
}

} // namespace

int main(int argc, char** argv)
{
    Options options = parse_options(argc, argv);
    Race race;
    race.fd = Fd{open(options.region.c_str(), O_RDWR | O_CLOEXEC)};
    struct stat st {};
    if (!race.fd || fstat(race.fd.get(), &st) < 0)
        die(options.region, errno);
    if (static_cast<std::uint64_t>(st.st_size) < kRegionBytesMin)
        die(options.region + " is smaller than " + std::to_string(kRegionBytesMin) + " bytes");
    void* base =
        mmap(nullptr, kRegionBytesMin, PROT_READ | PROT_WRITE, MAP_SHARED, race.fd.get(), 0);
    if (base == MAP_FAILED)
        die("mmap", errno);
    race.base = static_cast<std::uint8_t*>(base);
    std::memset(race.base, 0, kRegionBytesMin);

    std::thread storers[] = {std::thread(count_up, std::ref(race)),
                             std::thread(append, std::ref(race))};
    std::thread checkers[] = {std::thread(barriers, std::ref(race), std::cref(options), 0U),
                              std::thread(barriers, std::ref(race), std::cref(options), 1U)};
    for (std::thread& t : checkers)
        t.join();
    race.stop = true;
    for (std::thread& t : storers)
        t.join();

    // Nothing races any more: every byte must be there.
    if (msync(race.base, kRegionBytesMin, MS_SYNC) < 0)
        leave(kRefuted, "the last msync", errno);
    auto bytes = open_target(options.target)->read(0, kRegionBytesMin);
    if (std::memcmp(bytes.data(), race.base, kRegionBytesMin) != 0) {
        std::printf("LOST STORE: the target differs after the last barrier\n");
        race.refuted = true;
    }
    std::printf(
        "barrier-race: %s, 2 x %llu barriers, %llu cells and %llu rounds of counters stored\n",
        race.refuted ? "FAILED" : "passed", static_cast<unsigned long long>(options.barriers),
        static_cast<unsigned long long>(race.appended.load()),
        static_cast<unsigned long long>(race.rounds.load()));
    return race.refuted ? kRefuted : kPassed;
}
