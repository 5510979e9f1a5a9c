// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
#include "cli.hpp"

#include <memory>
#include <ostream>

#include <CLI/CLI.hpp>

#include "units.hpp"

namespace smc::ctl {
namespace {

constexpr int kExitFailed = 1;
constexpr int kExitUsage = 2;

int report(const Context& context, const Error& error)
{
    if (context.json) {
        Json model = {{"error", {{"errno", error.code}, {"what", error.what}}}};
        context.output().model(model);
    }
    context.err << "smcctl " << context.verb << ": " << error.what << '\n';
    return kExitFailed;
}

} // namespace

void Context::note(std::string_view text) const
{
    out.flush();
    err << "smcctl: note: " << text << '\n';
}

bool is_daemon_down(const Error& error)
{
    return error.code == ENOTCONN || error.code == ETIMEDOUT || error.code == ECONNRESET ||
           error.code == EACCES;
}

Result<client::DaemonClient> Context::daemon() const
{
    return client::DaemonClient::connect(socket, timeout());
}

Result<Json> Context::ask(std::string_view type, Json args, std::chrono::milliseconds extra) const
{
    auto client = SMC_TRY(daemon());
    return client.request(type, std::move(args), timeout() + extra);
}

Result<Json> Context::ask_all(std::string_view type) const
{
    auto client = SMC_TRY(daemon());
    Json all = SMC_TRY(client.request(type, Json::object(), timeout()));
    Json page = all;
    for (size_t first = 0; page.value("more", Json()) == true;) {
        size_t got = 0;
        for (const Json& value : page)
            got += value.is_array() ? value.size() : 0;
        if (got == 0)
            return fail(EPROTO, "smcfsd promises more of the listing, but gives nothing");
        first += got;
        page = SMC_TRY(client.request(type, {{"first", first}}, timeout()));
        for (const auto& [key, value] : page.items()) {
            if (value.is_array() && all[key].is_array())
                all[key].insert(all[key].end(), value.begin(), value.end());
        }
    }
    return all;
}

Result<std::optional<Json>> Context::ask_if_running(std::string_view type) const
{
    auto answer = ask_all(type);
    if (answer)
        return std::move(*answer);
    if (!is_daemon_down(answer.error()))
        return tl::unexpected<Error>(std::move(answer).error());
    note(answer.error().what + "; what follows is what the kernel knows");
    return std::nullopt;
}

Result<client::RegionInfo> Context::attached(client::Kernel& kernel, const RegionName& name)
{
    auto regions = SMC_TRY(kernel.regions());
    for (auto& region : regions) {
        if (region.node == name.node && region.name == name.name)
            return std::move(region);
    }
    return fail(ENOENT, "region " + name.text() + " is not attached on this node: open " +
                            name.path() + " or run smcctl attach " + name.text());
}

CLI::App* add_verb(CLI::App& app, Context& context, const std::string& verb,
                   const std::string& description, std::function<Result<int>()> action)
{
    CLI::App* sub = app.add_subcommand(verb, description);
    sub->fallthrough(); // the global options may follow the verb
    sub->callback([&context, verb, action = std::move(action)] {
        context.verb = verb;
        context.action = action;
    });
    return sub;
}

CLI::Option* add_region(CLI::App& verb, RegionName& region)
{
    CLI::callback_t take = [&region](const CLI::results_t& words) {
        auto parsed = client::parse_region_name(words.at(0));
        if (!parsed)
            throw CLI::ValidationError("REGION", parsed.error().what);
        region = std::move(*parsed);
        return true;
    };
    return verb.add_option("region", take, "NODE:NAME or /smc/NODE/NAME")->type_name("REGION");
}

CLI::Option* add_size(CLI::App& verb, const std::string& name, uint64_t& bytes,
                      const std::string& description)
{
    CLI::callback_t take = [&bytes, name](const CLI::results_t& words) {
        auto parsed = parse_size(words.at(0));
        if (!parsed)
            throw CLI::ValidationError(name, parsed.error().what);
        bytes = *parsed;
        return true;
    };
    return verb.add_option(name, take, description)->type_name("SIZE");
}

int run(const std::vector<std::string>& args, std::ostream& out, std::ostream& err)
{
    Context context{.out = out, .err = err, .verb = {}, .action = {}};
    CLI::App app("Exports, attaches and watches SMC regions: another node's accelerator memory as "
                 "files under /smc.",
                 "smcctl");
    app.set_version_flag("--version", "smcctl " SMC_VERSION);
    app.add_flag("-j,--json", context.json, "Write JSON");
    app.add_option("--socket", context.socket, "Socket of the local daemon")
        ->envname("SMCFS_SOCKET")
        ->type_name("PATH")
        ->capture_default_str();
    app.add_option("--timeout", context.timeout_s, "Seconds to wait for the local daemon")
        ->check(CLI::Range(1U, 600U))
        ->type_name("SECONDS")
        ->capture_default_str();
    app.require_subcommand(1);
    app.footer(
        "Sizes take K, M, G and T (powers of 1024). Exit status: 0 ok, 1 failed, 2 usage. See "
        "smcctl(8).");

    add_status(app, context);
    add_exports(app, context);
    add_regions(app, context);
    add_sync(app, context);
    add_params(app, context);
    add_peers(app, context);
    add_ps(app, context);
    add_stats(app, context);
    add_top(app, context);
    add_inspect(app, context);
    add_advise(app, context);
    add_events(app, context);
    add_doctor(app, context);

    try {
        app.parse(
            std::vector<std::string>(args.rbegin(), args.rend())); // CLI11 takes them reversed
    } catch (const CLI::Success& success) {                        // --help, --version
        return app.exit(success, out, err);
    } catch (const CLI::ParseError& error) {
        auto unknown = app.remaining();
        if (app.get_subcommands().empty() && !unknown.empty())
            err << "smcctl: there is no verb \"" << unknown.front() << "\": see smcctl --help\n";
        else
            app.exit(error, out, err);
        return kExitUsage;
    }
    auto result = context.action();
    if (!result)
        return report(context, result.error());
    out.flush();
    if (!out) {
        err << "smcctl " << context.verb << ": cannot write the output\n";
        return kExitFailed;
    }
    return *result;
}

} // namespace smc::ctl
