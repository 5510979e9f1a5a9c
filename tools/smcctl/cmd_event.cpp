// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// events: what happens to sessions, regions, peers and exports, as it happens.
#include <array>
#include <ctime>
#include <memory>

#include <CLI/CLI.hpp>

#include "cli.hpp"
#include "model.hpp"

namespace smc::ctl {
namespace {

using std::chrono::steady_clock;

// While it follows the kernel for want of a daemon, how often it looks for one.
constexpr std::chrono::seconds kLookAgain{1};

struct EventArgs {
    bool follow = false;
    uint64_t count = 0;   // 0: no limit
    unsigned seconds = 0; // 0: no limit
};

// What is left of the limits that the user set.
class Limits {
public:
    explicit Limits(const EventArgs& args)
        : left_(args.count != 0 ? args.count : UINT64_MAX),
          until_(args.seconds != 0 ? steady_clock::now() + std::chrono::seconds(args.seconds)
                                   : steady_clock::time_point::max())
    {}
    void took_one() { left_--; }
    [[nodiscard]] bool reached() const { return left_ == 0 || steady_clock::now() >= until_; }
    [[nodiscard]] std::chrono::milliseconds wait(std::chrono::milliseconds most) const
    {
        auto now = steady_clock::now();
        if (now >= until_)
            return {};
        return std::min(most, std::chrono::ceil<std::chrono::milliseconds>(until_ - now));
    }

private:
    uint64_t left_;
    steady_clock::time_point until_;
};

std::string utc_now()
{
    std::time_t now = std::time(nullptr);
    std::tm parts{};
    gmtime_r(&now, &parts);
    std::array<char, 32> text{};
    std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
    return text.data();
}

void write_event(const Context& context, Json event)
{
    if (event.value("time", Json()).is_null())
        event["time"] = utc_now();
    event.erase("type");
    Output out = context.output();
    out.model_line(event);
    std::string line = cell(event, {"time", ""}) + "  " + cell(event, {"kind", ""}) + "  ";
    line += cell(event, {"node", ""});
    if (event.value("name", Json()).is_string())
        line += ":" + cell(event, {"name", ""});
    line += "  " + cell(event, {"state", ""});
    if (event.value("reason", Json()).is_string())
        line += "  " + cell(event, {"reason", ""});
    out.line(line);
    context.out.flush();
}

// Returns when a limit is reached; an error when the daemon went away.
Result<void> from_daemon(const Context& context, Limits& limits)
{
    auto daemon = SMC_TRY(context.daemon());
    SMC_TRY(daemon.request("events", Json::object(), context.timeout()));
    while (!limits.reached()) {
        auto notice = SMC_TRY(daemon.next_notice(limits.wait(std::chrono::hours(1))));
        if (notice && notice->value("type", Json()) == "event") {
            write_event(context, std::move(*notice));
            limits.took_one();
        }
    }
    return {};
}

// Returns when a limit is reached, or after the given time.
Result<void> from_kernel(const Context& context, client::Kernel& kernel, Limits& limits,
                         std::chrono::milliseconds most)
{
    const auto until = steady_clock::now() + most;
    while (!limits.reached() && steady_clock::now() < until) {
        auto event = kernel.next_event(limits.wait(most));
        if (!event && event.error().code == ENOBUFS) {
            context.note("events came faster than they were read: some are missing");
            continue;
        }
        if (!event)
            return tl::unexpected<Error>(std::move(event).error());
        if (*event) {
            write_event(context, to_json(**event));
            limits.took_one();
        }
    }
    return {};
}

// Until the daemon is back (with --follow), or a limit is reached.
Result<void> without_daemon(const Context& context, const EventArgs& args, Limits& limits)
{
    auto kernel = SMC_TRY(client::Kernel::open());
    SMC_TRY(kernel.subscribe());
    while (!limits.reached()) {
        SMC_TRY(from_kernel(context, kernel, limits,
                            args.follow ? std::chrono::milliseconds(kLookAgain)
                                        : std::chrono::hours(1)));
        if (args.follow && context.daemon())
            break;
    }
    return {};
}

Result<int> events(const Context& context, const EventArgs& args)
{
    Limits limits(args);
    for (bool first = true; !limits.reached(); first = false) {
        auto result = from_daemon(context, limits);
        if (result)
            break;
        if (!is_daemon_down(result.error()) || !(args.follow || first) ||
            (result.error().code == ECONNRESET && !args.follow))
            return tl::unexpected<Error>(std::move(result).error());
        context.note(result.error().what + "; what follows are the kernel's events");
        SMC_TRY(without_daemon(context, args, limits));
    }
    return 0;
}

} // namespace

void add_events(CLI::App& app, Context& context)
{
    auto args = std::make_shared<EventArgs>();
    CLI::App* verb = add_verb(app, context, "events", "Write events as they happen",
                              [&context, args] { return events(context, *args); });
    verb->add_flag("-f,--follow", args->follow, "Go on when the daemon stops or restarts");
    verb->add_option("-n,--count", args->count, "Stop after so many events [never]")
        ->type_name("N");
    verb->add_option("--seconds", args->seconds, "Stop after so long [never]")
        ->check(CLI::Range(1U, 86400U))
        ->type_name("SECONDS");
}

} // namespace smc::ctl
