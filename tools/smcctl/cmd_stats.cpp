// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// stats: counters of attached regions, once or as rates.
#include <cmath>
#include <map>
#include <memory>
#include <thread>

#include <CLI/CLI.hpp>

#include "cli.hpp"
#include "model.hpp"

namespace smc::ctl {
namespace {

struct StatsArgs {
    RegionName region; // node empty: all
    bool watch = false;
    double interval_s = 1;
    uint64_t count = 0; // 0: until interrupted
};

Result<std::vector<client::RegionInfo>> wanted(client::Kernel& kernel, const StatsArgs& args)
{
    if (args.region.node.empty())
        return kernel.regions();
    auto region = SMC_TRY(Context::attached(kernel, args.region));
    return std::vector{std::move(region)};
}

Json row_of(const client::RegionInfo& region)
{
    return {{"region", region.id},
            {"node", region.node},
            {"name", region.name},
            {"dirty_bytes", region.dirty_bytes},
            {"writeback_bytes", region.writeback_bytes},
            {"cached_bytes", region.cached_bytes},
            {"inflight", region.inflight},
            {"oldest_ms", region.oldest_ms},
            {"stats", region.stats}};
}

// How much counters grew, per second. A region that was attached anew starts from 0.
Json rates(const client::Stats& before, const client::Stats& now, double seconds)
{
    Json out = Json::object();
    for (const auto& [name, value] : now) {
        auto old = before.find(name);
        uint64_t base = old != before.end() && old->second <= value ? old->second : 0;
        out[name] =
            static_cast<uint64_t>(std::llround(static_cast<double>(value - base) / seconds));
    }
    return out;
}

// The columns of both forms; prefix says where the counters are in a row.
Columns columns(const std::string& prefix, const std::string& per)
{
    return {{"node", "NODE"},
            {"name", "NAME"},
            {prefix + ".fetch_ops", "FETCHES" + per},
            {prefix + ".fetch_bytes", "FETCHED" + per, As::size},
            {prefix + ".flush_batches", "BATCHES" + per},
            {prefix + ".flush_ops", "WRITES" + per},
            {prefix + ".flush_bytes", "WRITTEN" + per, As::size},
            {prefix + ".direct_bytes", "DIRECT" + per, As::size},
            {prefix + ".barriers", "BARRIERS" + per},
            {prefix + ".acquires", "ACQUIRES" + per},
            {prefix + ".errors", "ERRORS" + per},
            {"cached_bytes", "CACHED", As::size},
            {"dirty_bytes", "DIRTY", As::size}};
}

void write_one(Output& out, const Json& row)
{
    out.record(row, {{"node", "Node"},
                     {"name", "Region"},
                     {"cached_bytes", "Cached", As::size},
                     {"dirty_bytes", "Dirty", As::size},
                     {"writeback_bytes", "In write-back", As::size},
                     {"inflight", "Requests in flight"},
                     {"oldest_ms", "Oldest of them", As::ms},
                     {"stats.fetch_ops", "RDMA READs"},
                     {"stats.fetch_bytes", "Bytes fetched"},
                     {"stats.flush_batches", "Flush batches"},
                     {"stats.flush_ops", "RDMA WRITEs"},
                     {"stats.flush_bytes", "Bytes written"},
                     {"stats.direct_bytes", "Bytes by O_DIRECT"},
                     {"stats.dirtied_pages", "Pages dirtied"},
                     {"stats.barriers", "Barriers"},
                     {"stats.acquires", "Acquires"},
                     {"stats.errors", "Failed requests"},
                     {"stats.discarded_bytes", "Bytes discarded"}});
}

Result<int> once(const Context& context, const StatsArgs& args)
{
    auto kernel = SMC_TRY(client::Kernel::open());
    auto regions = SMC_TRY(wanted(kernel, args));
    Json rows = Json::array();
    for (const auto& region : regions)
        rows.push_back(row_of(region));
    Output out = context.output();
    out.model({{"regions", rows}});
    if (args.region.node.empty())
        out.table(rows, columns("stats", ""));
    else
        write_one(out, rows.at(0));
    return 0;
}

Result<int> watch(const Context& context, const StatsArgs& args)
{
    using Clock = std::chrono::steady_clock;
    const auto interval =
        std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(args.interval_s));
    auto kernel = SMC_TRY(client::Kernel::open());
    std::map<uint64_t, client::Stats> before;
    auto first = SMC_TRY(wanted(kernel, args));
    for (const auto& region : first)
        before[region.id] = region.stats;
    auto taken = Clock::now();
    Output out = context.output();
    for (uint64_t round = 1; args.count == 0 || round <= args.count; round++) {
        std::this_thread::sleep_until(taken + interval);
        auto regions = SMC_TRY(wanted(kernel, args));
        auto now = Clock::now();
        double seconds = std::chrono::duration<double>(now - taken).count();
        taken = now;
        Json rows = Json::array();
        std::map<uint64_t, client::Stats> after;
        for (const auto& region : regions) {
            Json row = row_of(region);
            row["per_second"] = rates(before[region.id], region.stats, seconds);
            rows.push_back(std::move(row));
            after[region.id] = region.stats;
        }
        before = std::move(after);
        out.model_line({{"interval_s", seconds}, {"regions", rows}});
        out.table(rows, columns("per_second", "/s"));
        context.out.flush();
        if (!context.out)
            return fail(EPIPE, "cannot write the output");
    }
    return 0;
}

} // namespace

void add_stats(CLI::App& app, Context& context)
{
    auto args = std::make_shared<StatsArgs>();
    CLI::App* verb =
        add_verb(app, context, "stats", "Counters of attached regions", [&context, args] {
            return args->watch ? watch(context, *args) : once(context, *args);
        });
    add_region(*verb, args->region);
    CLI::Option* watch_flag =
        verb->add_flag("-w,--watch", args->watch, "Show what was done per second, again and again");
    verb->add_option("-i,--interval", args->interval_s, "Seconds between two lines")
        ->check(CLI::Range(0.1, 3600.0))
        ->needs(watch_flag)
        ->type_name("SECONDS")
        ->capture_default_str();
    verb->add_option("-n,--count", args->count, "Stop after so many [never]")
        ->needs(watch_flag)
        ->type_name("N");
}

} // namespace smc::ctl
