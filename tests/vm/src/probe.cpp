// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// probe: does system calls as told on standard input, one a line, and checks how each ends.
//
//     [within MS] [after MS] [! ERRNO|SIGBUS] CALL ARGUMENTS
//
// Without `!` the call must succeed; with it, it must fail in exactly that way; `within` and
// `after` bound its time. After each line one line of output: `ok CALL 12 ms`. The first line that
// ends otherwise is `FAILED ...` and exit 1. `hold` keeps a page in a pipe, `release` empties it.
// Sizes take K, M, G, T; bytes are 0..255; `use` chooses one of four slots, each with a descriptor
// and a mapping.
#include "common.hpp"

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csetjmp>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <functional>
#include <iostream>
#include <map>
#include <sstream>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <grp.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

using namespace smc::test;

namespace {

constexpr int kOk = 0;
constexpr int kSigbus = -1;     // outcome of a call, beside errno values
constexpr int kUnexpected = -2; // content is wrong: never what a script asks for

sigjmp_buf on_bus;

extern "C" void jump_out(int)
{
    siglongjmp(on_bus, 1);
}

struct Slot {
    Fd fd;
    std::uint8_t* base = nullptr;
    std::uint64_t length = 0;
    Fd held; // a pipe's ends: where the page comes out, and where it went in
    Fd holds;
};

std::array<Slot, 4> slots;
unsigned current = 0;
std::string detail; // what was wrong with a content, or what a call has found

Slot& slot()
{
    return slots[current];
}
int result(long value)
{
    return value < 0 ? errno : kOk;
}

class Arguments {
public:
    explicit Arguments(std::vector<std::string> words) : words_(std::move(words)) {}
    std::string text()
    {
        if (next_ == words_.size())
            die("a word is missing after: " + words_[0]);
        return words_[next_++];
    }
    std::uint64_t number() { return parse_number(words_[0], text().c_str()); }
    off_t offset() { return static_cast<off_t>(number()); }

private:
    std::vector<std::string> words_;
    std::size_t next_ = 1;
};

int open_file(Arguments& a)
{
    std::string how = a.text();
    std::string path = a.text();
    int flags = O_CLOEXEC;
    std::istringstream parts(how);
    for (std::string part; std::getline(parts, part, '+');) {
        if (part == "r")
            flags |= O_RDONLY;
        else if (part == "w")
            flags |= O_WRONLY;
        else if (part == "rw")
            flags |= O_RDWR;
        else if (part == "trunc")
            flags |= O_TRUNC;
        else if (part == "direct")
            flags |= O_DIRECT;
        else if (part == "sync")
            flags |= O_SYNC;
        else if (part == "append")
            flags |= O_APPEND;
        else if (part == "creat")
            flags |= O_CREAT;
        else if (part == "nonblock")
            flags |= O_NONBLOCK;
        else
            die("open: no such flag: " + part);
    }
    slot().fd = Fd{open(path.c_str(), flags, 0600)};
    return slot().fd ? kOk : errno;
}

int protection(const std::string& text)
{
    int prot = 0;
    for (char c : text)
        prot |= c == 'r' ? PROT_READ : c == 'w' ? PROT_WRITE : c == 'x' ? PROT_EXEC : 0;
    return prot;
}

int map_file(Arguments& a)
{
    int prot = protection(a.text());
    int flags = a.text() == "private" ? MAP_PRIVATE : MAP_SHARED;
    off_t offset = a.offset();
    std::uint64_t length = a.number();
    struct stat st {};
    if (length == 0 && fstat(slot().fd.get(), &st) == 0)
        length = static_cast<std::uint64_t>(st.st_size);
    void* base = mmap(nullptr, length, prot, flags | MAP_NORESERVE, slot().fd.get(), offset);
    if (base == MAP_FAILED)
        return errno;
    slot().base = static_cast<std::uint8_t*>(base);
    slot().length = length;
    return kOk;
}

std::uint8_t* mapped(std::uint64_t offset, std::uint64_t length)
{
    if (!slot().base || offset > slot().length || length > page_up(slot().length) - offset)
        die("that is not mapped");
    return slot().base + offset;
}

int compare(const std::uint8_t* got, std::uint64_t offset, std::uint64_t length, unsigned byte)
{
    for (std::uint64_t i = 0; i < length; i++) {
        if (got[i] == byte)
            continue;
        detail = "offset " + std::to_string(offset + i) + ": expected " + std::to_string(byte) +
                 ", got " + std::to_string(got[i]);
        return kUnexpected;
    }
    return kOk;
}

int whole(ssize_t got, std::uint64_t wanted)
{
    if (got < 0)
        return errno;
    if (static_cast<std::uint64_t>(got) == wanted)
        return kOk;
    detail = "moved " + std::to_string(got) + " bytes of " + std::to_string(wanted);
    return kUnexpected;
}

int is_equal(std::uint64_t got, std::uint64_t wanted)
{
    if (got == wanted)
        return kOk;
    detail = "expected " + std::to_string(wanted) + ", got " + std::to_string(got);
    return kUnexpected;
}

// Page-aligned, as O_DIRECT asks for.
std::uint8_t* buffer(std::uint64_t length)
{
    static std::uint8_t* at = nullptr;
    static std::uint64_t have = 0;
    if (length > have) {
        have = page_up(length);
        void* fresh =
            mmap(nullptr, have, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (fresh == MAP_FAILED)
            die("no memory for a buffer", errno);
        at = static_cast<std::uint8_t*>(fresh);
    }
    return at;
}

struct stat status_of_file()
{
    struct stat st {};
    if (fstat(slot().fd.get(), &st) < 0)
        die("fstat", errno);
    return st;
}

using Call = std::function<int(Arguments&)>;

int touch(Arguments& a, bool store)
{
    std::uint64_t offset = a.number();
    std::uint64_t length = a.number();
    std::uint8_t* at = mapped(offset, length);
    if (store) {
        std::memset(at, static_cast<int>(a.number()), length);
        return kOk;
    }
    volatile std::uint8_t sink = 0;
    for (std::uint64_t i = 0; i < length; i += kPageBytes)
        sink = at[i];
    (void)sink;
    return kOk;
}

int expect(Arguments& a)
{
    std::uint64_t offset = a.number();
    std::uint64_t length = a.number();
    return compare(mapped(offset, length), offset, length, static_cast<unsigned>(a.number()));
}

int pwrite_bytes(Arguments& a)
{
    off_t offset = a.offset();
    std::uint64_t length = a.number();
    std::uint8_t* bytes = buffer(length);
    std::memset(bytes, static_cast<int>(a.number()), length);
    return whole(pwrite(slot().fd.get(), bytes, length, offset), length);
}

int pread_bytes(Arguments& a, bool check)
{
    off_t offset = a.offset();
    std::uint64_t length = a.number();
    std::uint8_t* bytes = buffer(length);
    int outcome = whole(pread(slot().fd.get(), bytes, length, offset), length);
    if (outcome != kOk || !check)
        return outcome;
    return compare(bytes, static_cast<std::uint64_t>(offset), length,
                   static_cast<unsigned>(a.number()));
}

int acquire(Arguments& a)
{
    off_t offset = a.offset();
    return posix_fadvise(slot().fd.get(), offset, a.offset(), POSIX_FADV_DONTNEED);
}

// A pipe that holds a reference to the page itself.
int hold_page(Arguments& a)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return errno;
    slot().held = Fd{ends[0]};
    slot().holds = Fd{ends[1]};
    off64_t offset = a.offset();
    return whole(splice(slot().fd.get(), &offset, ends[1], nullptr, kPageBytes, 0), kPageBytes);
}

int release_page(Arguments&)
{
    return whole(read(slot().held.get(), buffer(kPageBytes), kPageBytes), kPageBytes);
}

// The page that is held goes half a second after the kernel has put this thread to sleep in the
// acquire: longer than a few tries take, far shorter than it is to wait.
int acquire_and_release(Arguments& a)
{
    Fd state{open(("/proc/self/task/" + std::to_string(gettid()) + "/syscall").c_str(),
                  O_RDONLY | O_CLOEXEC)};
    if (!state)
        return errno;
    std::string asleep = std::to_string(SYS_fadvise64) + " ";
    std::atomic<bool> returned = false;
    int released = kUnexpected;
    std::thread other([&] {
        while (!returned) {
            char text[8] = {};
            if (pread(state.get(), text, sizeof text - 1, 0) < 0 ||
                std::string(text).rfind(asleep, 0) != 0)
                continue;
            std::this_thread::sleep_for(std::chrono::milliseconds(500));
            released = release_page(a);
            return;
        }
        detail = "it did not wait";
    });
    int outcome = acquire(a);
    returned = true;
    other.join();
    return outcome == kOk ? released : outcome;
}

int become(Arguments& a)
{
    auto id = static_cast<id_t>(a.number());
    if (setgroups(0, nullptr) < 0 || setgid(id) < 0 || setuid(id) < 0)
        return errno;
    return kOk;
}

const std::map<std::string, Call> kCalls = {
    {"use",
     [](Arguments& a) {
         current = static_cast<unsigned>(a.number()) % 4;
         return kOk;
     }},
    {"open", open_file},
    {"close",
     [](Arguments&) {
         slot().fd.reset();
         return kOk;
     }},
    {"map", map_file},
    {"unmap", [](Arguments&) { return result(munmap(slot().base, slot().length)); }},
    {"random", // no readahead, so no large folios either
     [](Arguments&) { return result(madvise(slot().base, slot().length, MADV_RANDOM)); }},
    {"hugepage", // as large folios as there are
     [](Arguments&) { return result(madvise(slot().base, slot().length, MADV_HUGEPAGE)); }},
    {"sequential", // a wider window of readahead
     [](Arguments&) { return posix_fadvise(slot().fd.get(), 0, 0, POSIX_FADV_SEQUENTIAL); }},
    {"mprotect",
     [](Arguments& a) {
         int prot = protection(a.text());
         std::uint64_t offset = a.number();
         std::uint64_t length = a.number();
         return result(mprotect(mapped(offset, length), length, prot));
     }},
    {"store", [](Arguments& a) { return touch(a, true); }},
    {"load", [](Arguments& a) { return touch(a, false); }},
    {"expect", expect},
    {"pwrite", pwrite_bytes},
    {"pread", [](Arguments& a) { return pread_bytes(a, false); }},
    {"pexpect", [](Arguments& a) { return pread_bytes(a, true); }},
    {"where",
     [](Arguments&) { // the mapping's address and this process, for a debugger
         char text[64];
         std::snprintf(text, sizeof text, "%p %d", static_cast<void*>(slot().base), getpid());
         detail = text;
         return kOk;
     }},
    {"read-at-end",
     [](Arguments& a) { // moves 0 bytes
         return whole(pread(slot().fd.get(), buffer(64), 64, a.offset()), 0);
     }},
    {"read-short",
     [](Arguments& a) { // OFFSET LENGTH MOVED: fewer bytes than asked for, since the file ends
         off_t offset = a.offset();
         std::uint64_t length = a.number();
         return whole(pread(slot().fd.get(), buffer(length), length, offset), a.number());
     }},
    {"seek-end",
     [](Arguments& a) {
         return is_equal(static_cast<std::uint64_t>(lseek(slot().fd.get(), 0, SEEK_END)),
                         a.number());
     }},
    {"msync",
     [](Arguments& a) {
         std::uint64_t offset = a.number();
         std::uint64_t length = a.number();
         return result(msync(mapped(offset, length), length, MS_SYNC));
     }},
    {"fsync", [](Arguments&) { return result(fsync(slot().fd.get())); }},
    {"fdatasync", [](Arguments&) { return result(fdatasync(slot().fd.get())); }},
    {"syncfs", [](Arguments&) { return result(syncfs(slot().fd.get())); }},
    {"acquire", acquire},
    {"hold", hold_page},
    {"release", release_page},
    {"acquire-release", acquire_and_release},
    {"truncate", [](Arguments& a) { return result(ftruncate(slot().fd.get(), a.offset())); }},
    {"fallocate",
     [](Arguments& a) {
         off_t offset = a.offset();
         return result(fallocate(slot().fd.get(), 0, offset, a.offset()));
     }},
    {"size",
     [](Arguments& a) {
         return is_equal(static_cast<std::uint64_t>(status_of_file().st_size), a.number());
     }},
    {"blocks",
     [](Arguments& a) {
         return is_equal(static_cast<std::uint64_t>(status_of_file().st_blocks), a.number());
     }},
    {"become", become},
    {"die",
     [](Arguments&) {
         raise(SIGKILL);
         return kOk;
     }},
    {"exit", [](Arguments& a) -> int { std::_Exit(static_cast<int>(a.number())); }},
};

const char* name_of(int outcome)
{
    if (outcome == kSigbus)
        return "SIGBUS";
    if (outcome == kUnexpected)
        return "wrong";
    return outcome == kOk ? "ok" : strerrorname_np(outcome);
}

int do_call(const Call& call, Arguments& arguments)
{
    detail.clear();
    if (sigsetjmp(on_bus, 1))
        return kSigbus;
    return call(arguments);
}

void do_line(const std::string& line)
{
    std::istringstream stream(line);
    std::vector<std::string> words;
    for (std::string word; stream >> word;)
        words.push_back(word);
    if (words.empty() || words[0][0] == '#')
        return;

    long within_ms = -1;
    long after_ms = -1;
    std::string wanted = "ok";
    for (auto [word, bound] : {std::pair{"within", &within_ms}, std::pair{"after", &after_ms}}) {
        if (words[0] != word || words.size() < 3)
            continue;
        *bound = static_cast<long>(parse_number(word, words[1].c_str()));
        words.erase(words.begin(), words.begin() + 2);
    }
    if (words[0] == "!" && words.size() > 2) {
        wanted = words[1];
        words.erase(words.begin(), words.begin() + 2);
    }
    auto found = kCalls.find(words[0]);
    if (found == kCalls.end())
        die("no such call: " + line);

    Arguments arguments(words);
    auto start = std::chrono::steady_clock::now();
    int outcome = do_call(found->second, arguments);
    auto took_ms = static_cast<long>(seconds_since(start) * 1000);
    const char* got = name_of(outcome);
    if (wanted != got || (within_ms >= 0 && took_ms > within_ms) || took_ms < after_ms) {
        std::printf("FAILED '%s': %s after %ld ms%s%s\n", line.c_str(), got, took_ms,
                    detail.empty() ? "" : ", ", detail.c_str());
        std::fflush(stdout);
        std::_Exit(kRefuted);
    }
    std::printf("%s %s %ld ms%s%s\n", got, words[0].c_str(), took_ms, detail.empty() ? "" : " ",
                detail.c_str());
    std::fflush(stdout);
}

} // namespace

int main(int argc, char**)
{
    if (argc != 1)
        die("usage: probe < SCRIPT");
    struct sigaction action {};
    action.sa_handler = jump_out;
    action.sa_flags = SA_NODEFER;
    sigaction(SIGBUS, &action, nullptr);
    for (std::string line; std::getline(std::cin, line);)
        do_line(line);
    return kPassed;
}
