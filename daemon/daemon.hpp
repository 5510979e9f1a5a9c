// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// The daemon as a whole: makes the parts, joins them, applies the configuration, ends them in order.
//
// Owns: everything that lives as long as the daemon, in order of dependence.
// Contexts: the loop's thread.
// Failure: what it needs to serve at all (the local socket, the control port) fails start(); what it
// can do without (the module, RDMA devices, an export of the configuration) is logged.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "client/nodes.hpp"
#include "config.hpp"
#include "control/peer_server.hpp"
#include "local/local_server.hpp"
#include "target/target.hpp"
#include "verbs/probe.hpp"

namespace smc {

class Daemon {
public:
    struct Options {
        std::string socket_path;
    };

    static Result<std::unique_ptr<Daemon>> create(EventLoop& loop, Config config,
                                                  const Options& options);
    Daemon(const Daemon&) = delete;
    Daemon& operator=(const Daemon&) = delete;
    ~Daemon();

    // Reads the configuration anew. EINVAL lists its mistakes, and nothing changes.
    Result<void> reload();
    // Sessions are closed, then the loop exits.
    void stop();

    [[nodiscard]] const Config& config() const { return config_; }

private:
    Daemon(EventLoop& loop, Config config) : loop_(loop), config_(std::move(config)) {}
    Result<void> start(const Options& options);
    void publish(Json event);

    // Exports of the configuration.
    void apply_exports();
    void add_configured(const ExportConfig& wanted);
    void remove_configured(const std::string& name);

    // Requests of local programs (local/requests.cpp).
    using Handler = void (Daemon::*)(LocalRequest&);
    static const std::map<std::string_view, Handler>& handlers();
    void on_request(LocalRequest& request);
    void on_status(LocalRequest& request);
    void on_export(LocalRequest& request);
    void on_unexport(LocalRequest& request);
    static void answer_page(const LocalRequest& request, const Json& lists);
    void on_exports(LocalRequest& request);
    void on_sessions(LocalRequest& request);
    void on_peers(LocalRequest& request);
    void on_attach(LocalRequest& request);
    void on_detach(LocalRequest& request);
    void on_ping(LocalRequest& request);
    void on_events(LocalRequest& request);
    void on_reload(LocalRequest& request);

    // One `ping` under way (local/ping.cpp).
    struct Ping;
    void ping_control(const std::shared_ptr<Ping>& ping);
    void ping_rdma(const std::shared_ptr<Ping>& ping);
    void ping_probe(const std::shared_ptr<Ping>& ping, const ProbeOffer& offer);

    EventLoop& loop_;
    Config config_;
    std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
    std::unique_ptr<LocalServer> local_;
    std::unique_ptr<PeerServer> peer_server_;
    std::unique_ptr<Target> target_; // before the server's connections are gone
    std::unique_ptr<Nodes> nodes_;
    std::map<std::string, ExportConfig> configured_; // exports that came from the configuration
    std::set<std::string> removing_;                 // that did, and are on their way out
    std::map<std::uint64_t, std::unique_ptr<verbs::Probe>> probes_;
    std::uint64_t next_probe_ = 1;
    bool stopping_ = false;
};

} // namespace smc
