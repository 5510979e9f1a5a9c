// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// regions, attach, detach: the regions that this node offers and uses.
#include <iostream>
#include <memory>

#include <CLI/CLI.hpp>
#include <unistd.h>

#include "cli.hpp"
#include "model.hpp"
#include "proc_scan.hpp"
#include "units.hpp"

namespace smc::ctl {
namespace {

// A detach flushes first; what has to go out may be gigabytes over a slow link.
constexpr std::chrono::minutes kFlushTime{10};

struct DetachArgs {
    RegionName region;
    bool force = false;
    bool yes = false;
};

struct AttachArgs {
    RegionName region;
    unsigned wait_s = 10;
};

Result<Json> attached_model(bool daemon_running)
{
    auto kernel = client::Kernel::open();
    if (!kernel) {
        // A node that only exports runs without the module.
        if (kernel.error().code == ENODEV && daemon_running)
            return Json();
        return tl::unexpected<Error>(std::move(kernel).error());
    }
    Json rows = Json::array();
    auto regions = SMC_TRY(kernel->regions());
    for (const auto& region : regions)
        rows.push_back(to_json(region));
    return rows;
}

Result<int> regions(const Context& context)
{
    auto answer = SMC_TRY(context.ask_if_running("exports"));
    Json model = {{"exports", answer ? answer->value("exports", Json::array()) : Json()},
                  {"attached", SMC_TRY(attached_model(answer.has_value()))}};
    Output out = context.output();
    out.model(model);
    if (!model["exports"].is_null()) {
        out.line("Exported by this node");
        out.table(model["exports"], {{"name", "NAME"},
                                     {"size", "SIZE", As::size},
                                     {"mode", "MODE", As::octal},
                                     {"uid", "UID"},
                                     {"writers", "WRITERS"},
                                     {"readonly", "READONLY"},
                                     {"provider", "MEMORY"},
                                     {"keys", "KEYS"},
                                     {"writer", "WRITER"},
                                     {"sessions", "SESSIONS", As::list},
                                     {"generation", "GENERATION"}});
        out.line("");
    }
    if (!model["attached"].is_null()) {
        out.line("Attached on this node");
        out.table(model["attached"], {{"region", "ID"},
                                      {"node", "NODE"},
                                      {"name", "NAME"},
                                      {"state", "STATE"},
                                      {"size", "SIZE", As::size},
                                      {"mode", "MODE", As::octal},
                                      {"uid", "UID"},
                                      {"writer_state", "WRITING RIGHT"},
                                      {"openers", "OPEN"},
                                      {"cached_bytes", "CACHED", As::size},
                                      {"dirty_bytes", "DIRTY", As::size},
                                      {"reason", "REASON"}});
    }
    return 0;
}

Result<int> attach(const Context& context, const AttachArgs& args)
{
    std::chrono::milliseconds wait = std::chrono::seconds(args.wait_s);
    Json request = {
        {"node", args.region.node}, {"name", args.region.name}, {"timeout_ms", wait.count()}};
    Json answer = SMC_TRY(context.ask("attach", std::move(request), wait));
    Json model = {{"region", answer.value("region", Json())}, {"path", args.region.path()}};
    Output out = context.output();
    out.model(model);
    out.line("attached " + args.region.text() + " as " + args.region.path());
    return 0;
}

bool confirmed(const Context& context, const client::RegionInfo& region)
{
    context.err << "smcctl: " << format_size(region.dirty_bytes) << " of changes to " << region.node
                << ":" << region.name
                << " have not been sent and may be discarded for good. Detach anyway? [y/N] "
                << std::flush;
    std::string answer;
    std::getline(std::cin, answer);
    return answer == "y" || answer == "Y" || answer == "yes";
}

// Who keeps the region from being detached, in words; empty when nobody was found.
std::string users_of(uint64_t region_id)
{
    std::string text;
    for (const auto& use : scan_processes()) {
        if (use.region_id == region_id)
            text += (text.empty() ? "" : ", ") + use.command + " (" + std::to_string(use.pid) + ")";
    }
    return text;
}

// By the daemon, which also gives the grant back to the peer; by the kernel when there is none.
Result<Json> detach_somehow(const Context& context, client::Kernel& kernel,
                            const client::RegionInfo& region, bool force)
{
    Json request = {{"node", region.node}, {"name", region.name}, {"force", force}};
    auto answer = context.ask("detach", std::move(request), kFlushTime);
    if (answer)
        return answer->value("discarded_bytes", Json(0U));
    if (answer.error().code != ENOTCONN)
        return tl::unexpected<Error>(std::move(answer).error());
    context.note(answer.error().what + "; detaching in the kernel alone");
    return Json(SMC_TRY(kernel.detach(region.id, force)));
}

Result<int> detach(const Context& context, const DetachArgs& args)
{
    auto kernel = SMC_TRY(client::Kernel::open());
    auto region = SMC_TRY(Context::attached(kernel, args.region));
    if (args.force && !args.yes && region.dirty_bytes > 0) {
        if (isatty(STDIN_FILENO) == 0)
            return fail(EPERM, format_size(region.dirty_bytes) + " of changes to " +
                                   args.region.text() + " have not been sent: give --yes to " +
                                   "discard them, or run smcctl flush " + args.region.text());
        if (!confirmed(context, region))
            return fail(ECANCELED, "not detached");
    }
    auto discarded = detach_somehow(context, kernel, region, args.force);
    if (!discarded) {
        Error error = std::move(discarded).error();
        std::string users = error.code == EBUSY ? users_of(region.id) : std::string();
        if (!users.empty())
            error.what += "; in use by " + users;
        return tl::unexpected<Error>(std::move(error));
    }
    Json model = {{"node", region.node}, {"name", region.name}, {"discarded_bytes", *discarded}};
    Output out = context.output();
    out.model(model);
    out.line("detached " + args.region.text() +
             (*discarded != 0 ? ", " + cell(model, {"discarded_bytes", "", As::text}) +
                                    " changed bytes were discarded"
                              : ""));
    return 0;
}

} // namespace

void add_regions(CLI::App& app, Context& context)
{
    add_verb(app, context, "regions", "Regions that this node exports, and those attached on it",
             [&context] { return regions(context); });

    auto attach_args = std::make_shared<AttachArgs>();
    CLI::App* at = add_verb(app, context, "attach", "Bind a region ahead of its first use",
                            [&context, attach_args] { return attach(context, *attach_args); });
    add_region(*at, attach_args->region)->required();
    at->add_option("--wait", attach_args->wait_s, "Seconds that the peer may take")
        ->check(CLI::Range(1U, 600U))
        ->type_name("SECONDS")
        ->capture_default_str();

    auto detach_args = std::make_shared<DetachArgs>();
    CLI::App* de = add_verb(app, context, "detach", "Flush a region and forget it (root)",
                            [&context, detach_args] { return detach(context, *detach_args); });
    add_region(*de, detach_args->region)->required();
    de->add_flag(
        "--force", detach_args->force,
        "Also while it is open or its changes cannot be sent: they are discarded, counted");
    de->add_flag("--yes", detach_args->yes, "Do not ask before changes are discarded");
}

} // namespace smc::ctl
