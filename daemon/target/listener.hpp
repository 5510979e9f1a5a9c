// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// Waits for connect requests on the RDMA port, of all devices, by IPv6 and IPv4.
//
// Owns: the event channel, which the ids of accepted connections share, and the listening id.
// Contexts: the event loop's thread; on_request runs in it.
// Lifetime: outlives every id that it handed out.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/result.hpp"
#include "event_loop.hpp"
#include "verbs/handles.hpp"

namespace smc {

struct IncomingConnection {
    verbs::CmId id;
    std::string device;
    std::string peer; // address, for people
    std::vector<std::uint8_t> private_data;
    std::uint8_t responder_resources = 0;
    std::uint8_t initiator_depth = 0;
};

class Listener {
public:
    using RequestCallback = std::function<void(IncomingConnection)>;

    // ENODEV: this kernel has no RDMA connection manager.
    static Result<std::unique_ptr<Listener>> create(EventLoop& loop, std::uint16_t port,
                                                    RequestCallback on_request);

private:
    explicit Listener(RequestCallback on_request) : on_request_(std::move(on_request)) {}
    Result<void> listen(std::uint16_t port);
    void drain();

    RequestCallback on_request_;
    verbs::EventChannel channel_;
    verbs::CmId id_;
    EventLoop::Source source_;
};

// Refuse and forget it.
void reject(verbs::CmId id);

} // namespace smc
