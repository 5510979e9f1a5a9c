// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
#include "workload.hpp"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <set>

#include "loops.hpp"
#include "marks.hpp"
#include "samples.hpp"

namespace smc::bench {
namespace {

constexpr std::size_t kKiB = 1024;
constexpr std::size_t kMiB = 1024 * kKiB;
constexpr std::size_t kBulkBytes = 4 * kMiB;
constexpr std::size_t kHotWindow = kMiB;
constexpr std::size_t kSparseWindow = 16 * kMiB;
constexpr std::size_t kSequentialBytes = 8 * kMiB;
constexpr std::size_t kFaultsPerRep = 256;
constexpr std::size_t kWholeFile = 0; // as a window

enum class Cache { warm, cold, untouched };

std::uint64_t now_ns()
{
    return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                          std::chrono::steady_clock::now().time_since_epoch())
                                          .count());
}

// The times of all repetitions but the first.
struct Times {
    std::uint64_t first = 0;
    Samples total;
    Samples store;   // the program's own part
    Samples barrier; // the rest, in workloads that store

    [[nodiscard]] Json cell()
    {
        Json cell{{"reps", total.count()},
                  {"ns", total.median()},
                  {"min_ns", total.min()},
                  {"max_ns", total.max()},
                  {"first_ns", first}};
        if (barrier.count() != 0) {
            cell["store_ns"] = store.median();
            cell["barrier_ns"] = barrier.median();
        }
        return cell;
    }
};

void note_resident(Json& cell, std::size_t pages)
{
    if (pages != 0)
        cell["resident_pages"] = pages;
}

// What a workload that stores does: prepare (not timed), store and barrier (timed), again and again.
struct StoreSteps {
    Cache cache = Cache::warm;
    std::size_t barrier_bytes = 0; // 0: the window
    unsigned reps_factor = 1;      // short ones are repeated more often
    std::function<void()> prepare = [] {};
    std::function<void(std::uint64_t epoch)> store;
};

Result<Json> measure_stores(Bench& bench, const StoreSteps& steps)
{
    Mapping& mapping = bench.mapping;
    const std::size_t barrier_bytes =
        steps.barrier_bytes != 0 ? steps.barrier_bytes : mapping.bytes();
    const unsigned reps = bench.reps * steps.reps_factor;
    Times times;
    std::size_t resident = 0;
    if (steps.cache == Cache::warm)
        mapping.warm();
    for (unsigned rep = 0; rep <= reps; rep++) {
        if (steps.cache == Cache::cold)
            resident = SMC_TRY(mapping.drop());
        steps.prepare();
        bench.epoch++;
        const auto start = now_ns();
        mark_begin(rep != 0);
        steps.store(bench.epoch);
        const auto stored = now_ns();
        SMC_TRY(mapping.barrier(barrier_bytes));
        mark_end(rep != 0);
        const auto end = now_ns();
        if (rep == 0) {
            times.first = end - start;
        } else {
            times.total.add(end - start);
            times.store.add(stored - start);
            times.barrier.add(end - stored);
        }
        bench.progress(rep + 1, reps + 1);
    }
    Json cell = times.cell();
    cell["epoch"] = bench.epoch;
    note_resident(cell, resident);
    return cell;
}

Result<Json> bulk(Bench& bench, Cache cache)
{
    StoreSteps steps;
    steps.cache = cache;
    steps.store = [&](std::uint64_t epoch) {
        fill({bench.mapping.data(), kBulkBytes}, static_cast<unsigned char>(epoch));
    };
    Json cell = SMC_TRY(measure_stores(bench, steps));
    cell["bytes"] = kBulkBytes;
    return cell;
}

