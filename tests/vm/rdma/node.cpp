// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
#include "node.hpp"

#include <algorithm>

#include <catch2/catch.hpp>

namespace smc::test {

Node::Node(TargetOptions options)
{
    auto loop = EventLoop::create();
    REQUIRE(loop);
    loop_ = std::move(*loop);
    auto target = Target::create(*loop_, std::move(options), *this);
    if (!target)
        FAIL(target.error().what);
    target_ = std::move(*target);
    thread_ = std::thread([this] { static_cast<void>(loop_->run()); });
}

Node::~Node()
{
    loop_->post([this] {
        target_.reset();
        loop_->exit(0);
    });
    thread_.join();
}

void Node::revoked(SessionId session, const std::string& name, Generation)
{
    note({"revoked", session, name});
}

void Node::session_lost(SessionId session, const std::string& reason)
{
    note({"lost", session, reason});
}

void Node::note(Event event)
{
    const std::lock_guard lock(mutex_);
    events_.push_back(std::move(event));
    changed_.notify_all();
}

template <class P>
bool Node::await(P predicate)
{
    std::unique_lock lock(mutex_);
    return changed_.wait_for(
        lock, kPatience, [&] { return std::any_of(events_.begin(), events_.end(), predicate); });
}

bool Node::saw(const Event& event)
{
    return await([&](const Event& seen) { return seen == event; });
}

bool Node::saw_lost(SessionId session)
{
    return await([&](const Event& seen) { return seen.kind == "lost" && seen.session == session; });
}

ExportInfo Node::export_host(const std::string& name, std::uint64_t length_bytes)
{
    auto info = wait<ExportInfo>([&](Target& target, Done<ExportInfo> done) {
        ExportSpec spec;
        spec.name = name;
        spec.source = HostMemory{length_bytes, false};
        target.add_export(std::move(spec), std::move(done));
    });
    if (!info)
        FAIL(info.error().what);
    return *info;
}

Result<Grant> Node::grant(SessionId session, const std::string& name)
{
    return wait<Grant>(
        [&](Target& target, Done<Grant> done) { target.grant(session, name, std::move(done)); });
}

Result<void> Node::release(SessionId session, const std::string& name)
{
    return wait<void>([&](Target& target, Done<void> done) {
        target.grant_release(session, name, std::move(done));
    });
}

Result<void> Node::close(SessionId session)
{
    return wait<void>(
        [&](Target& target, Done<void> done) { target.session_close(session, std::move(done)); });
}

Result<void> Node::unexport(const std::string& name)
{
    return wait<void>(
        [&](Target& target, Done<void> done) { target.remove_export(name, std::move(done)); });
}

std::string Node::address()
{
    const auto ports = call([](Target& target) { return target.rdma_ports(); });
    for (const auto& port : ports)
        if (!port.addresses.empty())
            return port.addresses.front();
    FAIL("no RDMA device with an address");
    return {};
}

Client connect(Node& node, SessionId id, const std::string& address)
{
    const auto offer = node.call([&](Target& target) { return target.session_open(id, "client"); });
    if (!offer)
        FAIL(offer.error().what);
    Client client;
    client.id = id;
    const auto& to = address.empty() ? offer->addresses.front() : address;
    for (const auto role : {QpRole::read, QpRole::bulk}) {
        const auto& token = role == QpRole::read ? offer->token_read : offer->token_bulk;
        auto connected = Initiator::connect(to, offer->port, {role, id, token});
        if (!connected)
            FAIL(connected.error().what);
        (role == QpRole::read ? client.read : client.bulk) = std::move(*connected);
    }
    return client;
}

std::vector<std::uint8_t> pattern(std::size_t length, unsigned seed)
{
    std::vector<std::uint8_t> bytes(length);
    std::uint32_t state = seed * 2654435761U + 1;
    for (auto& byte : bytes) {
        state = state * 1664525U + 1013904223U;
        byte = static_cast<std::uint8_t>(state >> 24);
    }
    return bytes;
}

} // namespace smc::test
