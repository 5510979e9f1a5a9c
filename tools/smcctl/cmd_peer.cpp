// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// sessions, peers, ping: other nodes, and the way to them.
#include <map>
#include <memory>

#include <CLI/CLI.hpp>

#include "cli.hpp"
#include "model.hpp"
#include "units.hpp"

namespace smc::ctl {
namespace {

// Connecting to a node that ping is the first to need.
constexpr std::chrono::seconds kConnectTime{20};

// What the kernel adds to the daemon's view of a session; by the session's id in hexadecimal.
using KernelSessions = std::map<std::string, Json>;

Result<KernelSessions> kernel_sessions()
{
    KernelSessions by_id;
    auto kernel = client::Kernel::open();
    if (!kernel) {
        if (kernel.error().code == ENODEV)
            return by_id; // a node that only exports has no sessions of its own
        return tl::unexpected<Error>(std::move(kernel).error());
    }
    auto found = SMC_TRY(kernel->sessions());
    for (const auto& session : found)
        by_id.emplace(hex16(session.id), to_json(session));
    return by_id;
}

Json outgoing(const Json& from_daemon, KernelSessions from_kernel)
{
    Json rows = Json::array();
    for (Json row : from_daemon) {
        auto id = row.value("session", Json());
        auto known = id.is_string() ? from_kernel.find(id.get<std::string>()) : from_kernel.end();
        if (known != from_kernel.end()) {
            for (const char* key : {"device", "inflight", "queued", "oldest_ms", "stats"})
                row[key] = known->second[key];
            row["kernel_state"] = known->second["state"];
            from_kernel.erase(known);
        }
        rows.push_back(std::move(row));
    }
    // The daemon may have restarted and not have adopted these yet.
    for (auto& [id, row] : from_kernel) {
        row["kernel_state"] = row["state"];
        rows.push_back(std::move(row));
    }
    return rows;
}

Result<int> sessions(const Context& context)
{
    auto answer = SMC_TRY(context.ask_if_running("sessions"));
    KernelSessions from_kernel = SMC_TRY(kernel_sessions());
    Json in = answer ? answer->value("in", Json::array()) : Json();
    Json out_rows = outgoing(answer ? answer->value("out", Json::array()) : Json::array(),
                             std::move(from_kernel));
    Json model = {{"in", std::move(in)}, {"out", std::move(out_rows)}};
    Output out = context.output();
    out.model(model);
    if (!model["in"].is_null()) {
        out.line("In: other nodes use regions of this node");
        out.table(model["in"], {{"session", "SESSION"},
                                {"node", "NODE"},
                                {"state", "STATE"},
                                {"keys", "KEYS"},
                                {"regions", "REGIONS", As::list},
                                {"writes", "HOLDS WRITING RIGHT OF", As::list},
                                {"age_s", "AGE", As::s}});
        out.line("");
    }
    out.line("Out: this node uses regions of other nodes");
    out.table(model["out"], {{"session", "SESSION"},
                             {"node", "NODE"},
                             {"state", "STATE"},
                             {"kernel_state", "QUEUE PAIRS"},
                             {"device", "DEVICE"},
                             {"regions", "REGIONS", As::list},
                             {"writes", "HOLDS WRITING RIGHT OF", As::list},
                             {"inflight", "IN FLIGHT"},
                             {"oldest_ms", "OLDEST", As::ms},
                             {"age_s", "AGE", As::s},
                             {"reason", "REASON"}});
    return 0;
}

// Names come from the peer table, states from the sessions: what the kernel can say without a daemon.
Result<Json> kernel_peers()
{
    auto kernel = SMC_TRY(client::Kernel::open());
    std::map<std::string, std::string> states;
    auto found = SMC_TRY(kernel.sessions());
    for (const auto& session : found)
        states[session.node] = client::session_state_name(session.state);
    Json rows = Json::array();
    auto names = SMC_TRY(kernel.peers());
    for (const auto& peer : names) {
        auto state = states.find(peer.node);
        rows.push_back({{"node", peer.node},
                        {"address", nullptr},
                        {"state", state == states.end() ? Json("idle") : Json(state->second)},
                        {"error", nullptr},
                        {"since_s", nullptr}});
    }
    return rows;
}

Result<int> peers(const Context& context)
{
    auto answer = SMC_TRY(context.ask_if_running("peers"));
    Json rows = answer ? answer->value("peers", Json::array()) : SMC_TRY(kernel_peers());
    Output out = context.output();
    out.model({{"peers", rows}});
    out.table(rows, {{"node", "NODE"},
                     {"address", "ADDRESS"},
                     {"state", "STATE"},
                     {"since_s", "SINCE", As::s},
                     {"error", "ERROR"}});
    return 0;
}

struct PingArgs {
    std::string node;
    unsigned seconds = 2;
    bool no_rdma = false;
};

Result<int> ping(const Context& context, const PingArgs& args)
{
    Json request = {{"node", args.node}, {"rdma", !args.no_rdma}, {"seconds", args.seconds}};
    Json answer = SMC_TRY(
        context.ask("ping", std::move(request), std::chrono::seconds(args.seconds) + kConnectTime));
    for (const char* envelope : {"id", "ok", "type"})
        answer.erase(envelope);
    answer["node"] = args.node;
    Output out = context.output();
    out.model(answer);
    out.record(answer, {{"node", "Node"},
                        {"control_us.min", "Control, least us"},
                        {"control_us.avg", "Control, mean us"},
                        {"control_us.max", "Control, most us"},
                        {"device", "RDMA device"},
                        {"addresses", "RDMA addresses", As::list},
                        {"mtu", "RDMA MTU"},
                        {"rdma_us.min", "RDMA READ, least us"},
                        {"rdma_us.avg", "RDMA READ, mean us"},
                        {"rdma_us.max", "RDMA READ, most us"},
                        {"bandwidth_mbps", "Bandwidth, Mb/s"}});
    return 0;
}

std::string valid_node(const std::string& node)
{
    auto valid = client::check_node_name(node);
    return valid ? std::string() : valid.error().what;
}

} // namespace

void add_peers(CLI::App& app, Context& context)
{
    add_verb(app, context, "sessions",
             "Sessions with other nodes, and who holds which writing right",
             [&context] { return sessions(context); });
    add_verb(app, context, "peers", "Nodes that this node may contact, and how that went",
             [&context] { return peers(context); });

    auto args = std::make_shared<PingArgs>();
    CLI::App* verb =
        add_verb(app, context, "ping", "Measure the control path and the RDMA path to a node",
                 [&context, args] { return ping(context, *args); });
    verb->add_option("node", args->node, "One of smcctl peers")
        ->required()
        ->check(valid_node)
        ->type_name("NODE");
    verb->add_option("--seconds", args->seconds, "How long to measure")
        ->check(CLI::Range(1U, 60U))
        ->type_name("SECONDS")
        ->capture_default_str();
    verb->add_flag("--no-rdma", args->no_rdma, "The control path only");
}

} // namespace smc::ctl
