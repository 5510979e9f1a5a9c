// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// words: flags, atomics and waits of libsmc, and who watches them in the target's memory.
//
// One lane after the other, each of which is the page of a flag, then one page for each cell:
//
//     0        flag    u64, rises by 1; the last is kEnd and how many there were before
//     64       noise   u64, stored to through the mapping: its page is written back all the while
//     4096...  cells   u64[kCells] or fewer, each on a page of its own, at an offset of its own
//
//   watch FILE [LANES [FLAGS]]     until all flags are the last: none ever falls, no cell is behind its flag;
//                                  so many different ones at least were seen, each with its cells
//   order FILE ROUNDS [--break]    on a plain file: cells, then the flag; broken: the flag first
//   publish REGION ROUNDS SECONDS [LANES]      the same by smc_publish, all in that time, a thread for each
//                                  lane; with another that stores noise and flushes
//   follow REGION                  pages of this node follow flags and atomics, and do not become dirty
//   flag REGION OFFSET VALUE [ERRNO]           one smc_publish of a flag alone
//   add REGION OFFSET ADDEND COUNT [ERRNO]     smc_fetch_add, COUNT times
//   lock REGION COUNT              a lock by smc_compare_swap at 0; a counter under it at 4096
//   wait REGION OFFSET changed|equal|least VALUE TIMEOUT_MS [ERRNO]
//   push REGION COUNT BOUND_MS     stores through the mapping arrive without a barrier, in time
//   eager REGION COUNT             what write(2) has written is at the target when it returns
//   poll REGION OFFSET COUNT BOUND_MS          loads through the mapping see each value of `tick`, at
//                                  most so long after the target's memory holds it
//   tick FILE OFFSET COUNT MS      counts up there, again every MS, when `poll` has said 1 next to it
//   same REGION                    a store of the value that is here is no change, smc_store, pwrite and
//                                  smc_publish of it are sent; `reset` takes it back after each
//   reset FILE                     until `same` is over
//   peek FILE OFFSET VALUE         the file holds that
//   poke FILE OFFSET VALUE         from now on it does
//
// Exit codes: common.hpp.
#include "common.hpp"

#include <smc/smc.hpp>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <stdexcept>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/stat.h>

using namespace smc::test;

