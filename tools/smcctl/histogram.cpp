// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
#include "histogram.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <linux/smcfs.h>

namespace smc::ctl {

BucketRange bucket_range(size_t bucket)
{
    const auto begin = [](size_t index) -> uint64_t {
        if (index == 0)
            return 0;
        const uint64_t power = (index - 1) / SMCFS_LATENCY_STEPS;
        const uint64_t step = (index - 1) % SMCFS_LATENCY_STEPS;
        return ((SMCFS_LATENCY_STEPS + step) << (SMCFS_LATENCY_SHIFT + power)) /
               SMCFS_LATENCY_STEPS;
    };
    bucket = std::min<size_t>(bucket, SMCFS_LATENCY_BUCKETS - 1);
    return {begin(bucket), begin(std::min<size_t>(bucket + 1, SMCFS_LATENCY_BUCKETS - 1))};
}

Buckets grown(const Buckets& before, const Buckets& now)
{
    Buckets out = now;
    if (before.size() != now.size())
        return out;
    for (size_t i = 0; i < now.size(); i++) {
        if (now[i] < before[i])
            return now;
        out[i] = now[i] - before[i];
    }
    return out;
}

uint64_t total(const Buckets& buckets)
{
    return std::accumulate(buckets.begin(), buckets.end(), uint64_t{0});
}

std::optional<uint64_t> percentile_ns(const Buckets& buckets, unsigned per_mille)
{
    const uint64_t count = total(buckets);
    if (count == 0)
        return std::nullopt;
    // The value that is asked for is the rank-th, counted from 1.
    const uint64_t rank = std::clamp<uint64_t>(
        count / 1000 * per_mille + (count % 1000 * per_mille + 999) / 1000, 1, count);
    uint64_t below = 0;
    size_t bucket = 0;
    while (below + buckets[bucket] < rank)
        below += buckets[bucket++];
    const BucketRange range = bucket_range(bucket);
    const double share =
        (static_cast<double>(rank - below) - 0.5) / static_cast<double>(buckets[bucket]);
    return range.begin_ns + static_cast<uint64_t>(std::llround(
                                share * static_cast<double>(range.end_ns - range.begin_ns)));
}

Json latency_model(const Buckets& buckets)
{
    const auto value = [&](unsigned per_mille) {
        const auto ns = percentile_ns(buckets, per_mille);
        return ns ? Json(*ns) : Json();
    };
    return {
        {"count", total(buckets)}, {"p50", value(500)}, {"p99", value(990)}, {"p999", value(999)}};
}

} // namespace smc::ctl
