// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// One other node as a target of this one: binds the decisions (binder.hpp, recovery.hpp) to the
// control connection and the kernel.
//
// Lifetime: made at the first use of the name, kept until the name leaves the configuration and no
// region of it is attached.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "binder.hpp"
#include "client/link.hpp"
#include "client/node_port.hpp"
#include "config.hpp"
#include "control/protocol.hpp"
#include "kernel_link.hpp"

namespace smc {

class Node final : public NodePort, public LinkEvents {
public:
    struct Context { // of the daemon; outlives the nodes
        EventLoop& loop;
        Resolver& resolver;
        KernelLink& kernel;
        const Config& config;
        std::function<void(Json event)> publish;
    };
    using LinkWaiter = std::function<void(Result<void>)>;
    using Names = std::vector<std::string>;
    enum class Memory { used, ignored }; // of a failure a moment ago

    Node(const Context& context, PeerConfig peer);

    [[nodiscard]] Binder& binder() { return binder_; }
    [[nodiscard]] const Binder& binder() const { return binder_; }
    [[nodiscard]] const Link& link() const { return link_; }
    [[nodiscard]] const PeerConfig& peer() const { return link_.peer(); }
    // The configuration has changed: for what begins from now on.
    void configure(PeerConfig peer);
    // Nothing is under way, and nothing depends on it.
    [[nodiscard]] bool unused() const;
    [[nodiscard]] Json session_json() const; // of `sessions`; null without a session

    // What the kernel holds of this node when the daemon starts.
    void adopt(const std::vector<KernelSession>& sessions,
               const std::vector<KernelRegion>& regions);

    // waiter: once the control connection is up, or why it is not.
    void with_link(Memory memory, LinkWaiter waiter);
    // For a caller that waited with with_link().
    void call(std::string_view type, Json body, Channel::Answer answer);
    // Names of the node's exports.
    void list(Memory memory, std::function<void(Result<Names>)> done);

    void on_link_up() override;
    void on_link_failed(const Error& error) override;
    void on_link_lost(const Error& error) override;
    void on_link_notice(const std::string& type, const Json& body) override;

    [[nodiscard]] bool link_up() const override { return link_.up(); }
    void link_open() override;
    void session_open(SessionId session) override;
    void session_close(SessionId session) override;
    void session_adopt(SessionId session) override;
    void grant(SessionId session, const std::string& name) override;
    void grant_release(SessionId session, const std::string& name) override;
    void writer_acquire(SessionId session, const std::string& name) override;
    void writer_release(SessionId session, const std::string& name) override;
    Result<void> kernel_connect(SessionId session, const SessionOffer& offer,
                                const std::string& address, Milliseconds timeout) override;
    Result<void> kernel_delete(SessionId session) override;
    void set_params(RegionId region, const std::string& path, const RegionParams& params,
                    smcfs_origin origin);
    Result<RegionId> kernel_attach(SessionId session, const std::string& name,
                                   const Grant& grant) override;
    void kernel_bind_fail(const std::string& name, int error) override;
    void kernel_revoke(RegionId region) override;
    void kernel_writer_result(RegionId region, int error) override;
    void arm(Timer timer, Milliseconds delay) override;
    void disarm(Timer timer) override;
    [[nodiscard]] Clock::time_point now() const override { return Clock::now(); }
    double random() override;
    SessionId new_session_id() override;

private:
    void call_named(std::string_view type, SessionId session, const std::string& name,
                    Channel::Answer answer);
    void grant_page(SessionId session, const std::string& name, GrantReader so_far);
    void list_page(const std::string& after, Names names, std::function<void(Result<Names>)> done);
    void publish_state(const std::string& reason);
    [[nodiscard]] EventLoop::Source& timer(Timer which);

    Context context_;
    const std::string name_;
    Link link_;
    Binder binder_;
    EventLoop::Source session_timer_;
    EventLoop::Source bind_timer_;
    EventLoop::Source rebind_timer_;
    std::vector<LinkWaiter> waiters_;
    std::optional<Error> failure_; // of the control connection
    Clock::time_point failure_until_;
    Clock::time_point session_since_;
    std::shared_ptr<int> alive_ = std::make_shared<int>(0); // expires with this
};

} // namespace smc
