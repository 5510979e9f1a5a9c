// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
#include "client/nodes.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "core/log.hpp"

namespace smc {
namespace {

constexpr Milliseconds kLeavingInterval{1000}; // nodes that left the configuration, one look

} // namespace

Result<std::unique_ptr<Nodes>> Nodes::create(EventLoop& loop, const Config& config, Publish publish)
{
    std::unique_ptr<Nodes> nodes(new Nodes(loop, config, std::move(publish)));
    nodes->kernel_ = SMC_TRY(KernelLink::create(loop, *nodes));
    return nodes;
}

Node* Nodes::existing(const std::string& name) const
{
    const auto found = nodes_.find(name);
    return found == nodes_.end() ? nullptr : found->second.get();
}

Node* Nodes::make(const PeerConfig& peer)
{
    auto& node = nodes_[peer.name];
    if (!node)
        node = std::make_unique<Node>(Node::Context{loop_, resolver_, *kernel_, config_, publish_},
                                      peer);
    return node.get();
}

Node* Nodes::get(const std::string& name)
{
    auto* node = existing(name);
    if (node != nullptr && (config_.peers.contains(name) || !node->unused()))
        return node;
    const auto found = config_.peers.find(name);
    return found == config_.peers.end() ? nullptr : make(found->second);
}

void Nodes::apply()
{
    for (const auto& [name, node] : nodes_)
        if (const auto found = config_.peers.find(name); found != config_.peers.end())
            node->configure(found->second);
    sync_peers();
    remove_unused();
    look_after_leaving();
}

// The names under the mount point are those of the configuration, and of nodes in use.
void Nodes::sync_peers()
{
    std::set<std::string> leaving;
    if (!kernel_->up())
        return;
    const auto listed = kernel_->peers();
    if (!listed) {
        log::error("the kernel's peers cannot be read: {}", listed.error().what);
        return;
    }
    const std::set<std::string> known(listed->begin(), listed->end());
    for (const auto& name : known) {
        if (config_.peers.contains(name))
            continue;
        if (auto result = kernel_->peer_del(name); !result && result.error().code == EBUSY) {
            leaving.insert(name);
            if (!leaving_.contains(name))
                log::warn("peer {} left the configuration, but regions of it are attached: it goes "
                          "when they are detached",
                          name);
        }
    }
    leaving_ = std::move(leaving);
    for (const auto& [name, peer] : config_.peers) {
        if (known.contains(name))
            continue;
        if (auto result = kernel_->peer_add(name); !result && result.error().code != EEXIST)
            log::error("peer {} cannot be added: {}", name, result.error().what);
    }
}

// Nodes that left the configuration, when nothing depends on them.
void Nodes::remove_unused()
{
    std::erase_if(nodes_, [this](const auto& entry) {
        return !config_.peers.contains(entry.first) && entry.second->unused();
    });
}

// Their last region and session end without a word to this place.
void Nodes::look_after_leaving()
{
    const bool left =
        !leaving_.empty() || std::any_of(nodes_.begin(), nodes_.end(), [this](const auto& entry) {
            return !config_.peers.contains(entry.first);
        });
    if (left)
        leaving_timer_ = loop_.add_timer(kLeavingInterval, [this] {
            sync_peers();
            remove_unused();
            look_after_leaving();
        });
}

// --- what local programs want --------------------------------------------------------------------

void Nodes::attach(const Attach& what, Done<RegionId> done)
{
    auto* node = get(what.node);
    if (node == nullptr) {
        done(fail(ENOENT,
                  fmt::format("{} is no peer: add it to peers in {}", what.node, config_.path)));
        return;
    }
    if (!kernel_->up()) {
        done(fail(ENODEV, kernel_->why_down().empty()
                              ? "the kernel module smcfs is not connected yet"
                              : kernel_->why_down()));
        return;
    }
    // Once: by the answer or by the caller's own time limit, whichever is first.
    auto once = std::make_shared<Done<RegionId>>(std::move(done)); // shared by those two
    auto timer = std::make_shared<EventLoop::Source>();            // and its timer by the first
    if (what.timeout.count() > 0)
        *timer = loop_.add_timer(what.timeout, [once, what] {
            if (auto answer = std::exchange(*once, nullptr))
                answer(fail(ETIMEDOUT, fmt::format("{}:{} is not attached after {} ms", what.node,
                                                   what.name, what.timeout.count())));
        });
    node->binder().bind_for(what.name, [once, timer](const Result<RegionId>& result) {
        timer->reset();
        if (auto answer = std::exchange(*once, nullptr))
            answer(result);
    });
}

void Nodes::detach(RegionId region, bool force, const Done<std::uint64_t>& done)
{
    kernel_->region_detach(region, force, done);
}

std::optional<RegionId> Nodes::find(const std::string& node, const std::string& name) const
{
    const auto* found = existing(node);
    return found == nullptr ? std::nullopt : found->binder().find(name);
}

Json Nodes::peers_json() const
{
    Json peers = Json::array();
    const auto add = [&peers](const PeerConfig& peer, const Node* node) {
        const auto state = node != nullptr ? node->link().state() : Link::State::idle;
        peers.push_back(
            {{"node", peer.name},
             {"address", peer.address},
             {"state", to_string(state)},
             {"error", node != nullptr ? text_or_null(node->link().error()) : Json()},
             {"since_s", node != nullptr ? Json(node->link().seconds_in_state()) : Json()}});
    };
    for (const auto& [name, peer] : config_.peers)
        add(peer, existing(name));
    for (const auto& [name, node] : nodes_)
        if (!config_.peers.contains(name))
            add(node->peer(), node.get());
    return peers;
}

Json Nodes::sessions_json() const
{
    Json sessions = Json::array();
    for (const auto& [name, node] : nodes_)
        if (auto json = node->session_json(); !json.is_null())
            sessions.push_back(std::move(json));
    return sessions;
}

// --- the end -------------------------------------------------------------------------------------

void Nodes::shut_down(Milliseconds timeout, std::function<void()> done)
{
    shut_down_done_ = std::move(done);
    shut_down_timer_ = loop_.add_timer(timeout, [this] {
        log::warn("some sessions are not closed after all that time: left as they are");
        if (auto finished = std::exchange(shut_down_done_, nullptr))
            finished();
    });
    for (const auto& [name, node] : nodes_)
        for (const auto& region : node->binder().region_names()) {
            const auto id = node->binder().find(region);
            if (!id)
                continue;
            ++detaching_;
            kernel_->region_detach(
                *id, false,
                [this, node = name, region, id = *id](const Result<std::uint64_t>& result) {
                    auto* found = existing(node);
                    if (!result)
                        log::info("{}:{} stays attached: {}", node, region, result.error().what);
                    else if (found != nullptr) // the event that says so may not be here yet
                        found->binder().on_region_event({id, node, region, SMCFS_REGION_FAILED});
                    --detaching_;
                    check_shut_down();
                });
        }
    for (const auto& [name, node] : nodes_)
        node->binder().keeper().set_impatient();
    loop_.defer([this] { check_shut_down(); });
}

// Done when every session is closed or carries regions that stay.
void Nodes::check_shut_down()
{
    if (!shut_down_done_ || detaching_ != 0)
        return;
    for (const auto& [name, node] : nodes_) {
        const auto& binder = node->binder();
        if (!binder.has_regions() && binder.keeper().phase() != SessionPhase::idle) {
            // The target's answer closes it; there is no event of the kernel for that.
            shut_down_poll_ = loop_.add_timer(Milliseconds(20), [this] { check_shut_down(); });
            return;
        }
    }
    shut_down_timer_.reset();
    loop_.defer(std::exchange(shut_down_done_, nullptr));
}

} // namespace smc
