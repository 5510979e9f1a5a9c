// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// fail-nth: does each call on a region's file again and again, while the first, the second, ...
// allocation that the kernel makes for it fails, until it needs none that does.
//
// Whichever fails, the call ends with success or for want of memory, the same call without a fault
// succeeds right after it, and at the end the file holds what was written to it.
// Failure: exit 1 with the call, the number of the allocation, and how the call ended. Exit 2 where the
// kernel cannot inject faults.
#include "common.hpp"

#include <cerrno>
#include <csetjmp>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

using namespace smc::test;

namespace {

constexpr std::uint64_t kBytes = 64 * kPageBytes; // of the file that are used
constexpr std::uint64_t kPieceBytes = 16 * kPageBytes;
constexpr unsigned kFaultsMax = 2000; // of one call
constexpr int kSigbus = -1;           // outcome of a call, beside errno values

sigjmp_buf on_bus;

extern "C" void jump_out(int)
{
    siglongjmp(on_bus, 1);
}

// The faults of this thread. The kernel counts allocations down and lets fail the one that meets 0.
class Faults {
public:
    Faults() : fd_(open("/proc/thread-self/fail-nth", O_RDWR | O_CLOEXEC))
    {
        if (!fd_)
            die("this kernel injects no faults: fail-nth", errno);
        // Else only allocations fail that cannot sleep, and pages never.
        set("failslab/ignore-gfp-wait", "N");
        set("fail_page_alloc/ignore-gfp-wait", "N");
        set("fail_page_alloc/ignore-gfp-highmem", "N");
        set("fail_page_alloc/min-order", "0");
        // A stack for each is no news.
        set("failslab/verbose", "0");
        set("fail_page_alloc/verbose", "0");
    }
    void arm(unsigned n)
    {
        std::string text = std::to_string(n);
        if (pwrite(fd_.get(), text.data(), text.size(), 0) < 0)
            die("fail-nth", errno);
    }
    // Return: did one fail since arm()?
    bool disarm()
    {
        char text[16] = {};
        if (pread(fd_.get(), text, sizeof text - 1, 0) < 0)
            die("fail-nth", errno);
        arm(0);
        return std::atoi(text) == 0;
    }

private:
    static void set(const char* file, const char* value)
    {
        std::string path = std::string("/sys/kernel/debug/") + file;
        Fd fd{open(path.c_str(), O_WRONLY | O_CLOEXEC)};
        if (!fd || write(fd.get(), value, std::strlen(value)) < 0)
            die(path, errno);
    }

    Fd fd_;
};

int result(long value)
{
    return value < 0 ? errno : 0;
}

int whole(ssize_t moved, std::uint64_t wanted)
{
    if (moved < 0)
        return errno;
    // A short count is how a call says that it ended early.
    return static_cast<std::uint64_t>(moved) == wanted ? 0 : ENOMEM;
}

// One call: what puts the file into the state that it needs, and itself.
struct Step {
    const char* name;
    std::function<void()> before;
    std::function<int()> call;
};

class Run {
public:
    explicit Run(std::string path) : path_(std::move(path)), model_(kBytes)
    {
        int error = open_file();
        if (error)
            die(path_, error);
        direct_ = Fd{open(path_.c_str(), O_RDWR | O_DIRECT | O_CLOEXEC)};
        void* bytes =
            mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (!direct_ || bytes == MAP_FAILED)
            die(path_, errno);
        bytes_ = static_cast<std::uint8_t*>(bytes);
        std::memset(bytes_, 0, kBytes);
        must("pwrite", whole(pwrite(fd_.get(), bytes_, kBytes, 0), kBytes));
        must("mmap", map());
    }

    void all()
    {
        for (const Step& step : steps())
            one(step);
        compare();
        std::printf("fail-nth: passed, %u allocations failed, %u calls with them\n", faults_,
                    errors_);
        if (!faults_)
            leave(kRefuted, "no allocation failed");
    }

private:
    std::vector<Step> steps()
    {
        auto clean = [this] { must("fsync", result(fsync(fd_.get()))); };
        auto absent = [this] { must("acquire", acquire()); };
        auto dirty = [this] { must("store", store()); };
        return {
            {"open", [this] { fd_.reset(); }, [this] { return open_file(); }},
            {"list", [] {}, [this] { return list(); }},
            {"look up what is not there", [this] { names_++; }, [this] { return look_up(); }},
            {"mmap", [this] { munmap(base_, kBytes); }, [this] { return map(); }},
            {"load", absent, [this] { return load(); }},
            {"pread", absent, [this] { return read_piece(fd_); }},
            {"readahead", absent,
             [this] { return posix_fadvise(fd_.get(), 0, kBytes, POSIX_FADV_WILLNEED); }},
            {"store", clean, [this] { return store(); }},
            {"store to what is not here", absent, [this] { return store(); }},
            {"pwrite", clean, [this] { return write_piece(fd_, 100, kPieceBytes + 77); }},
            {"pwrite to what is not here", absent,
             [this] { return write_piece(fd_, 100, kPieceBytes + 77); }},
            {"read past the cache", dirty, [this] { return read_piece(direct_); }},
            {"write past the cache", dirty,
             [this] { return write_piece(direct_, kPieceBytes, kPieceBytes); }},
            {"msync", dirty, [this] { return result(msync(base_, kBytes, MS_SYNC)); }},
            {"fsync", dirty, [this] { return result(fsync(fd_.get())); }},
            {"acquire", dirty, [this] { return acquire(); }},
            {"close", dirty, [this] { return close_other(); }},
        };
    }

