// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// floats: floats that are stored over others, and who looks at them in the target's memory.
//
//     floats store FILE STORES [--break]    FILE is mapped; meanwhile a thread flushes it
//     floats watch FILE                     until the word behind the floats says that it is over
//
// Every float is one of two values that differ in all bytes, or was not stored yet: whatever else is seen
// there is a store seen half-written. Most stores go through the mapping, some by pwrite. With
// --break a float is stored in halves.
//
// Failure: exit 1 with the offset and what was seen.
#include "common.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>

using namespace smc::test;

namespace {

constexpr std::uint64_t kPages = 4; // few, so that a look at all of them is soon over
constexpr std::uint64_t kFloats = kPages * kPageBytes / sizeof(float);
constexpr std::uint64_t kEndOffset = kPages * kPageBytes;
constexpr std::uint64_t kBytes = kEndOffset + kPageBytes;
constexpr std::uint32_t kEnd = 1;
constexpr std::array<std::uint32_t, 2> kValues{0x3f91c5a6, 0xc06e3a59}; // 1.1388, -3.7223
constexpr std::uint64_t kBusy = 64;       // floats that get half of all stores
constexpr std::uint64_t kWriteEvery = 16; // by pwrite
constexpr std::uint64_t kYieldEvery = 32;
constexpr std::uint64_t kChangesMin = 1000; // that a watcher has to see

static_assert(sizeof(float) == sizeof(std::uint32_t));

class File {
public:
    File(const char* path, int flags) : fd_(open(path, flags | O_CLOEXEC))
    {
        if (!fd_)
            die(path, errno);
        const int prot = flags == O_RDONLY ? PROT_READ : PROT_READ | PROT_WRITE;
        void* base = mmap(nullptr, kBytes, prot, MAP_SHARED, fd_.get(), 0);
        if (base == MAP_FAILED)
            die("mmap", errno);
        base_ = static_cast<std::uint8_t*>(base);
    }
    int fd() const { return fd_.get(); }
    volatile float* at(std::uint64_t index) const
    {
        return reinterpret_cast<volatile float*>(base_) + index;
    }
    std::uint32_t bits(std::uint64_t index) const
    {
        return reinterpret_cast<std::atomic<std::uint32_t>*>(base_)[index].load(
            std::memory_order_relaxed);
    }
    std::uint32_t end() const { return bits(kFloats); }
    void sync() const
    {
        if (fsync(fd_.get()) < 0)
            die("fsync", errno);
    }
    void write(std::uint64_t offset, const void* bytes, std::size_t length) const
    {
        if (pwrite(fd_.get(), bytes, length, static_cast<off_t>(offset)) !=
            static_cast<ssize_t>(length))
            die("pwrite", errno);
    }
    void sync_page(std::uint64_t page) const
    {
        if (msync(base_ + page * kPageBytes, kPageBytes, MS_SYNC) < 0)
            die("msync", errno);
    }

private:
    Fd fd_;
    std::uint8_t* base_ = nullptr;
};

void store_in_halves(volatile float* to, float value)
{
    const auto halves = std::bit_cast<std::array<std::uint16_t, 2>>(value);
    auto* at = reinterpret_cast<volatile std::uint16_t*>(to);
    at[0] = halves[0];
    sched_yield();
    at[1] = halves[1];
}

// Barriers, one after the other, while the stores go on.
void flush(const File& file, const std::atomic<bool>& stop)
{
    Random random(3);
    while (!stop) {
        if (random.one_in(2))
            file.sync();
        else
            file.sync_page(random.below(kPages));
        std::this_thread::sleep_for(std::chrono::microseconds(random.below(500)));
    }
}

int store(const char* path, std::uint64_t stores, bool broken)
{
    const File file(path, O_RDWR);
    std::atomic<bool> stop{false};
    std::thread flusher([&] { flush(file, stop); });
    std::vector<std::uint8_t> last(kFloats);
    Random random(5);
    const auto start = std::chrono::steady_clock::now();
    for (std::uint64_t n = 0; n < stores; n++) {
        const std::uint64_t index =
            random.one_in(2) ? random.below(kBusy) * (kFloats / kBusy) : random.below(kFloats);
        last[index] ^= 1;
        const auto value = std::bit_cast<float>(kValues[last[index]]);
        if (broken)
            store_in_halves(file.at(index), value);
        else if (random.one_in(kWriteEvery))
            file.write(index * sizeof value, &value, sizeof value);
        else
            *file.at(index) = value;
        // To who flushes, if there is one processor.
        if (random.one_in(kYieldEvery))
            sched_yield();
    }
    stop = true;
    flusher.join();
    file.sync();
    const std::uint32_t end = kEnd;
    file.write(kEndOffset, &end, sizeof end);
    file.sync();
    std::printf("floats: %llu stores in %.1f s\n", static_cast<unsigned long long>(stores),
                seconds_since(start));
    return kPassed;
}

int watch(const char* path)
{
    const File file(path, O_RDONLY);
    std::puts("watching");
    std::fflush(stdout);
    std::vector<std::uint32_t> last(kFloats);
    std::uint64_t changes = 0;
    std::uint64_t looks = 0;
    for (bool over = false; !over; looks++) {
        over = file.end() == kEnd; // one more look after that
        for (std::uint64_t i = 0; i < kFloats; i++) {
            const std::uint32_t seen = file.bits(i);
            if (seen == last[i])
                continue;
            last[i] = seen;
            changes++;
            if (std::find(kValues.begin(), kValues.end(), seen) != kValues.end())
                continue;
            std::printf("offset %llu: 0x%08x\n", static_cast<unsigned long long>(i) * 4, seen);
            leave(kRefuted, "a float was seen half-written");
        }
        sched_yield();
    }
    std::printf("floats: %llu looks, %llu changes seen\n", static_cast<unsigned long long>(looks),
                static_cast<unsigned long long>(changes));
    if (changes < kChangesMin)
        leave(kRefuted, "too few changes were seen to prove anything");
    return kPassed;
}

} // namespace

int main(int argc, char** argv)
{
    const std::vector<std::string> words(argv + 1, argv + argc);
    const bool broken = words.size() == 4 && words[3] == "--break";
    if (words.size() == 2 && words[0] == "watch")
        return watch(argv[2]);
    if ((words.size() == 3 || broken) && words[0] == "store")
        return store(argv[2], parse_number("STORES", argv[3]), broken);
    die("usage: floats store FILE STORES [--break], or floats watch FILE");
}
