// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
#include "workload.hpp"

#include <algorithm>

#include <catch2/catch.hpp>

#include "loops.hpp"
#include "scratch_file.hpp"

using namespace smc;
using namespace smc::bench;
using smc::test::ScratchFile;

namespace {

constexpr std::size_t kFileBytes = std::size_t{16} << 20;
constexpr unsigned kReps = 5;

Json run_on(ScratchFile& file, std::string_view name, Figures figures = {},
            std::uint64_t epoch = first_epoch())
{
    auto mapping = Mapping::open(file.path(), Mapping::Access::write);
    REQUIRE(mapping);
    Bench bench{*mapping, kReps, std::mt19937_64(1), std::move(figures)};
    bench.epoch = epoch;
    const Workload* workload = find_workload(name);
    REQUIRE(workload != nullptr);
    auto cell = run_workload(*workload, bench);
    REQUIRE(cell);
    return *cell;
}

Figures figures()
{
    Figures known;
    known.set("write", 64, 10);
    known.set("write", 4096, 100);
    known.set("write", 4 << 20, 1024 * 50); // a page costs 50 in a long message
    known.set("read", 4 << 20, 40000);
    known.set("read_lat", 4096, 300);
    known.set("write_sync", 64, 20);
    return known;
}

} // namespace

TEST_CASE("every workload runs on a plain file and tells its times", "[workload]")
{
    ScratchFile file(kFileBytes);
    for (const Workload& workload : workloads()) {
        INFO(workload.name);
        const Json cell = run_on(file, workload.name);
        CHECK(cell["workload"] == workload.name);
        CHECK(cell["reps"].get<unsigned>() >= kReps);
        CHECK(cell["ns"].get<std::uint64_t>() > 0);
        CHECK(cell["min_ns"] <= cell["ns"]);
        CHECK(cell["ns"] <= cell["max_ns"]);
        CHECK(cell.contains("store_ns") == cell.contains("barrier_ns"));
        CHECK_FALSE(cell.contains("raw_ns"));
    }
}

TEST_CASE("stores reach the file", "[workload]")
{
    ScratchFile file(kFileBytes);
    CHECK(run_on(file, "bulk_4m", {}, 0)["epoch"] == kReps + 1);
    const auto bytes = file.bytes(std::size_t{4} << 20);
    REQUIRE(bytes.size() == std::size_t{4} << 20);
    // The last epoch's value: one repetition more than those that count.
    CHECK(std::all_of(bytes.begin(), bytes.end(), [](unsigned char b) { return b == kReps + 1; }));
}

TEST_CASE("a second run of the same seed changes all that the first one stored", "[workload]")
{
    ScratchFile file(kFileBytes);
    run_on(file, "sparse_64b");
    const auto first = file.bytes(kFileBytes);
    run_on(file, "sparse_64b");
    const auto second = file.bytes(kFileBytes);
    std::size_t stored = 0;
    std::size_t same = 0;
    for (std::size_t at = 0; at < kFileBytes; at += kSlotBytes) {
        const auto* before = first.data() + at;
        if (std::all_of(before, before + kSlotBytes, [](unsigned char b) { return b == 0; }))
            continue;
        stored++;
        same += std::equal(before, before + kSlotBytes, second.data() + at) ? 1 : 0;
    }
    CHECK(stored > 1024);
    CHECK(same == 0);
}

TEST_CASE("every float is changed, and little", "[loops]")
{
    std::vector<float> values(1000);
    for (std::size_t i = 0; i < values.size(); i++)
        values[i] = 1.0F + static_cast<float>(i);
    const auto before = values;
    nudge(values);
    for (std::size_t i = 0; i < values.size(); i++) {
        CHECK(values[i] != before[i]);
        CHECK(values[i] / before[i] == Approx(1).epsilon(1e-5));
    }
}

TEST_CASE("a slot is stored to from its first byte to its last, its neighbours are not", "[loops]")
{
    std::vector<std::byte> memory(4 * kSlotBytes);
    const std::vector<std::uint32_t> slots = {2};
    store_slots(memory.data(), slots, 0x0101010101010101);
    for (std::size_t i = 0; i < memory.size(); i++)
        CHECK((memory[i] != std::byte{0}) == (i / kSlotBytes == 2));
}

TEST_CASE("the sum is that of all words", "[loops]")
{
    std::vector<std::uint64_t> words(1001);
    std::uint64_t total = 0;
    for (std::size_t i = 0; i < words.size(); i++)
        total += words[i] = i * i;
    CHECK(sum(std::as_bytes(std::span(words))) == total);
}

TEST_CASE("pages that stay in memory are told of", "[workload]")
{
    ScratchFile file(kFileBytes); // a file in memory cannot be dropped
    run_on(file, "bulk_4m");
    const Json cell = run_on(file, "cold_bulk_4m");
    CHECK(cell["resident_pages"] == 1024);
}

TEST_CASE("raw verbs are compared for the same bytes", "[raw]")
{
    ScratchFile file(kFileBytes);
    CHECK(run_on(file, "bulk_4m", figures())["raw_ns"] == 1024 * 50);
    CHECK(run_on(file, "cold_bulk_4m", figures())["raw_ns"] == 1024 * 50 + 40000);
    CHECK(run_on(file, "one_store", figures())["raw_ns"] == 20);
    CHECK(run_on(file, "fault_4k", figures())["raw_ns"] == 300);
    CHECK(run_on(file, "seq_read", figures())["raw_ns"] == 80000);
}

TEST_CASE("for scattered stores raw verbs send what is cheaper", "[raw]")
{
    ScratchFile file(kFileBytes);
    const Json sparse = run_on(file, "sparse_64b", figures());
    CHECK(sparse["raw_ns"].get<double>() == 10 * sparse["slots"].get<double>());
    // All pages of 1 MiB are neighbours.
    const Json hot = run_on(file, "hot_64b", figures());
    CHECK(hot["pages"] == 256);
    CHECK(hot["runs"] == 1);
    CHECK(hot["raw_ns"] == 100 + 255 * 50);
    CHECK(hot["raw_each_ns"] == 10 * 16384);
}

TEST_CASE("a file that is too short is refused by name", "[mapping]")
{
    ScratchFile file(4096);
    auto mapping = Mapping::open(file.path(), Mapping::Access::write);
    REQUIRE(mapping);
    auto window = mapping->set_window(8192);
    REQUIRE_FALSE(window);
    CHECK(window.error().code == ERANGE);
    CHECK(window.error().what.find(file.path()) != std::string::npos);
}
