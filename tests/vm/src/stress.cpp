// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// stress: programs that open, fault, store and leave at random, some killed with SIGKILL, and not one
// store that was made is missing afterwards, whoever made it and however it ended.
//
// Owns: a table in shared memory with two numbers per page: `intent`, raised before the store, and
// `done`, raised after it. A page belongs to one slot of programs, so that after any death its word
// is one of the two.
// Failure: exit 1 naming region, page, what was stored and what is there.
#include "common.hpp"
#include "target.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

using namespace smc::test;

namespace {

constexpr std::uint64_t kPagesMax = 2048; // of each region
constexpr unsigned kStepsMax = 200;       // of one program's life

using Word = std::atomic<std::uint64_t>;

struct PageRecord {
    Word intent;
    Word done;
};

struct Region {
    std::string path;
    std::string target;
    std::uint64_t pages = 0;
    PageRecord* records = nullptr;
};

struct Options {
    std::vector<Region> regions;
    unsigned programs = 16;
    std::uint64_t seconds = 10;
    std::uint64_t seed = 1;
    bool broken = false;
};

struct Tally {
    std::uint64_t started = 0;
    std::uint64_t killed = 0;
};

std::uint64_t word_offset(std::uint64_t page)
{
    return page * kPageBytes + mix(page) % 512 * 8;
}

// One program's life. Never returns.
class Program {
public:
    Program(const Options& options, unsigned slot, std::uint64_t seed)
        : options_(options), slot_(slot), random_(seed)
    {}

    [[noreturn]] void live()
    {
        Region region = options_.regions[random_.below(options_.regions.size())];
        region_ = &region;
        fd_ = Fd{open(region.path.c_str(), O_RDWR | O_CLOEXEC)};
        if (!fd_)
            leave(kRefuted, "open " + region.path, errno);
        length_ = region.pages * kPageBytes;
        int flags = MAP_SHARED | (random_.one_in(16) ? MAP_POPULATE : 0);
        void* base = mmap(nullptr, length_, PROT_READ | PROT_WRITE, flags, fd_.get(), 0);
        if (base == MAP_FAILED)
            leave(kRefuted, "mmap " + region.path, errno);
        base_ = static_cast<std::uint8_t*>(base);
        if (random_.one_in(4))
            mapped_only();
        for (std::uint64_t steps = random_.below(kStepsMax); steps > 0; steps--)
            step();
        end();
    }

private:
    // The mapping outlives its descriptor.
    void mapped_only() { fd_.reset(); }

    std::uint64_t own_page()
    {
        std::uint64_t rows = region_->pages / options_.programs;
        return random_.below(rows) * options_.programs + slot_;
    }

    void step()
    {
        switch (random_.below(20)) {
        case 0: // any page, by a fault
            sink_ = base_[random_.below(length_)];
            break;
        case 1:
            if (msync(base_ + page_down(random_.below(length_)), kPageBytes, MS_SYNC) < 0)
                leave(kRefuted, "msync", errno);
            break;
        case 2:
            if (fd_ && random_.one_in(8) && fsync(fd_.get()) < 0)
                leave(kRefuted, "fsync", errno);
            break;
        case 3:
            if (fd_ && random_.one_in(4))
                posix_fadvise(fd_.get(), static_cast<off_t>(page_down(random_.below(length_))),
                              16 * kPageBytes, POSIX_FADV_DONTNEED);
            break;
        case 4:
            madvise(base_ + page_down(random_.below(length_)), kPageBytes, MADV_PAGEOUT);
            break;
        default:
            store(own_page());
        }
    }

    void store(std::uint64_t page)
    {
        PageRecord& record = region_->records[page];
        auto word = reinterpret_cast<Word*>(base_ + word_offset(page));
        std::uint64_t before = word->load();
        if (before != record.intent && before != record.done)
            leave(kRefuted, region_->path + " page " + std::to_string(page) + ": stored " +
                                std::to_string(record.done) + ", read " + std::to_string(before));
        std::uint64_t value = record.intent + 1;
        record.intent = value;
        if (fd_ && random_.one_in(4)) {
            if (pwrite(fd_.get(), &value, sizeof value, static_cast<off_t>(word_offset(page))) !=
                sizeof value)
                leave(kRefuted, "pwrite", errno);
        } else {
            word->store(value);
        }
        record.done = value;
    }