Result<Json> float_update(Bench& bench)
{
    const std::span<float> values{reinterpret_cast<float*>(bench.mapping.data()),
                                  kBulkBytes / sizeof(float)};
    // Numbers that stay numbers, whatever the memory held.
    for (std::size_t i = 0; i < values.size(); i++)
        values[i] = 1.0F + static_cast<float>(i % kKiB) / 7.0F;
    SMC_TRY(bench.mapping.barrier(kBulkBytes));
    StoreSteps steps;
    steps.store = [&](std::uint64_t) { nudge(values); };
    Json cell = SMC_TRY(measure_stores(bench, steps));
    cell["bytes"] = kBulkBytes;
    return cell;
}

Result<Json> one_store(Bench& bench)
{
    constexpr std::uint32_t kSlot = 0;
    StoreSteps steps;
    steps.barrier_bytes = kPageBytes;
    steps.reps_factor = 10;
    steps.store = [&](std::uint64_t epoch) {
        store_slots(bench.mapping.data(), {&kSlot, 1}, epoch << 32U);
    };
    Json cell = SMC_TRY(measure_stores(bench, steps));
    cell["bytes"] = kSlotBytes;
    return cell;
}

// Three pages, far from each other in all of the file: what the barrier has to look at besides is its size.
Result<Json> barrier_whole(Bench& bench)
{
    const std::size_t bytes = bench.mapping.bytes();
    constexpr std::size_t kFromEnd = 1024; // the last page is in the last piece of so many
    StoreSteps steps;
    steps.cache = Cache::untouched;
    steps.reps_factor = 3;
    steps.store = [&](std::uint64_t epoch) {
        constexpr std::uint32_t kSlot = 0;
        for (const std::size_t at : {std::size_t{0}, bytes / 2, bytes - bytes / kFromEnd})
            store_slots(bench.mapping.data() + at / kPageBytes * kPageBytes, {&kSlot, 1},
                        epoch << 32U);
    };
    Json cell = SMC_TRY(measure_stores(bench, steps));
    cell["bytes"] = 3 * kSlotBytes;
    return cell;
}

// What raw verbs would have to send for these slots.
struct Touched {
    std::size_t slots = 0;
    std::size_t pages = 0;
    std::size_t runs = 0;
};

Touched touched_by(const std::vector<std::uint32_t>& slots)
{
    constexpr std::uint32_t kSlotsPerPage = kPageBytes / kSlotBytes;
    const std::set<std::uint32_t> different(slots.begin(), slots.end());
    Touched touched{different.size(), 0, 0};
    std::uint32_t last_page = UINT32_MAX - 1;
    for (const std::uint32_t slot : different) {
        const std::uint32_t page = slot / kSlotsPerPage;
        if (page == last_page)
            continue;
        touched.pages++;
        touched.runs += page != last_page + 1 ? 1 : 0;
        last_page = page;
    }
    return touched;
}

Result<Json> random_slots(Bench& bench, std::size_t count, Cache cache)
{
    std::vector<std::uint32_t> slots(count);
    std::size_t draws = 0;
    Touched touched; // by all draws
    StoreSteps steps;
    steps.cache = cache;
    steps.prepare = [&] {
        for (std::uint32_t& slot : slots)
            slot =
                static_cast<std::uint32_t>(bench.random() % (bench.mapping.bytes() / kSlotBytes));
        const Touched one = touched_by(slots);
        touched = {touched.slots + one.slots, touched.pages + one.pages, touched.runs + one.runs};
        draws++;
    };
    steps.store = [&](std::uint64_t epoch) {
        store_slots(bench.mapping.data(), slots, epoch << 32U);
    };
    Json cell = SMC_TRY(measure_stores(bench, steps));
    const auto mean = [&](std::size_t sum) {
        return static_cast<double>(sum) / static_cast<double>(draws);
    };
    cell["bytes"] = count * kSlotBytes;
    cell["stores"] = count;
    cell["slots"] = mean(touched.slots);
    cell["pages"] = mean(touched.pages);
    cell["runs"] = mean(touched.runs);
    return cell;
}

