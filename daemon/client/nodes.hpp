// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// The client side as a whole: which nodes may be used, and what the kernel and local programs want
// of them.
//
// Owns: the link to the kernel, the Node objects.
// Failure: a dead node holds up nothing but itself; there is no state that two nodes share.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>

#include "client/node.hpp"
#include "config.hpp"
#include "control/tcp.hpp"
#include "kernel_link.hpp"

namespace smc {

class Nodes final : public KernelEvents {
public:
    using Publish = std::function<void(Json event)>;

    // config: the daemon's, which may change under apply().
    static Result<std::unique_ptr<Nodes>> create(EventLoop& loop, const Config& config,
                                                 Publish publish);

    // The configuration has changed: peers come and go.
    void apply();

    struct Attach {
        std::string node;
        std::string name;
        Milliseconds timeout{};
    };
    // ENOENT: no such peer. ENODEV: no module.
    void attach(const Attach& what, Done<RegionId> done);
    void detach(RegionId region, bool force, const Done<std::uint64_t>& done);
    [[nodiscard]] std::optional<RegionId> find(const std::string& node,
                                               const std::string& name) const;
    // Null when the configuration has no such peer and nothing of it is attached.
    Node* get(const std::string& name);

    // Detaches what nobody uses and closes its sessions; regions in use stay, for the next daemon.
    // done: when that is so, or after the timeout.
    void shut_down(Milliseconds timeout, std::function<void()> done);

    [[nodiscard]] const KernelLink& kernel() const { return *kernel_; }
    [[nodiscard]] Json peers_json() const;
    [[nodiscard]] Json sessions_json() const;

    void kernel_up() override;
    void kernel_down() override;
    void kernel_events_lost() override;
    void session_event(const KernelSession& session) override;
    void region_event(const KernelRegion& region) override;
    void upcall_bind(const std::string& node, const std::string& name) override;
    void upcall_list(const std::string& node, std::uint64_t cookie) override;
    void upcall_writer(RegionId region, const std::string& node, const std::string& name) override;
    void upcall_writer_release(RegionId region, const std::string& node,
                               const std::string& name) override;

private:
    Nodes(EventLoop& loop, const Config& config, Publish publish)
        : loop_(loop), config_(config), publish_(std::move(publish)), resolver_(loop)
    {}
    void sync_peers();
    void remove_unused();
    void look_after_leaving();
    void adopt_all();
    Node* existing(const std::string& name) const;
    Node* make(const PeerConfig& peer);
    void check_shut_down();

    EventLoop& loop_;
    const Config& config_;
    Publish publish_;
    Resolver resolver_;
    std::unique_ptr<KernelLink> kernel_;
    std::map<std::string, std::unique_ptr<Node>> nodes_;
    std::set<std::string> leaving_; // left the configuration, but are in use
    EventLoop::Source leaving_timer_;
    std::function<void()> shut_down_done_;
    EventLoop::Source shut_down_timer_;
    EventLoop::Source shut_down_poll_;
    std::size_t detaching_ = 0;
};

} // namespace smc