    [[noreturn]] void end()
    {
        switch (random_.below(4)) {
        case 0:
            munmap(base_, length_);
            break;
        case 1:
            fd_.reset();
            break;
        case 2:
            raise(SIGKILL);
            break;
        default:
            break;
        }
        std::_Exit(kPassed);
    }

    const Options& options_;
    unsigned slot_;
    Random random_;
    const Region* region_ = nullptr;
    Fd fd_;
    std::uint8_t* base_ = nullptr;
    std::uint64_t length_ = 0;
    volatile std::uint8_t sink_ = 0;
};

pid_t start_program(const Options& options, unsigned slot, std::uint64_t seed)
{
    pid_t pid = fork();
    if (pid < 0)
        die("fork", errno);
    if (pid == 0)
        Program(options, slot, seed).live();
    return pid;
}

bool ended_as_it_may(int status)
{
    return WIFSIGNALED(status) ? WTERMSIG(status) == SIGKILL : WEXITSTATUS(status) == kPassed;
}

// Waits for whichever of ours ends next, at most `wait_ms`; its slot, or -1.
int reap(std::vector<pid_t>& pids, int wait_ms, int& status)
{
    sigset_t child;
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    timespec wait{wait_ms / 1000, wait_ms % 1000 * 1000000L};
    for (int tries = 0; tries < 2; tries++) {
        pid_t pid = waitpid(-1, &status, WNOHANG);
        if (pid > 0)
            return static_cast<int>(std::find(pids.begin(), pids.end(), pid) - pids.begin());
        if (tries == 0)
            sigtimedwait(&child, nullptr, &wait);
    }
    return -1;
}

bool run_programs(const Options& options, Tally& tally)
{
    Random random{mix(options.seed)};
    std::vector<pid_t> pids(options.programs);
    auto start = std::chrono::steady_clock::now();
    for (unsigned slot = 0; slot < options.programs; slot++, tally.started++)
        pids[slot] = start_program(options, slot, random.next());

    bool good = true;
    while (good && seconds_since(start) < static_cast<double>(options.seconds)) {
        int status = 0;
        int slot = reap(pids, static_cast<int>(1 + random.below(30)), status);
        if (slot >= 0) {
            good = ended_as_it_may(status);
            if (!good)
                std::printf("stress: a program ended with wait status 0x%x\n", status);
            pids[static_cast<unsigned>(slot)] =
                start_program(options, static_cast<unsigned>(slot), random.next());
            tally.started++;
        } else {
            kill(pids[random.below(options.programs)], SIGKILL);
            tally.killed++;
        }
    }
    for (pid_t pid : pids)
        kill(pid, SIGKILL);
    for (pid_t pid : pids)
        waitpid(pid, nullptr, 0);
    return good;
}

// Every page here and there holds what its last program stored.
bool verify(const Region& region, bool broken)
{
    Fd fd{open(region.path.c_str(), O_RDWR | O_CLOEXEC)};
    if (!fd || fsync(fd.get()) < 0) {
        std::printf("stress: last fsync of %s: %s\n", region.path.c_str(), std::strerror(errno));
        return false;
    }
    auto target = open_target(region.target);
    auto there = target->read(0, region.pages * kPageBytes);
    std::uint64_t wrong = 0;
    for (std::uint64_t page = 0; page < region.pages; page++) {
        PageRecord& record = region.records[page];
        std::uint64_t on_target = 0;
        std::uint64_t here = 0;
        std::memcpy(&on_target, there.data() + word_offset(page), sizeof on_target);
        if (pread(fd.get(), &here, sizeof here, static_cast<off_t>(word_offset(page))) !=
            sizeof here)
            die("pread", errno);
        if (broken && page == region.pages / 2)
            on_target++;
        if (here == on_target && (here == record.intent || here == record.done))
            continue;
        if (wrong++ < 10)
            std::printf("LOST STORE: %s page %llu: stored %llu (or %llu), here %llu, target %llu\n",
                        region.path.c_str(), static_cast<unsigned long long>(page),
                        static_cast<unsigned long long>(record.done.load()),
                        static_cast<unsigned long long>(record.intent.load()),
                        static_cast<unsigned long long>(here),
                        static_cast<unsigned long long>(on_target));
    }
    return wrong == 0;
}

// All words of all pages start as 0, on the target.
void prepare(Region& region)
{
    Fd fd{open(region.path.c_str(), O_RDWR | O_CLOEXEC)};
    struct stat st {};
    if (!fd || fstat(fd.get(), &st) < 0)
        die(region.path, errno);
    region.pages =
        std::min<std::uint64_t>(static_cast<std::uint64_t>(st.st_size) / kPageBytes, kPagesMax);
    std::vector<std::uint8_t> zeros(region.pages * kPageBytes);
    if (pwrite(fd.get(), zeros.data(), zeros.size(), 0) != static_cast<ssize_t>(zeros.size()) ||
        fsync(fd.get()) < 0)
        die("cannot clear " + region.path, errno);
    void* records = mmap(nullptr, region.pages * sizeof(PageRecord), PROT_READ | PROT_WRITE,
                         MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (records == MAP_FAILED)
        die("no memory for the records", errno);
    region.records = static_cast<PageRecord*>(records);
}

Options parse_options(int argc, char** argv)
{
    static const option known[] = {{"region", required_argument, nullptr, 1},
                                   {"target", required_argument, nullptr, 2},
                                   {"programs", required_argument, nullptr, 3},
                                   {"seconds", required_argument, nullptr, 4},
                                   {"seed", required_argument, nullptr, 5},
                                   {"break", no_argument, nullptr, 6},
                                   {nullptr, 0, nullptr, 0}};
    Options options;
    bool bad = false;
    for (int opt; (opt = getopt_long(argc, argv, "", known, nullptr)) != -1;) {
        switch (opt) {
        case 1:
            options.regions.push_back({optarg, "", 0, nullptr});
            break;
        case 2:
            bad |= options.regions.empty();
            if (!bad)
                options.regions.back().target = optarg;
            break;
        case 3:
            options.programs = static_cast<unsigned>(parse_number("--programs", optarg));
            break;
        case 4:
            options.seconds = parse_number("--seconds", optarg);
            break;
        case 5:
            options.seed = parse_number("--seed", optarg);
            break;
        case 6:
            options.broken = true;
            break;
        default:
            bad = true;
        }
    }
    for (const Region& region : options.regions)
        bad |= region.target.empty();
    if (bad || options.regions.empty() || optind != argc || options.programs == 0)
        die("usage: stress --region FILE --target file:PATH|tcp:HOST:PORT [--region ...] "
            "[--programs N] [--seconds N] [--seed N] [--break]");
    return options;
}

} // namespace

int main(int argc, char** argv)
{
    Options options = parse_options(argc, argv);
    for (Region& region : options.regions) {
        prepare(region);
        if (region.pages < options.programs)
            die(region.path + " has fewer pages than there are programs");
    }
    sigset_t child;
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    sigprocmask(SIG_BLOCK, &child, nullptr);

    Tally tally;
    bool good = run_programs(options, tally);
    std::uint64_t stores = 0;
    for (Region& region : options.regions) {
        good = verify(region, options.broken) && good;
        for (std::uint64_t page = 0; page < region.pages; page++)
            stores += region.records[page].done;
    }
    std::printf("stress: %s, seed %llu, %llu programs, %llu killed from outside, %llu stores\n",
                good ? "passed" : "FAILED", static_cast<unsigned long long>(options.seed),
                static_cast<unsigned long long>(tally.started),
                static_cast<unsigned long long>(tally.killed),
                static_cast<unsigned long long>(stores));
    return good ? kPassed : kRefuted;
}
