// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// accel-standin FILE JOBS: stands where an accelerator's program would. It maps the memory that the
// daemon exports, knows nothing of SMC, and waits for a flag in that memory.
//
//     offset 0       request   u64, written by the other node: number of the job, rising from 1
//     offset 8       count     u64, how many float32 there are
//     offset 16      factor    float32
//     offset 4096    done      u64, written here, last of all: number of the job that is finished
//     offset 4104    sum       double, of the results
//     offset 64 Ki   input     float32[count], written by the other node
//     after it       output    float32[count], from the next page border: factor * input + index
//
// Pages that the other node writes and pages that are written here are apart, as an exclusive region
// asks for. The request is read with acquire: when its new value is seen, so is the input that was
// flushed before it. `done` is stored with release, after everything else.
#include "common.hpp"

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

using namespace smc::test;

namespace {

constexpr std::uint64_t kResultPage = kPageBytes;
constexpr std::uint64_t kInput = 64 << 10;
constexpr unsigned kSpins = 1000; // before it sleeps between looks, to leave a shared CPU
constexpr long kPauseNs = 200'000;

struct Memory {
    std::uint8_t* base;
    std::uint64_t size;

    template <typename T>
    T* at(std::uint64_t offset) const
    {
        return reinterpret_cast<T*>(base + offset);
    }
    std::atomic<std::uint64_t>& request() const { return *at<std::atomic<std::uint64_t>>(0); }
    std::atomic<std::uint64_t>& done() const
    {
        return *at<std::atomic<std::uint64_t>>(kResultPage);
    }
};

void wait_for(const Memory& memory, std::uint64_t job)
{
    // Partner: the other node's write of `request` after a barrier of the input.
    for (unsigned spins = 0; memory.request().load(std::memory_order_acquire) != job; spins++) {
        timespec pause{0, kPauseNs};
        if (spins > kSpins)
            nanosleep(&pause, nullptr);
    }
}

void compute(const Memory& memory)
{
    std::uint64_t count = *memory.at<std::uint64_t>(8);
    float factor = *memory.at<float>(16);
    std::uint64_t output = page_up(kInput + count * sizeof(float));
    if (count > memory.size || output + count * sizeof(float) > memory.size)
        leave(kRefuted, "a count of " + std::to_string(count) + " does not fit the memory");

    const auto* in = memory.at<const float>(kInput);
    auto* out = memory.at<float>(output);
    double sum = 0;
    for (std::uint64_t i = 0; i < count; i++) {
        out[i] = factor * in[i] + static_cast<float>(i);
        sum += static_cast<double>(out[i]);
    }
    *memory.at<double>(kResultPage + 8) = sum;
}

} // namespace

int main(int argc, char** argv)
{
    if (argc != 3)
        die("usage: accel-standin FILE JOBS");
    Fd fd{open(argv[1], O_RDWR | O_CLOEXEC)};
    struct stat st {};
    if (!fd || fstat(fd.get(), &st) < 0)
        die(argv[1], errno);
    Memory memory{nullptr, static_cast<std::uint64_t>(st.st_size)};
    if (memory.size < kInput + kPageBytes)
        die(std::string(argv[1]) + " is too small");
    void* base = mmap(nullptr, memory.size, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
    if (base == MAP_FAILED)
        die("mmap", errno);
    memory.base = static_cast<std::uint8_t*>(base);

    std::uint64_t jobs = parse_number("JOBS", argv[2]);
    std::uint64_t first = memory.request().load() + 1;
    std::printf("accel-standin: polling for job %llu\n", static_cast<unsigned long long>(first));
    std::fflush(stdout);
    for (std::uint64_t job = first; job < first + jobs; job++) {
        wait_for(memory, job);
        auto start = std::chrono::steady_clock::now();
        compute(memory);
        memory.done().store(job, std::memory_order_release);
        std::printf("accel-standin: job %llu, %llu numbers, %.0f ms\n",
                    static_cast<unsigned long long>(job),
                    static_cast<unsigned long long>(*memory.at<std::uint64_t>(8)),
                    seconds_since(start) * 1000);
        std::fflush(stdout);
    }
    return kPassed;
}