// Each access touches another page, in random order.
Result<Json> faults(Bench& bench, bool store)
{
    Mapping& mapping = bench.mapping;
    std::vector<std::size_t> pages(mapping.bytes() / kPageBytes);
    std::iota(pages.begin(), pages.end(), 0);
    Times times;
    Samples each;
    std::size_t resident = 0;
    for (unsigned rep = 0; rep <= bench.reps; rep++) {
        std::shuffle(pages.begin(), pages.end(), bench.random);
        resident = SMC_TRY(mapping.drop());
        SMC_TRY(mapping.expect_random(true));
        std::vector<std::uint64_t> single(kFaultsPerRep);
        const auto start = now_ns();
        auto last = start;
        mark_begin(rep != 0);
        for (std::size_t i = 0; i < kFaultsPerRep; i++) {
            auto* word =
                reinterpret_cast<volatile std::uint64_t*>(mapping.data() + pages[i] * kPageBytes);
            if (store)
                *word = i;
            else
                static_cast<void>(*word);
            const auto time = now_ns();
            single[i] = time - last;
            last = time;
        }
        mark_end(rep != 0);
        if (rep == 0) {
            times.first = (last - start) / kFaultsPerRep;
        } else {
            times.total.add((last - start) / kFaultsPerRep);
            for (const auto ns : single)
                each.add(ns);
        }
        SMC_TRY(mapping.expect_random(false));
        if (store)
            SMC_TRY(mapping.barrier(mapping.bytes()));
        bench.progress(rep + 1, bench.reps + 1);
    }
    Json cell = times.cell();
    cell["bytes"] = kPageBytes;
    cell["faults"] = kFaultsPerRep;
    cell["p50_ns"] = each.median();
    cell["p99_ns"] = each.quantile(0.99);
    note_resident(cell, resident);
    return cell;
}

Result<Json> sequential_read(Bench& bench)
{
    Mapping& mapping = bench.mapping;
    Times times;
    std::size_t resident = 0;
    std::uint64_t total = 0;
    for (unsigned rep = 0; rep <= bench.reps; rep++) {
        resident = SMC_TRY(mapping.drop());
        const auto start = now_ns();
        mark_begin(rep != 0);
        total += sum({mapping.data(), mapping.bytes()});
        mark_end(rep != 0);
        const auto end = now_ns();
        if (rep == 0)
            times.first = end - start;
        else
            times.total.add(end - start);
        bench.progress(rep + 1, bench.reps + 1);
    }
    Json cell = times.cell();
    cell["bytes"] = mapping.bytes();
    cell["sum"] = total; // somebody wants it
    note_resident(cell, resident);
    return cell;
}

// --- what raw verbs take for the same bytes ---------------------------------------------------

using Nanoseconds = std::optional<double>;

Nanoseconds raw_unknown(const Figures&, const Json&)
{
    return std::nullopt;
}

Nanoseconds raw_bulk_write(const Figures& figures, const Json&)
{
    return figures.get("write", kBulkBytes);
}

Nanoseconds raw_bulk_update(const Figures& figures, const Json&)
{
    const auto read = figures.get("read", kBulkBytes);
    const auto write = figures.get("write", kBulkBytes);
    return read && write ? Nanoseconds{*read + *write} : std::nullopt;
}

Nanoseconds raw_one_write(const Figures& figures, const Json&)
{
    return figures.get("write_sync", kSlotBytes);
}

Nanoseconds raw_one_read(const Figures& figures, const Json&)
{
    return figures.get("read_lat", kPageBytes);
}

Nanoseconds raw_sequential_read(const Figures& figures, const Json& cell)
{
    const auto bulk = figures.get("read", kBulkBytes);
    return bulk ? Nanoseconds{*bulk * cell["bytes"].get<double>() / kBulkBytes} : std::nullopt;
}

