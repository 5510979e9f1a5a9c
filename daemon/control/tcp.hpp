// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// Making TCP connections without blocking: names are resolved on helper threads, addresses are
// tried one after the other, everything within one deadline. And listening for them.
#pragma once

#include <sys/socket.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/fd.hpp"
#include "core/result.hpp"
#include "event_loop.hpp"

namespace smc {

struct SocketAddress {
    sockaddr_storage storage{};
    socklen_t length = 0;
};

std::string to_string(const SocketAddress& address); // "10.0.0.1", "fd00::1"
// Numeric only.
Result<SocketAddress> parse_address(const std::string& text, std::uint16_t port);

// Resolves on the loop's behalf.
//
// Contexts: a helper thread per name at work, kThreadsMax at a time, so that one name that takes
// long does not hold up the others. getaddrinfo() cannot be interrupted: a thread whose asker has
// gone ends on its own; its result goes nowhere.
class Resolver {
public:
    static constexpr unsigned kThreadsMax = 16;
    static constexpr std::size_t kWaitingMax = 4096;
    using Done = std::function<void(Result<std::vector<SocketAddress>>)>;

    explicit Resolver(EventLoop& loop);
    ~Resolver();
    Resolver(const Resolver&) = delete;
    Resolver& operator=(const Resolver&) = delete;

    // done runs on the loop, never from within resolve(); not after the Resolver has gone.
    void resolve(const std::string& host, std::uint16_t port, Done done);

private:
    struct State;
    std::shared_ptr<State> state_; // shared with the threads, which may outlive this
};

// One attempt to connect; destroying it gives up.
class TcpConnect {
public:
    using Done = std::function<void(Result<Fd>)>;

    struct To {
        std::string host;
        std::uint16_t port = 0;
        Milliseconds timeout{};
    };

    // done runs once, from the loop. It may destroy the TcpConnect.
    TcpConnect(EventLoop& loop, Resolver& resolver, To to, Done done);
    ~TcpConnect();
    TcpConnect(const TcpConnect&) = delete;
    TcpConnect& operator=(const TcpConnect&) = delete;

private:
    void on_resolved(Result<std::vector<SocketAddress>> addresses);
    void try_next();
    void on_writable();
    void attempt_failed(int code);
    void finish(Result<Fd> result);

    EventLoop& loop_;
    To to_;
    Done done_;
    std::vector<SocketAddress> addresses_;
    std::size_t next_ = 0;
    Fd socket_;
    EventLoop::Source source_;
    EventLoop::Source attempt_timer_;
    EventLoop::Source deadline_;
    Error last_error_{EHOSTUNREACH, "no address"};
    std::shared_ptr<int> alive_ = std::make_shared<int>(0); // expires with this
};

// Accepts connections on one or more addresses.
class TcpListener {
public:
    using Accepted = std::function<void(Fd socket, std::string from)>;

    // listen: numeric addresses; empty: all. EADDRINUSE and the like name the address.
    static Result<std::unique_ptr<TcpListener>> create(EventLoop& loop,
                                                       const std::vector<std::string>& listen,
                                                       std::uint16_t port, Accepted accepted);

private:
    explicit TcpListener(EventLoop& loop, Accepted accepted)
        : loop_(loop), accepted_(std::move(accepted))
    {}
    Result<void> listen_on(const SocketAddress& address, const std::string& text);
    void accept_some(int fd);

    EventLoop& loop_;
    Accepted accepted_;
    std::vector<Fd> sockets_;
    std::vector<EventLoop::Source> sources_;
    EventLoop::Source resume_; // after the process ran out of descriptors
};

// TCP_NODELAY, keepalive and TCP_USER_TIMEOUT: a node that vanished ends its connection.
void configure_tcp(int fd, Milliseconds dead_after);

} // namespace smc
