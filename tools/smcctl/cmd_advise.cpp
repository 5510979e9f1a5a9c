// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// advise: watches regions for a while by trace events, and says what could be better.
#include <array>
#include <csignal>
#include <cstdio>
#include <map>
#include <memory>

#include <poll.h>
#include <sys/signalfd.h>

#include <CLI/CLI.hpp>

#include "advice.hpp"
#include "cli.hpp"
#include "counters.hpp"
#include "proc_scan.hpp"
#include "trace_events.hpp"

namespace smc::ctl {
namespace {

using Clock = std::chrono::steady_clock;

// Before the kernel's buffers are full, with some room.
constexpr std::chrono::milliseconds kReadEvery{100};

struct AdviseArgs {
    RegionName region; // node empty: all
    double seconds = 10;
    std::vector<std::string> with; // files
};

// Signals that end the program end the watching instead, while this lives.
class EndSignals {
public:
    static Result<EndSignals> block()
    {
        EndSignals signals;
        sigset_t set;
        sigemptyset(&set);
        for (const int signal : {SIGINT, SIGTERM, SIGHUP})
            sigaddset(&set, signal);
        signals.fd_ = Fd(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
        if (!signals.fd_)
            return fail_errno(errno, "signalfd");
        ::pthread_sigmask(SIG_BLOCK, &set, &signals.before_);
        return signals;
    }
    EndSignals(EndSignals&&) = default;
    EndSignals& operator=(EndSignals&&) = delete;
    EndSignals(const EndSignals&) = delete;
    EndSignals& operator=(const EndSignals&) = delete;
    ~EndSignals()
    {
        if (!fd_)
            return;
        // Else those that came would end the program now.
        signalfd_siginfo info{};
        while (::read(fd_.get(), &info, sizeof(info)) == sizeof(info)) {}
        ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    }

    // Until one came (true), or the time has passed.
    [[nodiscard]] bool wait(std::chrono::milliseconds time) const
    {
        pollfd fd{fd_.get(), POLLIN, 0};
        return ::poll(&fd, 1, static_cast<int>(time.count())) > 0;
    }

private:
    EndSignals() = default;
    Fd fd_;
    sigset_t before_{};
};

struct Watched {
    std::map<uint64_t, RegionWatch> regions; // by id
    uint64_t lost = 0;
    double seconds = 0;
};

void take_line(std::string_view line, Watched& watched)
{
    if (const auto lost = parse_lost_line(line)) {
        watched.lost += *lost;
        return;
    }
    auto event = parse_trace_line(line);
    if (!event)
        return;
    if (event->command == "<...>") { // the kernel has forgotten its name
        event->command = read_small_file("/proc/" + std::to_string(event->tid) + "/comm");
        event->command.erase(event->command.find_last_not_of('\n') + 1);
    }
    watched.regions[event->region_id].add(*event);
}

Result<Watched> watch(const AdviseArgs& args, uint64_t region_id)
{
    const auto signals = SMC_TRY(EndSignals::block());
    const auto trace = SMC_TRY(TraceInstance::create(region_id));
    const auto begun = Clock::now();
    const auto end = begun + std::chrono::duration_cast<Clock::duration>(
                                 std::chrono::duration<double>(args.seconds));
    Watched watched;
    const auto take = [&](std::string_view line) { take_line(line, watched); };
    while (Clock::now() < end) {
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now());
        const bool ended = signals.wait(std::clamp(left, {}, kReadEvery));
        SMC_TRY(trace->read(take));
        if (ended)
            break;
    }
    trace->stop();
    SMC_TRY(trace->read(take));
    watched.seconds = std::chrono::duration<double>(Clock::now() - begun).count();
    return watched;
}

// What advise -j wrote on other nodes. Read last, so that they may watch at the same time.
Result<std::vector<Json>> read_others(const std::vector<std::string>& files)
{
    std::vector<Json> others;
    for (const auto& file : files) {
        Json other = Json::parse(read_small_file(file), nullptr, false);
        if (!other.is_object())
            return fail(EINVAL, file + ": this is not what smcctl -j advise wrote");
        others.push_back(std::move(other));
    }
    return others;
}

std::string host_name()
{
    std::array<char, 256> name{};
    return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "?";
}

Json row_of(const RegionSample& sample, const Json& amplification, const Watched& watched)
{
    const auto at = watched.regions.find(sample.info.id);
    Json row = at == watched.regions.end() ? RegionWatch().report(amplification)
                                           : at->second.report(amplification);
    row["region"] = sample.info.id;
    row["node"] = sample.info.node;
    row["name"] = sample.info.name;
    row["hot"] = sample.info.hot.value_or(false);
    row["amplification"] = amplification;
    return row;
}

void write_region(Output& out, const Json& row)
{
    out.line(cell(row, {"node", ""}) + ":" + cell(row, {"name", ""}) + ": " +
             cell(row, {"stores", ""}) + " stores seen, to " + cell(row, {"pages", ""}) +
             " pages; " + cell(row, {"fetched_bytes", "", As::size}) + " fetched");
    for (const auto& line : advice_lines(row))
        out.line(line);
}

Result<int> advise(const Context& context, const AdviseArgs& args)
{
    auto kernel = SMC_TRY(client::Kernel::open());
    const auto before = SMC_TRY(sample_regions(kernel, args.region));
    if (!context.json)
        context.note("watching for so many seconds, Ctrl-C ends it sooner: " +
                     cell({{"s", args.seconds}}, {"s", ""}));
    const auto watched = SMC_TRY(watch(args, args.region.node.empty() ? 0 : before.at(0).info.id));
    const auto after = SMC_TRY(sample_regions(kernel, args.region));
    std::map<uint64_t, client::Stats> stats;
    for (const auto& sample : before)
        stats[sample.info.id] = sample.info.stats;
    const auto others = SMC_TRY(read_others(args.with));
    Json rows = Json::array();
    for (const auto& sample : after) {
        rows.push_back(
            row_of(sample, amplification(stats[sample.info.id], sample.info.stats), watched));
        SMC_TRY(add_shared(rows.back(), others));
    }
    Output out = context.output();
    out.model({{"host", host_name()},
               {"seconds", watched.seconds},
               {"lost_events", watched.lost},
               {"regions", rows}});
    if (rows.empty())
        out.line("no region is attached: nothing to advise");
    for (const Json& row : rows)
        write_region(out, row);
    if (watched.lost != 0 && !context.json)
        context.note("the kernel had no room for events, and lost so many: " +
                     std::to_string(watched.lost) + "; what is said is of the others");
    return 0;
}

} // namespace

void add_advise(CLI::App& app, Context& context)
{
    auto args = std::make_shared<AdviseArgs>();
    CLI::App* verb = add_verb(app, context, "advise",
                              "Who dirties the same pages, what needs no page cache (root)",
                              [&context, args] { return advise(context, *args); });
    add_region(*verb, args->region);
    verb->add_option("--with", args->with, "What advise -j wrote on another node")
        ->check(CLI::ExistingFile)
        ->type_name("FILE");
    verb->add_option("-t,--time", args->seconds, "Seconds to watch for")
        ->check(CLI::Range(0.1, 3600.0))
        ->type_name("SECONDS")
        ->capture_default_str();
}

} // namespace smc::ctl