// What a program that knows RDMA would send for scattered stores: the cheaper of one WRITE per slot, and
// one per run of neighbouring pages. The first page of a run costs a message, each other one its
// bytes in a long one.
Nanoseconds raw_scattered_write(const Figures& figures, const Json& cell)
{
    const auto slot = figures.get("write", kSlotBytes);
    const auto page = figures.get("write", kPageBytes);
    const auto bulk = figures.get("write", kBulkBytes);
    if (!slot || !page || !bulk)
        return std::nullopt;
    const auto runs = cell["runs"].get<double>();
    const double more = cell["pages"].get<double>() - runs;
    return std::min(cell["slots"].get<double>() * *slot,
                    runs * *page + more * *bulk * kPageBytes / kBulkBytes);
}

} // namespace

std::uint64_t first_epoch()
{
    // Microseconds: slots keep 32 bits of it, the same ones after more than an hour.
    return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(
                                          std::chrono::system_clock::now().time_since_epoch())
                                          .count());
}

const std::vector<Workload>& workloads()
{
    static const std::vector<Workload> list = {
        {"bulk_4m", "store 4 MiB, barrier", kBulkBytes, true,
         [](Bench& bench) { return bulk(bench, Cache::warm); }, raw_bulk_write},
        {"cold_bulk_4m", "store 4 MiB to absent pages, barrier", kBulkBytes, true,
         [](Bench& bench) { return bulk(bench, Cache::cold); }, raw_bulk_update},
        {"float_update", "change each of 1 Mi floats a little, barrier", kBulkBytes, true,
         float_update, raw_bulk_write},
        {"one_store", "one 64-byte store, barrier", kBulkBytes, true, one_store, raw_one_write},
        {"hot_64b", "16 Ki random 64-byte stores in 1 MiB, barrier", kHotWindow, true,
         [](Bench& bench) { return random_slots(bench, 16 * kKiB, Cache::warm); },
         raw_scattered_write},
        {"hot_64b_many", "256 Ki random 64-byte stores in 1 MiB, barrier", kHotWindow, true,
         [](Bench& bench) { return random_slots(bench, 256 * kKiB, Cache::warm); },
         raw_scattered_write},
        {"cold_64b", "1 Ki random 64-byte stores in 1 MiB of absent pages, barrier", kHotWindow,
         true, [](Bench& bench) { return random_slots(bench, kKiB, Cache::cold); },
         raw_scattered_write},
        {"sparse_64b", "1 Ki random 64-byte stores in 16 MiB, barrier", kSparseWindow, true,
         [](Bench& bench) { return random_slots(bench, kKiB, Cache::warm); }, raw_scattered_write},
        {"fault_4k", "random loads from absent pages, each", kSparseWindow, false,
         [](Bench& bench) { return faults(bench, false); }, raw_one_read},
        {"write_fault_4k", "random stores to absent pages, each", kSparseWindow, true,
         [](Bench& bench) { return faults(bench, true); }, raw_one_read},
        {"seq_read", "load 8 MiB of absent pages in order", kSequentialBytes, false,
         sequential_read, raw_sequential_read},
        {"barrier_whole", "store to three pages, barrier of the whole file", kWholeFile, true,
         barrier_whole, raw_unknown},
    };
    return list;
}

const Workload* find_workload(std::string_view name)
{
    const auto& list = workloads();
    const auto found = std::find_if(list.begin(), list.end(),
                                    [&](const Workload& one) { return one.name == name; });
    return found != list.end() ? &*found : nullptr;
}

Result<Json> run_workload(const Workload& workload, Bench& bench)
{
    SMC_TRY(bench.mapping.set_window(workload.window_bytes));
    Json cell = SMC_TRY(workload.run(bench));
    cell["workload"] = workload.name;
    cell["window_bytes"] = bench.mapping.bytes();
    if (const auto raw = workload.raw(bench.figures, cell))
        cell["raw_ns"] = *raw;
    const auto each = bench.figures.get("write", kSlotBytes);
    if (each && cell.contains("stores"))
        cell["raw_each_ns"] = *each * cell["stores"].get<double>();
    return cell;
}

} // namespace smc::bench
