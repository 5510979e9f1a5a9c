// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// The request `ping`: round trips on the control connection, then a probe of the RDMA path.
#include <algorithm>

#include <fmt/format.h>

#include "control/protocol.hpp"
#include "core/names.hpp"
#include "daemon.hpp"

namespace smc {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kControlPings = 10;
constexpr std::uint64_t kSecondsMax = 60;
constexpr std::size_t kProbesMax = 8; // at a time: each is a thread that polls

} // namespace

// Shared by the callbacks of its steps.
struct Daemon::Ping {
    std::string node;
    bool rdma = true;
    std::uint64_t seconds = 2;
    Channel::Responder responder;
    Json result = Json::object();
    int count = 0;
    double min_us = 0;
    double max_us = 0;
    double sum_us = 0;
    std::vector<std::string> addresses; // that are not tried yet
};

void Daemon::on_ping(LocalRequest& request)
{
    const auto node = get_string(request.body, "node");
    const auto rdma = get_bool_or(request.body, "rdma", true);
    const auto seconds = get_unsigned_or(request.body, "seconds", kSecondsMax, 2);
    if (!node || !rdma || !seconds) {
        request.responder.error(!node ? node.error() : !rdma ? rdma.error() : seconds.error());
        return;
    }
    auto* found = nodes_->get(*node);
    if (found == nullptr) {
        request.responder.error({ENOENT, fmt::format("{} is no peer: add it to peers in {}",
                                                     printable(*node), config_.path)});
        return;
    }
    auto ping = std::make_shared<Ping>(
        Ping{*node, *rdma, std::max<std::uint64_t>(*seconds, 1), request.responder});
    found->with_link(Node::Memory::ignored, [this, ping](const Result<void>& link) {
        if (link)
            ping_control(ping);
        else
            ping->responder.error(link.error());
    });
}

void Daemon::ping_control(const std::shared_ptr<Ping>& ping)
{
    auto* node = nodes_->get(ping->node);
    if (node == nullptr)
        return; // the responder answers when it is dropped
    const auto start = Clock::now();
    node->call("peer.ping", Json::object(), [this, ping, start](const Result<Json>& answer) {
        if (!answer) {
            ping->responder.error(answer.error());
            return;
        }
        const double us = std::chrono::duration<double, std::micro>(Clock::now() - start).count();
        ping->min_us = ping->count == 0 ? us : std::min(ping->min_us, us);
        ping->max_us = std::max(ping->max_us, us);
        ping->sum_us += us;
        if (++ping->count < kControlPings) {
            ping_control(ping);
            return;
        }
        ping->result["control_us"] = {
            {"min", ping->min_us}, {"avg", ping->sum_us / ping->count}, {"max", ping->max_us}};
        if (ping->rdma)
            ping_rdma(ping);
        else
            ping->responder.ok(ping->result);
    });
}

void Daemon::ping_rdma(const std::shared_ptr<Ping>& ping)
{
    auto* node = nodes_->get(ping->node);
    if (node == nullptr)
        return;
    if (probes_.size() >= kProbesMax) {
        ping->responder.error({EBUSY, "too many pings are running: try again in a moment"});
        return;
    }
    node->call("peer.probe_open", Json::object(), [this, ping](const Result<Json>& answer) {
        auto offer = answer ? probe_from_json(*answer)
                            : Result<ProbeOffer>(tl::unexpected<Error>(answer.error()));
        const auto* peer = nodes_->get(ping->node);
        if (!offer || peer == nullptr || offer->addresses.empty()) {
            ping->responder.error(offer ? Error{ENODEV, "the node offers no RDMA address"}
                                        : offer.error());
            return;
        }
        if (probes_.size() >= kProbesMax) { // others were as quick to ask
            ping->responder.error({EBUSY, "too many pings are running: try again in a moment"});
            return;
        }
        if (!peer->peer().rdma_addresses.empty())
            offer->addresses = peer->peer().rdma_addresses;
        if (!ping->result.contains("addresses")) {
            ping->result["addresses"] = offer->addresses;
            ping->addresses = offer->addresses;
        }
        ping_probe(ping, *offer);
    });
}

// The first address that works.
void Daemon::ping_probe(const std::shared_ptr<Ping>& ping, const ProbeOffer& offer)
{
    const auto* peer = nodes_->get(ping->node);
    verbs::ProbeParams params;
    params.address = ping->addresses.front();
    ping->addresses.erase(ping->addresses.begin());
    params.source_address = peer->peer().source_address.value_or("");
    params.port = offer.port;
    params.session = offer.session;
    params.token = offer.token;
    params.seconds = static_cast<double>(ping->seconds);
    const auto id = next_probe_++;
    probes_[id] = std::make_unique<verbs::Probe>(
        loop_, params,
        [this, ping, id, address = params.address](const Result<verbs::ProbeResult>& result) {
            auto finished = probes_.extract(id); // lives until this callback ends
            if (result) {
                ping->result["device"] = result->device;
                ping->result["address"] = result->remote_address;
                ping->result["mtu"] = result->mtu_bytes;
                ping->result["rdma_us"] = {
                    {"min", result->min_us}, {"avg", result->avg_us}, {"max", result->max_us}};
                ping->result["bandwidth_mbps"] = result->bandwidth_mbps;
                ping->responder.ok(ping->result);
            } else if (!ping->addresses.empty()) {
                ping_rdma(ping); // tokens work once: with a new offer
            } else {
                ping->responder.error(
                    {result.error().code,
                     fmt::format("the control path works, RDMA to {} does not: {}", address,
                                 result.error().what)});
            }
        });
}

} // namespace smc
