// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
#include "histogram.hpp"

#include <catch2/catch.hpp>

extern "C" {
#include "latency.h"
}

using namespace smc::ctl;

namespace {

// Each value once, as the kernel counts it.
Buckets counted(const std::vector<uint64_t>& values)
{
    Buckets buckets(SMCFS_LATENCY_BUCKETS);
    for (const uint64_t ns : values)
        buckets.at(smcfs_latency_bucket(ns))++;
    return buckets;
}

} // namespace

TEST_CASE("every value is in the bucket whose range holds it", "[histogram]")
{
    std::vector<uint64_t> values{0, 1, UINT64_MAX};
    for (unsigned power = 2; power < 64; power++)
        for (unsigned step = 4; step < 8; step++)
            for (int off : {-1, 0, 1})
                values.push_back((uint64_t{step} << power >> 2) + static_cast<uint64_t>(off));
    for (const uint64_t ns : values) {
        CAPTURE(ns);
        const unsigned bucket = smcfs_latency_bucket(ns);
        REQUIRE(bucket < SMCFS_LATENCY_BUCKETS);
        const BucketRange range = bucket_range(bucket);
        CHECK(ns >= range.begin_ns);
        if (bucket < SMCFS_LATENCY_BUCKETS - 1)
            CHECK(ns < range.end_ns);
    }
}

TEST_CASE("buckets join without gaps, from nothing to a minute", "[histogram]")
{
    CHECK(bucket_range(0).begin_ns == 0);
    CHECK(bucket_range(0).end_ns == 256);
    CHECK(bucket_range(1).end_ns == 320);
    for (size_t i = 0; i + 1 < SMCFS_LATENCY_BUCKETS; i++)
        CHECK(bucket_range(i).end_ns == bucket_range(i + 1).begin_ns);
    CHECK(bucket_range(SMCFS_LATENCY_BUCKETS - 1).begin_ns == (uint64_t{7} << 33));
    CHECK(bucket_range(SMCFS_LATENCY_BUCKETS - 1).end_ns == (uint64_t{7} << 33));
}

TEST_CASE("percentiles are of the value with that rank", "[histogram]")
{
    // 98 of [1024, 1280), one of [65536, 81920), one of [1048576, 1310720).
    std::vector<uint64_t> values(98, 1100);
    values.push_back(70000);
    values.push_back(1100000);
    const Buckets buckets = counted(values);
    CHECK(total(buckets) == 100);
    const auto p50 = percentile_ns(buckets, 500);
    REQUIRE(p50);
    CHECK(*p50 == 1024 + 129); // the 50th of 98 in a bucket of 256
    CHECK(percentile_ns(buckets, 980) == 1024 + 255);
    CHECK(percentile_ns(buckets, 990) == 65536 + 8192); // the middle of its bucket
    CHECK(percentile_ns(buckets, 999) == 1048576 + 131072);
}

TEST_CASE("percentiles of one value, and of none", "[histogram]")
{
    const Buckets one = counted({300});
    for (const unsigned per_mille : {0U, 500U, 990U, 999U, 1000U})
        CHECK(percentile_ns(one, per_mille) == 288);
    CHECK_FALSE(percentile_ns(counted({}), 500));
    CHECK_FALSE(percentile_ns({}, 500));
    // What is longer than all buckets is said to be as long as the last one begins.
    CHECK(percentile_ns(counted({UINT64_MAX}), 500) == uint64_t{7} << 33);
}

TEST_CASE("ranks of huge counts do not overflow", "[histogram]")
{
    Buckets buckets(SMCFS_LATENCY_BUCKETS);
    buckets[1] = UINT64_MAX / 2;
    buckets[9] = UINT64_MAX / 4;
    CHECK(percentile_ns(buckets, 500) < bucket_range(1).end_ns);
    CHECK(percentile_ns(buckets, 999) >= bucket_range(9).begin_ns);
}

TEST_CASE("an interval is the difference of two looks", "[histogram]")
{
    const Buckets before = counted({300, 5000});
    Buckets now = before;
    now[smcfs_latency_bucket(5000)] += 3;
    const Buckets between = grown(before, now);
    CHECK(total(between) == 3);
    CHECK(between[smcfs_latency_bucket(5000)] == 3);
    CHECK(between[smcfs_latency_bucket(300)] == 0);
    CHECK(grown({}, now) == now);
    // It began anew, although there are more of them in all.
    const Buckets anew = counted({5000, 5000, 5000});
    CHECK(grown(before, anew) == anew);
}

TEST_CASE("a model without values has nulls, not zeroes", "[histogram]")
{
    CHECK(latency_model({}) ==
          Json({{"count", 0}, {"p50", nullptr}, {"p99", nullptr}, {"p999", nullptr}}));
    CHECK(latency_model(counted({300})) ==
          Json({{"count", 1}, {"p50", 288}, {"p99", 288}, {"p999", 288}}));
}
