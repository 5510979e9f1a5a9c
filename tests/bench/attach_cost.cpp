// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// attach-cost ADDRESS: what attaching costs the client's kernel, by the size of the region. A line for
// each size, a cell as smcbench prints them: nanoseconds of one REGION_ATTACH. The region's
// memory is never touched, so there need be none. Wants root, the module loaded, no daemon.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>

#include "world.hpp"

namespace smc::test {
namespace {

constexpr std::uint64_t kMiB = 1ULL << 20;
constexpr std::uint64_t kGiB = 1ULL << 30;
constexpr unsigned kReps = 25; // beside the first

// As granted by a target whose device registers so much at a time.
std::vector<smcfs_extent> pieces(std::uint64_t size, std::uint64_t piece)
{
    std::vector<smcfs_extent> extents;
    for (std::uint64_t offset = 0; offset < size; offset += piece)
        extents.push_back({offset, std::min(piece, size - offset), kGiB + offset, 1, 2});
    return extents;
}

void measure(World& world, const char* workload, std::uint64_t size, std::uint64_t piece)
{
    const std::vector<smcfs_extent> extents = pieces(size, piece);
    std::vector<long long> times;
    for (unsigned rep = 0; rep <= kReps; rep++) {
        const Message request =
            world.attach("timed", size).replace(attr_raw(SMCFS_A_EXTENTS, bytes_of(extents)));
        const auto start = std::chrono::steady_clock::now();
        const Answer answer = world.ask(request);
        const auto end = std::chrono::steady_clock::now();
        if (answer.error != 0 || answer.messages.empty())
            leave(kRefuted, "REGION_ATTACH: " + answer.why, answer.error.value_or(0));
        const auto id = answer.messages.front().number(SMCFS_A_REGION_ID).value_or(0);
        const Answer gone = world.ask(World::region(SMCFS_CMD_REGION_DETACH, id));
        if (gone.error != 0)
            leave(kRefuted, "REGION_DETACH: " + gone.why, gone.error.value_or(0));
        if (rep != 0)
            times.push_back(std::chrono::nanoseconds(end - start).count());
    }
    std::sort(times.begin(), times.end());
    std::printf("{\"workload\":\"%s\",\"bytes\":%llu,\"extents\":%zu,\"reps\":%u,\"ns\":%lld,"
                "\"min_ns\":%lld,\"max_ns\":%lld}\n",
                workload, static_cast<unsigned long long>(size), extents.size(), kReps,
                times[kReps / 2], times.front(), times.back());
}

} // namespace
} // namespace smc::test

int main(int argc, char** argv)
{
    using namespace smc::test;
    if (argc != 2)
        die("usage: attach-cost ADDRESS");
    World world(argv[1]);
    // The devices that are known here register all of it at once.
    measure(world, "attach_64m", 64 * kMiB, 64 * kMiB);
    measure(world, "attach_64g", 64 * kGiB, 64 * kGiB);
    measure(world, "attach_64g_in_64", 64 * kGiB, kGiB);
    world.finish();
    return kPassed;
}
