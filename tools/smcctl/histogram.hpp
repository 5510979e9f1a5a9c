// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// Owns: what the kernel's latency histograms say. Their buckets are those of linux/smcfs.h; a value is
// known to a quarter of a power of two.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "output.hpp"

namespace smc::ctl {

using Buckets = std::vector<uint64_t>; // how often; SMCFS_LATENCY_BUCKETS of them, or none

struct BucketRange {
    uint64_t begin_ns = 0;
    uint64_t end_ns = 0; // of the last bucket, which has none, its begin
};
BucketRange bucket_range(size_t bucket);

// What came between two looks. A histogram that began anew meanwhile counts as a whole.
Buckets grown(const Buckets& before, const Buckets& now);

uint64_t total(const Buckets& buckets);

// So many of a thousand took as long, or less; values are taken to be even in their bucket. Nothing, if
// nothing was counted.
std::optional<uint64_t> percentile_ns(const Buckets& buckets, unsigned per_mille);

// {"count": 12, "p50": 23000, "p99": 140000, "p999": 140000}; without a count the others are null.
Json latency_model(const Buckets& buckets);

} // namespace smc::ctl
