// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
#include "counters.hpp"

#include <catch2/catch.hpp>

using namespace smc::ctl;
using smc::client::Stats;

namespace {

RegionSample sample(uint64_t id, Stats stats)
{
    RegionSample sample;
    sample.info.id = id;
    sample.info.node = "gpu3";
    sample.info.name = "r" + std::to_string(id);
    sample.info.state = SMCFS_REGION_ACTIVE;
    sample.info.stats = std::move(stats);
    return sample;
}

} // namespace

TEST_CASE("rates are what was added, by the second", "[counters]")
{
    CHECK(rates({{"fetch_ops", 10}}, {{"fetch_ops", 16}, {"barriers", 3}}, 2) ==
          Json({{"fetch_ops", 3}, {"barriers", 2}}));
    CHECK(rates({{"fetch_ops", 10}}, {{"fetch_ops", 4}}, 1) == Json({{"fetch_ops", 4}}));
}

TEST_CASE("amplification is bytes sent by bytes changed of the interval", "[counters]")
{
    const Stats before{{"sampled_sent_bytes", 1000}, {"sampled_changed_bytes", 1000}};
    const Stats now{{"sampled_sent_bytes", 1640}, {"sampled_changed_bytes", 1010}};
    CHECK(amplification(before, now) == 64.0);
    CHECK(amplification(before, before).is_null());
    CHECK(amplification({}, {}).is_null());
    CHECK(amplification({}, before) == 1.0);
}

TEST_CASE("an interval remembers each region by its id", "[counters]")
{
    Interval interval({sample(7, {{"fetch_ops", 10}}), sample(8, {{"fetch_ops", 100}})});
    const Json rows =
        interval.rows({sample(8, {{"fetch_ops", 101}}), sample(9, {{"fetch_ops", 5}})}, 1);
    REQUIRE(rows.size() == 2);
    CHECK(rows[0]["region"] == 8);
    CHECK(rows[0]["per_second"]["fetch_ops"] == 1);
    CHECK(rows[1]["per_second"]["fetch_ops"] == 5); // new: it began at 0
    CHECK(interval.rows({sample(8, {{"fetch_ops", 104}})}, 1)[0]["per_second"]["fetch_ops"] == 3);
}

TEST_CASE("a row has the latencies of its interval, by name", "[counters]")
{
    RegionSample before = sample(7, {});
    RegionSample now = before;
    before.latencies[SMCFS_LATENCY_BARRIER].assign(SMCFS_LATENCY_BUCKETS, 1);
    now.latencies[SMCFS_LATENCY_BARRIER].assign(SMCFS_LATENCY_BUCKETS, 1);
    now.latencies[SMCFS_LATENCY_BARRIER][0] += 4;
    const Json row = interval_row(before, now, 1);
    CHECK(row["latency_ns"]["barrier"]["count"] == 4);
    CHECK(row["latency_ns"]["barrier"]["p99"] == 224);
    CHECK(row["latency_ns"]["fetch"]["count"] == 0); // of a module that has none
    CHECK(row["latency_ns"].size() == SMCFS_LATENCY_MAX);
    CHECK(row["state"] == "active");
    CHECK(total_row(now)["latency_ns"]["barrier"]["count"] == SMCFS_LATENCY_BUCKETS + 4);
}