namespace {

constexpr std::uint64_t kCells = 6;
constexpr std::uint64_t kFlag = 0;
constexpr std::uint64_t kNoise = 64;
constexpr std::uint64_t kEnd = 1ULL << 62;
constexpr std::uint64_t kFlagsMin = 10;    // of each lane, that a watcher has to see
constexpr std::uint64_t kBarriersMin = 10; // beside what is published
constexpr std::uint64_t kLaneBytes = (1 + kCells) * kPageBytes;
// Of guests on a machine with other work, the first contact of two nodes takes a while.
constexpr std::uint32_t kAttachMs = 60000;
constexpr double kPollMs = 60000; // for a change that the target has, far above any bound

using Word = std::atomic<std::uint64_t>;
static_assert(Word::is_always_lock_free && sizeof(Word) == 8);

constexpr std::uint64_t cell_offset(std::uint64_t i)
{
    return (1 + i) * kPageBytes + i * 640;
}

// All of them in the first lane, two in each fourth, one in others, whose rounds cost less.
constexpr std::uint64_t cells_of(std::uint64_t lane)
{
    if (lane == 0)
        return kCells;
    return lane % 4 == 1 ? 2 : 1;
}

Word& word_at(void* base, std::uint64_t offset)
{
    return *reinterpret_cast<Word*>(static_cast<std::uint8_t*>(base) + offset);
}

void* map_file(const char* path, int flags, std::uint64_t bytes = kLaneBytes)
{
    const Fd fd(open(path, flags));
    if (!fd)
        die(path, errno);
    const int prot = flags == O_RDONLY ? PROT_READ : PROT_READ | PROT_WRITE;
    void* base = mmap(nullptr, bytes, prot, MAP_SHARED, fd.get(), 0);
    if (base == MAP_FAILED)
        die("mmap", errno);
    return base;
}

smc::Region attach(const char* name)
{
    return smc::Region::attach(name, {.timeout_ms = kAttachMs});
}

void expect(std::uint64_t got, std::uint64_t wanted, const std::string& what)
{
    if (got != wanted)
        leave(kRefuted,
              what + " is " + std::to_string(got) + " instead of " + std::to_string(wanted));
}

// `wanted`: an errno, or 0.
void expect_error(std::error_code ec, int wanted)
{
    if (ec.value() != wanted)
        leave(kRefuted, "ended with " + std::to_string(ec.value()) + " (" + ec.message() +
                            ") instead of " + std::to_string(wanted));
}

// One lane, as it is in the target's memory.
class Watched {
public:
    Watched(void* base, std::uint64_t lane) : base_(base), lane_(lane) {}
    void look()
    {
        const std::uint64_t flag = word(kFlag);
        if (flag < last_)
            leave(kRefuted, name() + "the flag fell from " + std::to_string(last_) + " to " +
                                std::to_string(flag));
        flags_ += flag != last_;
        last_ = flag;
        for (std::uint64_t i = 0; i < cells_of(lane_); i++) {
            const std::uint64_t cell = word(cell_offset(i));
            if (cell < flag)
                leave(kRefuted, name() + "flag " + std::to_string(flag) + " is here, but cell " +
                                    std::to_string(i) + " is at " + std::to_string(cell));
        }
    }
    bool over() const { return last_ >= kEnd; }
    std::uint64_t flags() const { return flags_; }
    std::uint64_t published() const { return last_ - kEnd + 1; } // once it is over

private:
    std::uint64_t word(std::uint64_t offset) const
    {
        return word_at(base_, lane_ * kLaneBytes + offset).load(std::memory_order_acquire);
    }
    std::string name() const { return "lane " + std::to_string(lane_) + ": "; }

