// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// smcfsd: flags, configuration, wiring, run. Always stays in the foreground; systemd does the rest.
#include <csignal>
#include <cstdio>
#include <string>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <systemd/sd-daemon.h>

#include "config.hpp"
#include "core/log.hpp"
#include "daemon.hpp"
#include "event_loop.hpp"
#include "process.hpp"

namespace smc {
namespace {

struct Arguments {
    std::string config_path{kDefaultConfigPath};
    std::string socket_path{kDefaultSocketPath};
    std::string log_level = "info";
    bool check_config = false;
};

// 0, or 1 after all mistakes were printed.
int check_config(const ConfigReport& report, const std::string& path)
{
    for (const auto& issue : report.issues)
        fmt::print(stderr, "{}: {}\n", issue.where, issue.what);
    if (!report.config)
        return 1;
    fmt::print("{}: ok, {} exports, {} peers\n", path, report.config->exports.size(),
               report.config->peers.size());
    return 0;
}

Result<int> serve(const Arguments& arguments, Config config)
{
    SMC_TRY(block_signals());
    auto loop = SMC_TRY(EventLoop::create());
    protect_process();
    auto daemon = SMC_TRY(Daemon::create(*loop, std::move(config), {arguments.socket_path}));

    auto* raw = daemon.get();
    const auto on_stop = [raw] { raw->stop(); };
    const auto terminate = SMC_TRY(loop->add_signal(SIGTERM, on_stop));
    const auto interrupt = SMC_TRY(loop->add_signal(SIGINT, on_stop));
    const auto hang_up = SMC_TRY(loop->add_signal(SIGHUP, [raw] {
        ::sd_notify(0, "RELOADING=1");
        // Its mistakes are in the log already.
        if (auto result = raw->reload(); !result)
            log::error("the configuration of before stays");
        ::sd_notify(0, "READY=1");
    }));
    SMC_TRY(loop->enable_watchdog());

    log::info("smcfsd {} serves node {}: {} exports, {} peers, control port {}, socket {}",
              SMC_VERSION, raw->config().node, raw->config().exports.size(),
              raw->config().peers.size(), raw->config().control.port, arguments.socket_path);
    ::sd_notifyf(0, "READY=1\nSTATUS=Serving node %s", raw->config().node.c_str());
    return SMC_TRY(loop->run());
}

int run(int argc, char** argv)
{
    Arguments arguments;
    CLI::App app{"The daemon of SMC: exports memory of this node, attaches that of others."};
    app.name("smcfsd");
    app.add_option("-c,--config", arguments.config_path, "Configuration, see smcfsd.toml(5)")
        ->capture_default_str();
    app.add_option("--socket", arguments.socket_path, "Where local programs connect")
        ->capture_default_str();
    app.add_option("--log-level", arguments.log_level,
                   "trace, debug, info, warning, error, critical or off")
        ->capture_default_str();
    app.add_flag("--check-config", arguments.check_config,
                 "Report every mistake in the configuration and exit");
    app.add_flag_callback(
        "--foreground", [] {}, "Accepted for convenience: smcfsd never goes to the background");
    app.set_version_flag("--version", "smcfsd " SMC_VERSION);
    try { // CLI11 reports by exception
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? 0 : 2;
    }
    if (auto result = log::init(arguments.log_level); !result) {
        fmt::print(stderr, "smcfsd: {}\n", result.error().what);
        return 2;
    }
    auto report = load_config(arguments.config_path);
    if (arguments.check_config || !report.config)
        return check_config(report, arguments.config_path);

    const auto code = serve(arguments, std::move(*report.config));
    if (!code) {
        log::critical("{}", code.error().what);
        return 1;
    }
    log::info("stopped");
    return *code;
}

} // namespace
} // namespace smc

int main(int argc, char** argv)
{
    try {
        return smc::run(argc, argv);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "smcfsd: %s\n", error.what());
        return 1;
    }
}
