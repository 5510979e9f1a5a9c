// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// ps: which programs use regions, and which of them wait for a peer.
#include <CLI/CLI.hpp>

#include <map>

#include "cli.hpp"
#include "model.hpp"
#include "proc_scan.hpp"

namespace smc::ctl {
namespace {

using Regions = std::map<uint64_t, client::RegionInfo>;

// A process waits for this region if it waits at all and something of the region is outstanding.
bool is_blocked(const ProcessUse& use, const client::RegionInfo& region)
{
    return use.waiting && (region.oldest_ms > 0 || region.state == SMCFS_REGION_DEGRADED ||
                           region.state == SMCFS_REGION_BINDING);
}

Json to_json(const ProcessUse& use, const Regions& regions)
{
    Json row = {
        {"pid", use.pid},
        {"command", use.command},
        {"region", use.region_id == 0 ? Json() : Json(use.region_id)},
        {"mapped_bytes", use.mapped_bytes},
        {"open_files", use.open_files},
        {"state", std::string(1, use.state)},
        {"wchan", use.wchan.empty() ? Json() : Json(use.wchan)},
        {"blocked", use.region_id == 0},
        {"blocked_on", nullptr},
        {"blocked_ms", nullptr},
        {"node", nullptr},
        {"name", nullptr},
        {"dirty_bytes", nullptr},
    };
    auto region = regions.find(use.region_id);
    if (region == regions.end())
        return row;
    row["node"] = region->second.node;
    row["name"] = region->second.name;
    row["dirty_bytes"] = region->second.dirty_bytes;
    if (is_blocked(use, region->second)) {
        row["blocked"] = true;
        row["blocked_on"] = region->second.node;
        row["blocked_ms"] = region->second.oldest_ms;
    }
    return row;
}

Result<int> ps(const Context& context)
{
    auto kernel = SMC_TRY(client::Kernel::open());
    Regions regions;
    auto found = SMC_TRY(kernel.regions());
    for (auto& region : found)
        regions.emplace(region.id, std::move(region));
    Json rows = Json::array();
    for (const auto& use : scan_processes())
        rows.push_back(to_json(use, regions));
    Output out = context.output();
    out.model({{"processes", rows}});
    out.table(rows, {{"pid", "PID"},
                     {"command", "COMMAND"},
                     {"node", "NODE"},
                     {"name", "NAME"},
                     {"mapped_bytes", "MAPPED", As::size},
                     {"open_files", "OPEN"},
                     {"dirty_bytes", "REGION DIRTY", As::size},
                     {"state", "STATE"},
                     {"wchan", "WAITS IN"},
                     {"blocked_on", "BLOCKED ON"},
                     {"blocked_ms", "FOR", As::ms}});
    return 0;
}

} // namespace

void add_ps(CLI::App& app, Context& context)
{
    add_verb(app, context, "ps", "Programs that map or open regions, and which peer they wait for",
             [&context] { return ps(context); });
}

} // namespace smc::ctl
