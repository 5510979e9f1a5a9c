// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// stats: counters of attached regions, once or as rates.
#include <memory>
#include <thread>

#include <CLI/CLI.hpp>

#include "cli.hpp"
#include "counters.hpp"
#include "top_view.hpp"

namespace smc::ctl {
namespace {

struct StatsArgs {
    RegionName region; // node empty: all
    bool watch = false;
    double interval_s = 1;
    uint64_t count = 0; // 0: until interrupted
};

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
                     {"stats.fetch_faults", "Faults that fetched"},
                     {"stats.write_faults", "Faults to write"},
                     {"amplification", "Bytes sent per byte changed"},
                     {"latency.fetch", "Fetch p50/p99"},
                     {"latency.write", "Write p50/p99"},
                     {"latency.fault", "Fault p50/p99"},
                     {"latency.barrier", "Barrier p50/p99"},
                     {"stats.errors", "Failed requests"},
                     {"stats.discarded_bytes", "Bytes discarded"}});
}

Result<int> once(const Context& context, const StatsArgs& args)
{
    auto kernel = SMC_TRY(client::Kernel::open());
    const auto regions = SMC_TRY(sample_regions(kernel, args.region));
    Json rows = Json::array();
    for (const auto& region : regions)
        rows.push_back(total_row(region));
    Output out = context.output();
    out.model({{"regions", rows}});
    if (args.region.node.empty())
        out.table(rows, columns("stats", ""));
    else
        write_one(out, with_latency_texts(rows.at(0)));
    return 0;
}

Result<int> watch(const Context& context, const StatsArgs& args)
{
    using Clock = std::chrono::steady_clock;
    const auto interval =
        std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(args.interval_s));
    auto kernel = SMC_TRY(client::Kernel::open());
    auto first = SMC_TRY(sample_regions(kernel, args.region));
    Interval intervals(std::move(first));
    auto taken = Clock::now();
    Output out = context.output();
    for (uint64_t round = 1; args.count == 0 || round <= args.count; round++) {
        std::this_thread::sleep_until(taken + interval);
        auto regions = SMC_TRY(sample_regions(kernel, args.region));
        auto now = Clock::now();
        double seconds = std::chrono::duration<double>(now - taken).count();
        taken = now;
        const Json rows = intervals.rows(std::move(regions), seconds);
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
