// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// What the decisions about one node (recovery.hpp, binder.hpp) need from the world: the control
// connection, the kernel, clocks. Requests to the target are answered later, by the on_...()
// functions of whoever sent them, and fail when the control connection does.
#pragma once

#include <chrono>
#include <string>

#include "kernel_link.hpp"
#include "target/types.hpp"

namespace smc {

class NodePort {
public:
    using Clock = std::chrono::steady_clock;
    enum class Timer { session, bind, rebind };

    virtual ~NodePort() = default;

    // The control connection: on_link_up() or on_link_failed() follow link_open().
    [[nodiscard]] virtual bool link_up() const = 0;
    virtual void link_open() = 0;

    // Requests to the target daemon.
    virtual void session_open(SessionId session) = 0;
    virtual void session_close(SessionId session) = 0;
    virtual void session_adopt(SessionId session) = 0;
    virtual void grant(SessionId session, const std::string& name) = 0;
    virtual void grant_release(SessionId session, const std::string& name) = 0;
    virtual void writer_acquire(SessionId session, const std::string& name) = 0;
    virtual void writer_release(SessionId session, const std::string& name) = 0;

    // Requests to the kernel, executed at once.
    virtual Result<void> kernel_connect(SessionId session, const SessionOffer& offer,
                                        const std::string& address, Milliseconds timeout) = 0;
    virtual Result<void> kernel_delete(SessionId session) = 0;
    virtual Result<RegionId> kernel_attach(SessionId session, const std::string& name,
                                           const Grant& grant) = 0;
    virtual void kernel_bind_fail(const std::string& name, int error) = 0;
    virtual void kernel_revoke(RegionId region) = 0;
    virtual void kernel_writer_result(RegionId region, int error) = 0;

    // One of each kind; arming again replaces.
    virtual void arm(Timer timer, Milliseconds delay) = 0;
    virtual void disarm(Timer timer) = 0;
    [[nodiscard]] virtual Clock::time_point now() const = 0;
    // From 0 to 1, for jitter; new at each call.
    virtual double random() = 0;
    virtual SessionId new_session_id() = 0;
};

// Times that both go by.
struct ClientTimes {
    Milliseconds connect{5000};
    Milliseconds bind{10000};
    Milliseconds retry_first{50};
    Milliseconds retry_cap{1000};
    Milliseconds retry_window{60000};
};

} // namespace smc
