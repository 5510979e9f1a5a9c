// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
#include "counters.hpp"

#include <cmath>

namespace smc::ctl {
namespace {

Json base_row(const client::RegionInfo& region)
{
    return {{"region", region.id},
            {"node", region.node},
            {"name", region.name},
            {"state", client::region_state_name(region.state)},
            {"dirty_bytes", region.dirty_bytes},
            {"writeback_bytes", region.writeback_bytes},
            {"cached_bytes", region.cached_bytes},
            {"inflight", region.inflight},
            {"oldest_ms", region.oldest_ms}};
}

// As it was, if it is not more than now.
uint64_t base_of(const client::Stats& before, const std::string& name, uint64_t now)
{
    const auto old = before.find(name);
    return old != before.end() && old->second <= now ? old->second : 0;
}

uint64_t growth(const client::Stats& before, const client::Stats& now, const std::string& name)
{
    const auto value = now.find(name);
    return value == now.end() ? 0 : value->second - base_of(before, name, value->second);
}

Json latencies_model(const RegionSample& before, const RegionSample& now)
{
    Json out = Json::object();
    for (uint32_t kind = SMCFS_LATENCY_UNSPEC + 1; kind <= SMCFS_LATENCY_MAX; kind++)
        out[std::string(latency_name(kind))] =
            latency_model(grown(before.latencies[kind], now.latencies[kind]));
    return out;
}

} // namespace

Result<std::vector<RegionSample>> sample_regions(client::Kernel& kernel, const RegionName& name)
{
    std::vector<RegionSample> samples;
    if (name.node.empty()) {
        auto regions = SMC_TRY(kernel.regions());
        for (auto& region : regions)
            samples.push_back({std::move(region), {}});
    } else {
        auto region = SMC_TRY(Context::attached(kernel, name));
        samples.push_back({std::move(region), {}});
    }
    auto latencies = kernel.latencies(name.node.empty() ? 0 : samples.at(0).info.id);
    if (!latencies && latencies.error().code == EOPNOTSUPP)
        return samples;
    if (!latencies)
        return tl::unexpected<Error>(std::move(latencies).error());
    std::map<uint64_t, RegionSample*> by_id;
    for (auto& sample : samples)
        by_id[sample.info.id] = &sample;
    for (auto& latency : *latencies) {
        const auto at = by_id.find(latency.region_id);
        if (at != by_id.end() && latency.kind <= SMCFS_LATENCY_MAX)
            at->second->latencies[latency.kind] = std::move(latency.buckets);
    }
    return samples;
}

std::string_view latency_name(uint32_t kind)
{
    static constexpr std::array<std::string_view, SMCFS_LATENCY_MAX + 1> kNames{
        "unknown", "fetch", "write", "fault", "barrier"};
    return kNames[kind <= SMCFS_LATENCY_MAX ? kind : 0U];
}

Json total_row(const RegionSample& now)
{
    Json row = base_row(now.info);
    row["stats"] = now.info.stats;
    row["amplification"] = amplification({}, now.info.stats);
    row["latency_ns"] = latencies_model({}, now);
    return row;
}

Json interval_row(const RegionSample& before, const RegionSample& now, double seconds)
{
    Json row = base_row(now.info);
    row["per_second"] = rates(before.info.stats, now.info.stats, seconds);
    row["amplification"] = amplification(before.info.stats, now.info.stats);
    row["latency_ns"] = latencies_model(before, now);
    return row;
}

Json rates(const client::Stats& before, const client::Stats& now, double seconds)
{
    Json out = Json::object();
    for (const auto& [name, value] : now) {
        const uint64_t base = base_of(before, name, value);
        out[name] =
            static_cast<uint64_t>(std::llround(static_cast<double>(value - base) / seconds));
    }
    return out;
}

Json amplification(const client::Stats& before, const client::Stats& now)
{
    const uint64_t sent = growth(before, now, "sampled_sent_bytes");
    const uint64_t changed = growth(before, now, "sampled_changed_bytes");
    // What is sent of a page whose bytes were changed back and forth has no measure.
    return changed == 0 ? Json() : Json(static_cast<double>(sent) / static_cast<double>(changed));
}

Json Interval::rows(std::vector<RegionSample> now, double seconds)
{
    Json rows = Json::array();
    for (const auto& sample : now)
        rows.push_back(interval_row(before_[sample.info.id], sample, seconds));
    keep(std::move(now));
    return rows;
}

void Interval::keep(std::vector<RegionSample> samples)
{
    before_.clear();
    for (auto& sample : samples) {
        const uint64_t id = sample.info.id;
        before_[id] = std::move(sample);
    }
}

} // namespace smc::ctl
