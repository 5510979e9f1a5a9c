// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// Nodes, as the listener of the kernel: what it holds, what happens there, what it asks for.
#include <algorithm>

#include <fmt/format.h>

#include "client/nodes.hpp"
#include "core/log.hpp"

namespace smc {
namespace {

const char* state_name(smcfs_session_state state)
{
    switch (state) {
    case SMCFS_SESSION_CONNECTING:
        return "connecting";
    case SMCFS_SESSION_LIVE:
        return "live";
    case SMCFS_SESSION_DRAINING:
        return "draining";
    case SMCFS_SESSION_DEAD:
        return "dead";
    default:
        return "unknown";
    }
}

const char* state_name(smcfs_region_state state)
{
    switch (state) {
    case SMCFS_REGION_BINDING:
        return "binding";
    case SMCFS_REGION_ACTIVE:
        return "active";
    case SMCFS_REGION_DEGRADED:
        return "degraded";
    case SMCFS_REGION_FAILED:
        return "failed";
    case SMCFS_REGION_DETACHING:
        return "detaching";
    default:
        return "unknown";
    }
}

} // namespace

void Nodes::kernel_up()
{
    sync_peers();
    adopt_all();
    look_after_leaving();
}

void Nodes::adopt_all()
{
    const auto sessions = kernel_->sessions();
    const auto regions = kernel_->regions();
    if (!sessions || !regions) {
        log::error("what the kernel holds cannot be read: {}",
                   sessions ? regions.error().what : sessions.error().what);
        return;
    }
    std::map<std::string, std::pair<std::vector<KernelSession>, std::vector<KernelRegion>>> held;
    for (const auto& session : *sessions)
        held[session.node].first.push_back(session);
    for (const auto& region : *regions)
        if (region.generation != 0 && region.state != SMCFS_REGION_FAILED)
            held[region.node].second.push_back(region);
    for (const auto& [name, of_node] : held) {
        auto* node = get(name);
        if (node == nullptr) { // it left the configuration while it was in use
            PeerConfig peer;
            peer.name = name;
            peer.address = name;
            node = make(peer);
        }
        log::info("{}: {} sessions and {} regions of before are taken over", name,
                  of_node.first.size(), of_node.second.size());
        node->adopt(of_node.first, of_node.second);
    }
}

void Nodes::kernel_down()
{
    for (const auto& [name, node] : nodes_)
        node->binder().kernel_gone();
}

void Nodes::kernel_events_lost()
{
    log::warn("events of the kernel were lost, its state is read anew");
    const auto sessions = kernel_->sessions();
    const auto regions = kernel_->regions();
    if (!sessions || !regions)
        return;
    for (const auto& [name, node] : nodes_) {
        std::vector<KernelSession> its_sessions;
        std::vector<KernelRegion> its_regions;
        for (const auto& session : *sessions)
            if (session.node == name)
                its_sessions.push_back(session);
        for (const auto& region : *regions)
            if (region.node == name)
                its_regions.push_back(region);
        node->binder().resync(its_regions);
        node->binder().keeper().resync(its_sessions);
    }
}

void Nodes::session_event(const KernelSession& session)
{
    publish_({{"kind", "session"},
              {"node", session.node},
              {"session", identity_text(session.session)},
              {"state", state_name(session.state)},
              {"errno", session.error},
              {"reason", text_or_null(session.reason)}});
    if (auto* node = existing(session.node))
        node->binder().keeper().on_kernel_event(session);
    check_shut_down();
}

void Nodes::region_event(const KernelRegion& region)
{
    publish_({{"kind", "region"},
              {"node", region.node},
              {"name", region.name},
              {"region", region.region},
              {"state", state_name(region.state)},
              {"errno", region.error},
              {"reason", text_or_null(region.reason)}});
    if (auto* node = existing(region.node))
        node->binder().on_region_event(region);
}

void Nodes::upcall_bind(const std::string& node, const std::string& name)
{
    if (auto* found = get(node))
        found->binder().bind_for_kernel(name);
    else if (auto result = kernel_->bind_fail(node, name, ENOENT); !result)
        log::debug("{}:{}: {}", node, name, result.error().what);
}

void Nodes::upcall_list(const std::string& node, std::uint64_t cookie)
{
    auto answer = [this, node, cookie](const Result<Node::Names>& names) {
        const int error = names ? 0 : std::max(names.error().code, 1);
        if (!names)
            log::debug("no listing of {}: {}", node, names.error().what);
        if (auto result = kernel_->list_result(cookie, error, names ? *names : Node::Names());
            !result)
            log::debug("listing of {}: {}", node, result.error().what);
    };
    if (auto* found = get(node))
        found->list(Node::Memory::used, answer);
    else
        answer(fail(ENOENT, "no such peer"));
}

void Nodes::upcall_writer(RegionId region, const std::string& node, const std::string& name)
{
    if (auto* found = existing(node))
        found->binder().on_writer_wanted(region, name);
    else if (auto result = kernel_->writer_result(region, ESTALE); !result)
        log::debug("region {}: {}", region, result.error().what);
}

void Nodes::upcall_writer_release(RegionId region, const std::string& node, const std::string& name)
{
    if (auto* found = existing(node))
        found->binder().on_writer_unwanted(region, name);
}

} // namespace smc
