// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// The unix socket for programs of this node: smcctl, libsmc.
//
// Owns: the socket and its path, a lock that says that this daemon runs, the connections.
// Failure: limits per user and in all keep one program from shutting out the others. A subscriber of
// events that does not read is disconnected.
#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "config.hpp"
#include "control/channel.hpp"
#include "core/log.hpp"

namespace smc {

struct Credentials { // of the process that connected
    pid_t pid = 0;
    uid_t uid = 0;
    gid_t gid = 0;
};

// One request of a local program.
struct LocalRequest {
    Credentials caller;
    std::string type;
    Json body;
    Channel::Responder responder;
    std::function<Fd()> take_fd;     // the oldest descriptor that was passed
    std::function<void()> subscribe; // from now on this connection gets events
};

class LocalServer {
public:
    using Handler = std::function<void(LocalRequest request)>;

    // EBUSY: another daemon serves this path.
    static Result<std::unique_ptr<LocalServer>> create(EventLoop& loop, const std::string& path,
                                                       const LimitConfig& limits, Handler handler);
    LocalServer(const LocalServer&) = delete;
    LocalServer& operator=(const LocalServer&) = delete;
    ~LocalServer(); // removes the path

    // To all subscribers; the time is added.
    void publish(Json event);

private:
    struct Connection {
        Credentials caller;
        std::shared_ptr<Channel> channel;
        bool subscribed = false;
    };

    LocalServer(EventLoop& loop, std::string path, const LimitConfig& limits, Handler handler)
        : loop_(loop), path_(std::move(path)), limits_(limits), handler_(std::move(handler))
    {}
    Result<void> listen();
    void accept_some();
    Result<void> admit(const Credentials& caller) const;
    void serve(std::uint64_t id, Channel::Request request);

    EventLoop& loop_;
    std::string path_;
    const LimitConfig& limits_;
    Handler handler_;
    Fd lock_;
    Fd socket_;
    EventLoop::Source source_;
    EventLoop::Source resume_;
    std::map<std::uint64_t, Connection> connections_;
    std::map<uid_t, unsigned> per_user_;
    std::uint64_t next_id_ = 1;
    log::RateLimit log_limit_{10, Milliseconds(10000)};
};

} // namespace smc
