// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// Where other nodes come in: accepts control connections and passes peer.* requests to the target
// side.
//
// Owns: the listener, the connections, and which connection speaks for which session.
// Failure: a connection that says nothing genuine within kHelloTimeout is closed. When a connection
// ends, its sessions are disowned: they live on for as long as their QPs do.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>

#include "config.hpp"
#include "control/channel.hpp"
#include "control/tcp.hpp"
#include "core/log.hpp"
#include "target/target.hpp"

namespace smc {

class PeerServer final : public TargetEvents {
public:
    static constexpr Milliseconds kHelloTimeout{10000};

    // config: the daemon's.
    PeerServer(EventLoop& loop, const Config& config);
    PeerServer(const PeerServer&) = delete;
    PeerServer& operator=(const PeerServer&) = delete;
    ~PeerServer() override;

    // The target outlives the connections.
    Result<void> start(Target& target);
    // No connections any more, old or new; their sessions stay with the target.
    void stop();

    void revoked(SessionId session, const std::string& name, Generation generation) override;
    void session_lost(SessionId session, const std::string& reason) override;

    [[nodiscard]] std::size_t connections() const { return connections_.size(); }

private:
    struct Connection {
        std::uint64_t id = 0;
        std::string from; // address, for people
        std::shared_ptr<Channel> channel;
        std::optional<std::string> node; // once it said hello
        std::set<SessionId> sessions;    // that it speaks for
        EventLoop::Source hello_timer;
    };
    using Request = Channel::Request;
    using Handler = void (PeerServer::*)(Connection&, const Request&);
    static const std::map<std::string_view, Handler>& handlers();

    void accept(Fd socket, const std::string& from);
    void on_request(std::uint64_t id, const Request& request);
    void on_end(std::uint64_t id, const Error& error);
    void drop(std::uint64_t id);
    void claim(Connection& connection, SessionId session);
    Result<SessionId> claimed_session(const Connection& connection, const Json& body) const;

    void hello(Connection& connection, const Request& request);
    void ping(Connection& connection, const Request& request);
    void list(Connection& connection, const Request& request);
    void session_open(Connection& connection, const Request& request);
    void probe_open(Connection& connection, const Request& request);
    void session_close(Connection& connection, const Request& request);
    void session_adopt(Connection& connection, const Request& request);
    void grant(Connection& connection, const Request& request);
    void grant_release(Connection& connection, const Request& request);
    void writer_acquire(Connection& connection, const Request& request);
    void writer_release(Connection& connection, const Request& request);

    EventLoop& loop_;
    const Config& config_;
    Target* target_ = nullptr;
    std::unique_ptr<TcpListener> listener_;
    std::map<std::uint64_t, Connection> connections_;
    std::map<SessionId, std::uint64_t> owners_; // session to connection
    std::uint64_t next_id_ = 1;
    log::RateLimit log_limit_{10, Milliseconds(10000)};
};

} // namespace smc