    void one(const Step& step)
    {
        unsigned failed = 0;
        for (unsigned n = 1;; n++) {
            step.before();
            value_++;
            faults_of_thread_.arm(n);
            int outcome = do_call(step.call);
            bool fault = faults_of_thread_.disarm();
            if (outcome && outcome != ENOMEM && outcome != ENOBUFS && outcome != kSigbus)
                refute(step, n, outcome);
            if (outcome && !fault)
                refute(step, n, outcome);
            if (!fault) {
                std::printf("fail-nth: %s: %u allocations, %u errors\n", step.name, n - 1, failed);
                return;
            }
            faults_++;
            failed += outcome != 0;
            errors_ += outcome != 0;
            if (n == kFaultsMax)
                leave(kRefuted, std::string(step.name) + ": never ends");
            // What failed is as it was: the same once more.
            outcome = do_call(step.call);
            if (outcome)
                refute(step, 0, outcome);
        }
    }

    [[noreturn]] static void refute(const Step& step, unsigned n, int outcome)
    {
        std::string how = n ? " while allocation " + std::to_string(n) + " fails" : " after that";
        leave(kRefuted, step.name + how + (outcome == kSigbus ? ": SIGBUS" : ""),
              outcome == kSigbus ? 0 : outcome);
    }

    static int do_call(const std::function<int()>& call)
    {
        if (sigsetjmp(on_bus, 1))
            return kSigbus;
        return call();
    }

    static void must(const char* what, int error)
    {
        if (error)
            leave(kRefuted, std::string(what) + " without a fault", error);
    }

    int open_file()
    {
        fd_ = Fd{open(path_.c_str(), O_RDWR | O_CLOEXEC)};
        return fd_ ? 0 : errno;
    }

    int list()
    {
        DIR* dir = opendir(path_.substr(0, path_.rfind('/')).c_str());
        if (!dir)
            return errno;
        errno = 0;
        while (readdir(dir)) {}
        int error = errno;
        closedir(dir);
        return error;
    }

    // Each time another name: the answer is remembered for a while.
    int look_up()
    {
        struct stat st {};
        std::string name = path_ + "-" + std::to_string(names_);
        if (stat(name.c_str(), &st) == 0)
            return EEXIST;
        return errno == ENOENT ? 0 : errno;
    }

    int map()
    {
        void* base = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd_.get(), 0);
        if (base == MAP_FAILED)
            return errno;
        base_ = static_cast<std::uint8_t*>(base);
        return 0;
    }

    int load()
    {
        volatile std::uint8_t sink = 0;
        for (std::uint64_t at = 0; at < kBytes; at += kPageBytes)
            sink = base_[at];
        (void)sink;
        return 0;
    }

    int store()
    {
        for (std::uint64_t at = 10; at < kPieceBytes; at += kPageBytes)
            base_[at] = model_[at] = value_;
        return 0;
    }

    int read_piece(const Fd& fd)
    {
        int error = whole(pread(fd.get(), bytes_, kPieceBytes, 0), kPieceBytes);
        if (!error && std::memcmp(bytes_, model_.data(), kPieceBytes) != 0)
            leave(kRefuted, "read other bytes than were written");
        return error;
    }

    int write_piece(const Fd& fd, off_t at, std::uint64_t length)
    {
        std::memset(bytes_, value_, length);
        std::memset(model_.data() + at, value_, length);
        return whole(pwrite(fd.get(), bytes_, length, at), length);
    }

    int acquire() { return posix_fadvise(fd_.get(), 0, 0, POSIX_FADV_DONTNEED); }

    // The last close of another descriptor for writing: close-to-open makes it a barrier.
    int close_other()
    {
        int other = open(path_.c_str(), O_RDWR | O_CLOEXEC);
        return other < 0 ? errno : result(close(other));
    }

    void compare()
    {
        must("acquire", acquire());
        must("pread", whole(pread(fd_.get(), bytes_, kBytes, 0), kBytes));
        if (std::memcmp(bytes_, model_.data(), kBytes) != 0)
            leave(kRefuted, "at the end the file holds other bytes than were written");
    }

    Faults faults_of_thread_;
    std::string path_;
    Fd fd_, direct_;
    std::uint8_t* base_ = nullptr;
    std::uint8_t* bytes_ = nullptr;
    std::vector<std::uint8_t> model_; // what the file holds
    std::uint8_t value_ = 0;
    unsigned names_ = 0;
    unsigned faults_ = 0;
    unsigned errors_ = 0;
};

} // namespace

int main(int argc, char** argv)
{
    if (argc != 2)
        die("usage: fail-nth FILE, which has 256 KiB or more");
    struct sigaction action {};
    action.sa_handler = jump_out;
    action.sa_flags = SA_NODEFER;
    sigaction(SIGBUS, &action, nullptr);
    Run(argv[1]).all();
    return kPassed;
}
