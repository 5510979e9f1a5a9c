// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// What is measured: workloads by name. Each works in a window at the start of the mapped file, is
// repeated, and gives one cell: a JSON object.
//
// A cell has `workload`, `window_bytes`, `bytes` (that the program stores or loads), `reps`, `ns` (the
// median), `min_ns`, `max_ns`, `first_ns` (a repetition before the others, which is in none of them), and
// what the workload adds: `store_ns` and `barrier_ns`, the shares of the stores and of the barrier;
// `slots`, `pages` and `runs` (different slots, pages, and runs of neighbouring pages that were
// stored to, on average); `p50_ns`, `p99_ns` of single accesses; `resident_pages`, that stayed when the file was
// dropped, when there are any. Where figures of raw verbs are known: `raw_ns`, what they take for the
// same bytes, and `raw_each_ns`, for one WRITE for each store.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <random>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/result.hpp"
#include "figures.hpp"
#include "mapping.hpp"

namespace smc::bench {

using Json = nlohmann::json;

/// Where a run's epochs begin: another number in each run, so that a run of the same seed on the same memory stores
/// other values than the one before. What is there already is no change to a merge region, and is not sent.
std::uint64_t first_epoch();

// One run of the program over a mapping.
struct Bench {
    Mapping& mapping;
    unsigned reps = 7; // beside the first
    std::mt19937_64 random;
    Figures figures; // of raw verbs, or empty
    // After each repetition: how many are done, of how many.
    std::function<void(unsigned, unsigned)> progress = [](unsigned, unsigned) {};
    std::uint64_t epoch = first_epoch(); // differs from barrier to barrier: what is stored is new
};

struct Workload {
    std::string_view name;
    std::string_view what;
    std::size_t window_bytes;
    bool stores; // it overwrites the window
    std::function<Result<Json>(Bench&)> run;
    std::function<std::optional<double>(const Figures&, const Json& cell)> raw;
};

const std::vector<Workload>& workloads();
// Null when there is none.
const Workload* find_workload(std::string_view name);

// Runs it in its window and completes the cell.
Result<Json> run_workload(const Workload& workload, Bench& bench);

} // namespace smc::bench
