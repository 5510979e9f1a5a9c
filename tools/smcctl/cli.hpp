// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// Owns: what every command of smcctl shares: the options, the way to the daemon and to the kernel, and
// how a command is registered. One cmd_<noun>.cpp per noun; each verb is one function that
// builds a model and writes it.
//
// Failure: a command returns an Error, run() prints it once; exit 0 ok, 1 failed, 2 usage.
#pragma once

#include <chrono>
#include <functional>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "daemon_client.hpp"
#include "names.hpp"
#include "netlink.hpp"
#include "output.hpp"

namespace CLI { // NOLINT(readability-identifier-naming): the library's
class App;
class Option;
} // namespace CLI

namespace smc::ctl {

using client::RegionName;

struct Context {
    std::ostream& out;
    std::ostream& err;
    bool json = false;
    std::string socket = client::kDaemonSocket;
    unsigned timeout_s = 10; // for an answer of the local daemon that depends on nobody else

    // Chosen by the command line.
    std::string verb;
    std::function<Result<int>()> action;

    [[nodiscard]] Output output() const { return {out, json}; }
    void note(std::string_view text) const; // on stderr

    [[nodiscard]] std::chrono::milliseconds timeout() const
    {
        return std::chrono::seconds(timeout_s);
    }
    [[nodiscard]] Result<client::DaemonClient> daemon() const;

    // extra: how long the answer may take beyond timeout_s, when it depends on somebody else.
    [[nodiscard]] Result<Json> ask(std::string_view type, Json args = Json::object(),
                                   std::chrono::milliseconds extra = {}) const;
    // A listing, page by page.
    [[nodiscard]] Result<Json> ask_all(std::string_view type) const;
    // As ask_all(), but nothing, and a note, when there is no daemon to speak to.
    [[nodiscard]] Result<std::optional<Json>> ask_if_running(std::string_view type) const;

    // The attached region of this name: ENOENT if there is none.
    [[nodiscard]] static Result<client::RegionInfo> attached(client::Kernel& kernel,
                                                             const RegionName& name);
};

// Whether this error says that no daemon can be spoken to, rather than being its answer.
bool is_daemon_down(const Error& error);

// A subcommand whose action runs when it was chosen.
CLI::App* add_verb(CLI::App& app, Context& context, const std::string& verb,
                   const std::string& description, std::function<Result<int>()> action);

// Positional REGION: NODE:NAME or /smc/NODE/NAME; anything else is a usage error.
CLI::Option* add_region(CLI::App& verb, RegionName& region);
// An option that takes a size with unit.
CLI::Option* add_size(CLI::App& verb, const std::string& name, uint64_t& bytes,
                      const std::string& description);

// One per file, in the order of --help.
void add_status(CLI::App& app, Context& context);  // status
void add_exports(CLI::App& app, Context& context); // export, unexport
void add_regions(CLI::App& app, Context& context); // regions, attach, detach
void add_sync(CLI::App& app, Context& context);    // flush, acquire
void add_params(CLI::App& app, Context& context);  // get, set
void add_peers(CLI::App& app, Context& context);   // sessions, peers, ping
void add_ps(CLI::App& app, Context& context);      // ps
void add_stats(CLI::App& app, Context& context);   // stats
void add_top(CLI::App& app, Context& context);     // top
void add_inspect(CLI::App& app, Context& context); // inspect
void add_advise(CLI::App& app, Context& context);  // advise
void add_events(CLI::App& app, Context& context);  // events
void add_doctor(CLI::App& app, Context& context);  // doctor

// The whole program but for the process: what main() calls, and the tests.
int run(const std::vector<std::string>& args, std::ostream& out, std::ostream& err);

} // namespace smc::ctl
