// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// The control connection from this node to another: connect, hello, heartbeat, requests.
//
//   idle -> connecting (TCP, then peer.hello) -> up -> idle, by lost(), close() or long disuse
//
// Lifetime: belongs to one peer. Callbacks come from the loop.
// Failure: connecting is bounded by the connect timeout. kPingsMissed unanswered heartbeats end the
// connection, as does TCP when nothing is acknowledged for as long.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "config.hpp"
#include "control/channel.hpp"
#include "control/tcp.hpp"

namespace smc {

class LinkEvents {
public:
    virtual ~LinkEvents() = default;
    virtual void on_link_up() = 0;
    virtual void on_link_failed(const Error& error) = 0;
    virtual void on_link_lost(const Error& error) = 0;
    virtual void on_link_notice(const std::string& type, const Json& body) = 0;
};

class Link {
public:
    static constexpr Milliseconds kPingInterval{1000};
    static constexpr int kPingsMissed = 5;
    static constexpr Milliseconds kIdleTimeout{30000};

    enum class State { idle, connecting, up, failed };

    struct Context { // of the daemon; outlives the links
        EventLoop& loop;
        Resolver& resolver;
        const ControlConfig& control;
        std::string node; // this node
        Milliseconds connect_timeout;
    };

    Link(Context context, PeerConfig peer, LinkEvents& events);
    Link(const Link&) = delete;
    Link& operator=(const Link&) = delete;

    // on_link_up() or on_link_failed() follow, unless it is up already.
    void open();
    void close();
    [[nodiscard]] bool up() const { return state_ == State::up && channel_ && channel_->open(); }
    // Heartbeats, and no end by disuse, while a session depends on it.
    void set_wanted(bool wanted) { wanted_ = wanted; }

    // answer: the result, the peer's error, ETIMEDOUT, or why the connection ended.
    void call(std::string_view type, Json body, Milliseconds timeout, Channel::Answer answer);

    [[nodiscard]] State state() const { return state_; }
    [[nodiscard]] const std::string& error() const { return error_; }
    [[nodiscard]] std::string remote_name() const { return remote_name_; }
    [[nodiscard]] std::uint64_t seconds_in_state() const;
    [[nodiscard]] const PeerConfig& peer() const { return peer_; }
    // For the next connection.
    void configure(PeerConfig peer, Milliseconds connect_timeout);

private:
    using Clock = std::chrono::steady_clock;

    void set_state(State state);
    void on_connected(Result<Fd> socket);
    void on_hello(const Result<Json>& answer);
    void fail_connect(const Error& error);
    void on_end(const Error& error);
    void tick();

    Context context_;
    PeerConfig peer_;
    LinkEvents& events_;
    State state_ = State::idle;
    Clock::time_point since_ = Clock::now();
    Clock::time_point used_ = Clock::now();
    std::string error_;
    std::string remote_name_;
    std::unique_ptr<TcpConnect> connect_;
    std::shared_ptr<Channel> channel_;
    EventLoop::Source ticker_;
    bool wanted_ = false;
    bool moved_ = false; // up, but to where the configuration had the node before
    int pings_unanswered_ = 0;
};

const char* to_string(Link::State state);

} // namespace smc