    void* base_;
    std::uint64_t lane_;
    std::uint64_t last_ = 0;
    std::uint64_t flags_ = 0;
};

int watch(const char* path, std::uint64_t lanes, std::uint64_t flags_min)
{
    void* base = map_file(path, O_RDONLY, lanes * kLaneBytes);
    std::vector<Watched> watched;
    for (std::uint64_t lane = 0; lane < lanes; lane++)
        watched.emplace_back(base, lane);
    std::puts("watching");
    std::fflush(stdout);
    std::uint64_t looks = 0;
    const auto over = [](const Watched& lane) { return lane.over(); };
    for (; !std::all_of(watched.begin(), watched.end(), over); looks++) {
        for (Watched& lane : watched)
            lane.look();
        sched_yield();
    }
    std::uint64_t flags = 0;
    std::uint64_t published = 0;
    for (const Watched& lane : watched) {
        flags += lane.flags();
        published += lane.published();
        if (lane.flags() < kFlagsMin)
            leave(kRefuted, "too few flags were seen to prove anything");
    }
    std::printf("watched: %llu looks, %llu flags of %llu\n", static_cast<unsigned long long>(looks),
                static_cast<unsigned long long>(flags), static_cast<unsigned long long>(published));
    if (flags < flags_min)
        leave(kRefuted, "fewer flags were seen than " + std::to_string(flags_min));
    return kPassed;
}

void set_cells(void* base, std::uint64_t lane, std::uint64_t value)
{
    for (std::uint64_t i = 0; i < cells_of(lane); i++)
        word_at(base, lane * kLaneBytes + cell_offset(i)).store(value, std::memory_order_release);
}

int order(const char* path, std::uint64_t rounds, bool broken)
{
    void* base = map_file(path, O_RDWR);
    for (std::uint64_t round = 1; round <= rounds; round++) {
        const std::uint64_t value = round == rounds ? kEnd + round - 1 : round;
        if (broken) {
            word_at(base, kFlag).store(value, std::memory_order_release);
            sched_yield();
        }
        set_cells(base, 0, value);
        if (!broken)
            word_at(base, kFlag).store(value, std::memory_order_release);
        sched_yield();
    }
    return kPassed;
}

// Write-back of the flags' pages, and of the cells, that nobody asked publish for. Returns how often.
std::uint64_t disturb(smc::Region& region, std::uint64_t lanes, const std::atomic<bool>& stop)
{
    void* base = region.bytes().data();
    Random random(7);
    std::uint64_t n = 0;
    while (!stop) {
        n++;
        const std::uint64_t lane = random.below(lanes) * kLaneBytes;
        word_at(base, lane + kNoise).store(n, std::memory_order_relaxed);
        if (random.one_in(2))
            region.barrier();
        else
            region.barrier(lane + random.below(1 + kCells) * kPageBytes, kPageBytes);
        std::this_thread::sleep_for(std::chrono::microseconds(random.below(3000)));
    }
    return n;
}

// Until `more` says that it is enough. Returns how many rounds there were.
std::uint64_t publish_lane(smc::Region& region, std::uint64_t lane,
                           const std::function<bool()>& more)
{
    void* base = region.bytes().data();
    const std::uint64_t start = lane * kLaneBytes;
    const auto once = [&](std::uint64_t value) {
        set_cells(base, lane, value);
        region.publish(start + kPageBytes, cells_of(lane) * kPageBytes, start + kFlag, value);
    };
    std::uint64_t round = 0;
    while (more())
        once(++round);
    once(kEnd + round);
    return round + 1;
}

int publish(const char* name, std::uint64_t rounds, std::uint64_t seconds, std::uint64_t lanes)
{
    auto region = attach(name);
    std::atomic<bool> stop{false};
    std::uint64_t barriers = 0;
    std::thread noise([&] { barriers = disturb(region, lanes, stop); });
    const auto start = std::chrono::steady_clock::now();
    std::atomic<std::uint64_t> begun{0};
    std::atomic<std::uint64_t> done{0};
    const auto more = [&] {
        return seconds_since(start) < static_cast<double>(seconds) && begun++ < rounds;
    };
    std::vector<std::thread> publishers;
    for (std::uint64_t lane = 0; lane < lanes; lane++)
        publishers.emplace_back([&, lane] { done += publish_lane(region, lane, more); });
    for (std::thread& publisher : publishers)
        publisher.join();
    stop = true;
    noise.join();
    std::printf("published: %llu rounds in %.1f s, beside %llu barriers\n",
                static_cast<unsigned long long>(done), seconds_since(start),
                static_cast<unsigned long long>(barriers));
    if (done < rounds)
        leave(kRefuted, "fewer rounds than " + std::to_string(rounds));
    if (barriers < kBarriersMin)
        leave(kRefuted, "too few barriers to disturb anything");
    return kPassed;
}

int follow(const char* name)
{
    auto region = attach(name);
    void* base = region.bytes().data();
    Word& here = word_at(base, 8);
    // With and without its page here.
    for (const std::uint64_t present : {0, 1}) {
        if (present)
            (void)here.load();
        else
            region.acquire();
        region.publish(0, 0, 8, 41 + present);
        expect(here.load(), 41 + present, "the flag here");
        expect(region.status().dirty_bytes, 0, "what is dirty after publish");
        expect(region.fetch_add(8, 100), 41 + present, "what fetch_add found");
        expect(here.load(), 141 + present, "the sum here");
        expect(region.compare_swap(8, 1, 7), 141 + present, "what a vain compare_swap found");
        expect(here.load(), 141 + present, "the word after a vain compare_swap");
        expect(region.compare_swap(8, 141 + present, 9), 141 + present, "what compare_swap found");
        expect(here.load(), 9, "the word after compare_swap");
        expect(region.status().dirty_bytes, 0, "what is dirty after atomics");
        region.acquire();
        expect(here.load(), 9, "the word at the target");
    }
    // What was stored to a word before is there before it is changed: through the mapping, by
    // write(2) of some bytes and of the whole page, and where the page stays writable (hot=on).
    for (const int how : {0, 1, 2, 3}) {
        for (std::uint64_t n = 0; how == 3 && n < 4; n++) {
            here.store(n);
            region.barrier();
        }
        const std::uint64_t stored = 1000 + how;
        std::vector<std::uint64_t> page(kPageBytes / 8, stored);
        if (how == 0 || how == 3)
            here.store(stored);
        else
            region.store(how == 1 ? 8 : 0,
                         std::as_bytes(std::span(page).first(how == 1 ? 1 : page.size())));
        expect(region.fetch_add(8, 1), stored, "what fetch_add found after a store");
        expect(region.compare_swap(8, 0, 1), stored + 1, "what compare_swap found after a store");
        region.barrier();
        region.acquire();
        expect(here.load(), stored + 1, "the word after a store and an atomic");
    }
    // Nor does what was written before come once more after a flag.
    const std::vector<std::uint64_t> zeros(kPageBytes / 8);
    region.store(0, std::as_bytes(std::span(zeros)));
    region.publish(0, 0, 8, std::uint64_t{1});
    expect(region.status().dirty_bytes, 0, "what is dirty after publish on a page that was");
    // Four bytes, and the four beside them.
    region.publish(0, 0, 16, std::uint32_t{5});
    region.publish(0, 0, 20, std::uint32_t{6});
    region.acquire();
    expect(word_at(base, 16).load(), (6ULL << 32) | 5, "two words of four bytes");
    // A page that is dirty all the while: its write-back brings no old flag.
    for (std::uint64_t n = 1; n <= 200; n++) {
        word_at(base, kNoise).store(n);
        region.publish(0, n % 2 ? kPageBytes : 0, 8, n);
        region.fetch_add(24, 1);
    }
    region.barrier();
    region.acquire();
    expect(here.load(), 200, "the last flag at the target");
    expect(word_at(base, kNoise).load(), 200, "the last store at the target");
    expect(word_at(base, 24).load(), 200, "the sum at the target");

    std::error_code ec;
    region.publish(0, 0, 12, std::uint64_t{1}, ec);
    expect_error(ec, EINVAL);
    region.publish(0, region.size() + 1, 8, std::uint64_t{1}, ec);
    expect_error(ec, ERANGE);
    region.publish(0, 0, region.size(), std::uint64_t{1}, ec);
    expect_error(ec, ERANGE);
    region.fetch_add(4, 1, ec);
    expect_error(ec, EINVAL);
    const auto reader = smc::Region::attach(name, {.access = smc::Access::read_only});
    expect_error({-smc_publish(reader.handle(), 0, 0, 8, 1, 8), smc::error_category()}, EBADF);
    expect_error({-smc_fetch_add(reader.handle(), 8, 1, nullptr), smc::error_category()}, EBADF);
    expect(reader.wait(8, {.until = SMC_WAIT_EQUAL, .value = 200}), 200,
           "what a reader waited for");
    return kPassed;
}

int flag(const char* name, std::uint64_t offset, std::uint64_t value, int wanted)
{
    auto region = attach(name);
    std::error_code ec;
    region.publish(0, 0, offset, value, ec);
    expect_error(ec, wanted);
    return kPassed;
}

int add(const char* name, std::uint64_t offset, std::uint64_t addend, std::uint64_t count,
        int wanted)
{
    auto region = attach(name);
    std::uint64_t last = 0;
    for (std::uint64_t n = 0; n < count; n++) {
        std::error_code ec;
        const std::uint64_t old = region.fetch_add(offset, addend, ec);
        expect_error(ec, wanted);
        if (!ec && n > 0 && old < last + addend)
            leave(kRefuted,
                  "fetch_add found " + std::to_string(old) + " after " + std::to_string(last));
        last = old;
    }
    return kPassed;
}

int lock(const char* name, std::uint64_t count)
{
    auto region = attach(name);
    char node[64]{};
    gethostname(node, sizeof(node) - 1);
    const auto self = std::hash<std::string>{}(node) ^ mix(static_cast<std::uint64_t>(getpid()));
    for (std::uint64_t n = 0; n < count; n++) {
        while (region.compare_swap(0, 0, self) != 0) {
            std::error_code ec; // until it is free, or was for a moment
            region.wait(0, {.until = SMC_WAIT_EQUAL, .value = 0, .timeout_ms = 100}, ec);
            if (ec && ec != std::errc::timed_out)
                leave(kRefuted, "smc_wait: " + ec.message());
        }
        std::uint64_t counter = 0;
        region.acquire(kPageBytes, 8);
        region.load(kPageBytes, std::as_writable_bytes(std::span(&counter, 1)));
        counter++;
        region.store(kPageBytes, std::as_bytes(std::span(&counter, 1)));
        region.barrier(kPageBytes, 8);
        expect(region.compare_swap(0, self, 0), self, "the lock that I hold");
    }
    return kPassed;
}

int wait(const char* name, std::uint64_t offset, const std::string& until, std::uint64_t value,
         std::uint32_t timeout_ms, int wanted)
{
    static const std::map<std::string, smc_wait_until> words{
        {"changed", SMC_WAIT_CHANGED}, {"equal", SMC_WAIT_EQUAL}, {"least", SMC_WAIT_AT_LEAST}};
    const auto found = words.find(until);
    if (found == words.end())
        die("wait until what? " + until);
    const auto region =
        smc::Region::attach(name, {.access = smc::Access::read_only, .timeout_ms = kAttachMs});
    std::uint64_t here = word_at(const_cast<std::byte*>(region.bytes().data()), offset).load();
    std::puts("waiting");
    std::fflush(stdout);
    const auto start = std::chrono::steady_clock::now();
    std::error_code ec;
    const auto seen =
        region.wait(offset, {.until = found->second, .value = value, .timeout_ms = timeout_ms}, ec);
    const double took = seconds_since(start);
    std::printf("waited: %llu seen, %.3f s\n", static_cast<unsigned long long>(seen), took);
    expect_error(ec, wanted);
    here = word_at(const_cast<std::byte*>(region.bytes().data()), offset).load();
    if (!ec)
        expect(here, seen, "the word here");
    return kPassed;
}

using Clock = std::chrono::steady_clock;

double ms_between(Clock::time_point from, Clock::time_point to)
{
    return std::chrono::duration<double, std::milli>(to - from).count();
}

// The median and the worst of times that each should be within a bound. Guests share processors with other
// work, so the worst only has to show that nothing waited for something else.
void expect_within(std::vector<double> took_ms, double bound_ms, const char* what)
{
    std::sort(took_ms.begin(), took_ms.end());
    const double median = took_ms[took_ms.size() / 2];
    std::printf("%s: median %.3f ms, worst %.3f ms, of %zu\n", what, median, took_ms.back(),
                took_ms.size());
    if (median > bound_ms || took_ms.back() > 100 * bound_ms + 1000)
        leave(kRefuted, std::string(what) + " later than " + std::to_string(bound_ms) + " ms");
}

int push(const char* name, std::uint64_t count, double bound_ms)
{
    auto region = attach(name);
    void* base = region.bytes().data();
    std::vector<double> took;
    for (std::uint64_t n = 1; n <= count; n++) {
        const std::uint64_t offset = cell_offset(n % kCells);
        word_at(base, offset).store(n);
        const auto start = Clock::now();
        region.wait(offset, {.until = SMC_WAIT_EQUAL, .value = n});
        took.push_back(ms_between(start, Clock::now()));
    }
    expect_within(took, bound_ms, "a store arrived");
    return kPassed;
}

int eager(const char* name, std::uint64_t count)
{
    auto region = attach(name);
    const Fd beside(
        open((std::string("/smc/") + region.status().node + "/" + region.status().name).c_str(),
             O_RDWR | O_DIRECT));
    if (!beside)
        die("open", errno);
    for (std::uint64_t n = 1; n <= count; n++) {
        const std::uint64_t offset = n * 8 % (2 * kPageBytes);
        region.store(offset, std::as_bytes(std::span(&n, 1)));
        const auto status = region.status();
        expect(status.dirty_bytes, 0, "what is dirty after write");
        expect(status.writeback_bytes, 0, "what is not acknowledged after write");
        std::uint64_t there = 0;
        if (pread(beside.get(), &there, sizeof(there), static_cast<off_t>(offset)) != sizeof(there))
            die("pread", errno);
        expect(there, n, "the target's memory");
    }
    return kPassed;
}

// O_DIRECT reads tell what the target's memory holds, and leave the pages of this node alone.
int poll(const char* name, std::uint64_t offset, std::uint64_t count, double bound_ms)
{
    auto region = attach(name);
    const Fd beside(
        open((std::string("/smc/") + region.status().node + "/" + region.status().name).c_str(),
             O_RDONLY | O_DIRECT));
    if (!beside)
        die("open", errno);
    const Word& here = word_at(region.bytes().data(), offset);
    std::vector<Clock::time_point> seen(count + 1);
    std::atomic<std::uint64_t> seen_upto{0};
    std::atomic<bool> give_up{false};
    std::thread poller([&] {
        while (seen_upto < count && !give_up) {
            for (std::uint64_t value = here.load(); seen_upto < std::min(value, count);) {
                seen[seen_upto + 1] = Clock::now();
                seen_upto++;
            }
            std::this_thread::yield();
        }
    });
    // On a page of its own, which this node may write.
    region.publish(0, 0, offset + kPageBytes, std::uint64_t{1});
    std::vector<double> took;
    std::vector<Clock::time_point> held(count + 1);
    for (std::uint64_t value = 0; value < count;) {
        std::uint64_t there = 0;
        if (pread(beside.get(), &there, sizeof(there), static_cast<off_t>(offset)) != sizeof(there))
            die("pread", errno);
        for (; value < std::min(there, count); value++)
            held[value + 1] = Clock::now();
        std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
    const auto counted = Clock::now();
    while (seen_upto < count && ms_between(counted, Clock::now()) < kPollMs)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    give_up = true;
    poller.join();
    if (seen_upto < count)
        leave(kRefuted, "of " + std::to_string(count) + " changes " + std::to_string(seen_upto) +
                            " were seen");
    for (std::uint64_t value = 1; value <= count; value++)
        took.push_back(std::max(0.0, ms_between(held[value], seen[value])));
    expect_within(took, bound_ms, "a change was seen");
    return kPassed;
}

int tick(const char* path, std::uint64_t offset, std::uint64_t count, std::uint64_t ms)
{
    void* base = map_file(path, O_RDWR);
    while (word_at(base, offset + kPageBytes).load() != 1)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    for (std::uint64_t n = 1; n <= count; n++) {
        std::this_thread::sleep_for(std::chrono::milliseconds(ms));
        word_at(base, offset).store(n);
    }
    return kPassed;
}

// Who stores, and who takes back what was stored: words on pages of their own, of which one counts what
// was stored, another what was taken back.
constexpr std::uint64_t kSame = 0;
constexpr std::uint64_t kStored = kPageBytes;
constexpr std::uint64_t kTakenBack = 2 * kPageBytes;
constexpr std::uint64_t kSameValue = 0x1122334455667788;

int reset(const char* path)
{
    void* base = map_file(path, O_RDWR);
    std::puts("watching");
    std::fflush(stdout);
    for (std::uint64_t done = 0; done != kEnd;) {
        const std::uint64_t stored = word_at(base, kStored).load(std::memory_order_acquire);
        if (stored != done) {
            word_at(base, kSame).store(0);
            word_at(base, kTakenBack).store(stored, std::memory_order_release);
            done = stored;
        }
        std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
    return kPassed;
}

int same(const char* name)
{
    auto region = attach(name);
    const std::string path =
        std::string("/smc/") + region.status().node + "/" + region.status().name;
    const Fd plain(open(path.c_str(), O_RDWR));
    // Tells what the target's memory holds, and leaves the pages of this node alone.
    const Fd beside(open(path.c_str(), O_RDONLY | O_DIRECT));
    if (!plain || !beside)
        die(path, errno);
    Word& here = word_at(region.bytes().data(), kSame);
    const auto there = [&] {
        std::uint64_t value = 0;
        if (pread(beside.get(), &value, sizeof value, kSame) != sizeof value)
            die("pread", errno);
        return value;
    };
    std::uint64_t round = 0;
    const auto take_back = [&](std::uint64_t number) {
        region.publish(0, 0, kStored, number);
        region.wait(kTakenBack, {.until = SMC_WAIT_EQUAL, .value = number});
        expect(there(), 0, "the word at the target, taken back");
        expect(here.load(), kSameValue, "the word here, which nobody acquired");
    };
    const auto bytes = std::as_bytes(std::span(&kSameValue, 1));

    here.store(kSameValue);
    region.barrier();
    expect(there(), kSameValue, "the word at the target after a store");
    for (int times = 0; times < 3; times++) {
        take_back(++round);
        here.store(kSameValue);
        region.barrier();
        expect(there(), 0, "the word at the target after a store of the same value");
        region.store(kSame, bytes);
        region.barrier();
        expect(there(), kSameValue, "the word at the target after smc_store of the same value");
        take_back(++round);
        if (pwrite(plain.get(), bytes.data(), bytes.size(), kSame) !=
            static_cast<ssize_t>(bytes.size()))
            die("pwrite", errno);
        region.barrier();
        expect(there(), kSameValue, "the word at the target after pwrite of the same value");
        take_back(++round);
        region.publish(0, 0, kSame, kSameValue);
        expect(there(), kSameValue, "the word at the target after smc_publish of the same value");
        // Stored to besides: the twin, and what write(2) left, are the page's as well.
        word_at(region.bytes().data(), kSame + 8).store(round);
        region.barrier();
    }
    take_back(kEnd);
    return kPassed;
}

int peek(const char* path, std::uint64_t offset, std::uint64_t value)
{
    expect(word_at(map_file(path, O_RDONLY), offset).load(), value, "the word");
    return kPassed;
}

int poke(const char* path, std::uint64_t offset, std::uint64_t value)
{
    word_at(map_file(path, O_RDWR), offset).store(value);
    return kPassed;
}

int run(const std::vector<char*>& args)
{
    const auto number = [&](std::size_t i, std::uint64_t absent = 0) {
        return i < args.size() ? parse_number("number", args[i]) : absent;
    };
    const auto code = [&](std::size_t i) { return static_cast<int>(number(i)); };
    const std::string verb = args.size() > 1 ? args[0] : "";
    const char* object = args.size() > 1 ? args[1] : "";
    if (verb == "watch")
        return watch(object, number(2, 1), number(3));
    if (verb == "order" && args.size() >= 3)
        return order(object, number(2), args.size() > 3);
    if (verb == "publish" && args.size() >= 4)
        return publish(object, number(2), number(3), number(4, 1));
    if (verb == "follow")
        return follow(object);
    if (verb == "flag" && args.size() >= 4)
        return flag(object, number(2), number(3), code(4));
    if (verb == "add" && args.size() >= 5)
        return add(object, number(2), number(3), number(4), code(5));
    if (verb == "lock" && args.size() == 3)
        return lock(object, number(2));
    if (verb == "wait" && args.size() >= 6)
        return wait(object, number(2), args[3], number(4), static_cast<std::uint32_t>(number(5)),
                    code(6));
    if (verb == "push" && args.size() == 4)
        return push(object, number(2), static_cast<double>(number(3)));
    if (verb == "eager" && args.size() == 3)
        return eager(object, number(2));
    if (verb == "poll" && args.size() == 5)
        return poll(object, number(2), number(3), static_cast<double>(number(4)));
    if (verb == "tick" && args.size() == 5)
        return tick(object, number(2), number(3), number(4));
    if (verb == "same")
        return same(object);
    if (verb == "reset")
        return reset(object);
    if (verb == "peek" && args.size() == 4)
        return peek(object, number(2), number(3));
    if (verb == "poke" && args.size() == 4)
        return poke(object, number(2), number(3));
    die("usage: see the beginning of words.cpp");
}

} // namespace

int main(int argc, char** argv)
{
    try {
        return run({argv + 1, argv + argc});
    } catch (const std::exception& error) {
        leave(kRefuted, error.what());
    }
}
