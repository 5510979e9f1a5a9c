// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
#include "client/nodes.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "core/log.hpp"

namespace smc {
namespace {

constexpr Milliseconds kLeavingInterval{1000}; // nodes that left the configuration, one look

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

Json text_or_null(const std::string& text)
{
    return text.empty() ? Json() : Json(text);
}

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

void Nodes::detach(RegionId region, bool force, Done<std::uint64_t> done)
{
    kernel_->region_detach(region, force, std::move(done));
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

// --- what the kernel wants -----------------------------------------------------------------------

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
