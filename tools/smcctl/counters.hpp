// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// Owns: the counters and latencies of regions at one moment, and what they say of an interval: the rows
// of stats and top.
#pragma once

#include <array>
#include <map>
#include <vector>

#include "cli.hpp"
#include "histogram.hpp"

namespace smc::ctl {

// One region at one moment.
struct RegionSample {
    client::RegionInfo info;
    std::array<Buckets, SMCFS_LATENCY_MAX + 1> latencies; // by enum smcfs_latency
};

// All attached regions, or the one that is named (node empty: all; ENOENT: it is not attached). Without
// latencies if the module is of a version that has none.
Result<std::vector<RegionSample>> sample_regions(client::Kernel& kernel, const RegionName& name);

// "fetch", "write", "fault", "barrier"; for 0 and what is unknown "unknown".
std::string_view latency_name(uint32_t kind);

// Since the region was attached: {"region": ..., "stats": {...}, "amplification": 4.0, "latency_ns":
// {"fetch": {...}, ...}}.
Json total_row(const RegionSample& now);

// Of an interval: the same with "per_second" in place of "stats".
Json interval_row(const RegionSample& before, const RegionSample& now, double seconds);

// How much counters grew, per second. One that went back began anew, from 0.
Json rates(const client::Stats& before, const client::Stats& now, double seconds);

// Bytes sent per byte changed between two looks, of the pages that the kernel measured; null if there
// were none.
Json amplification(const client::Stats& before, const client::Stats& now);

// The rows of each interval, of which it remembers the beginning. A region that is new began from 0.
class Interval {
public:
    explicit Interval(std::vector<RegionSample> first) { keep(std::move(first)); }
    Json rows(std::vector<RegionSample> now, double seconds);

private:
    void keep(std::vector<RegionSample> samples);
    std::map<uint64_t, RegionSample> before_; // by id
};

} // namespace smc::ctl
