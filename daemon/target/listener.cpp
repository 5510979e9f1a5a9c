// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
#include "target/listener.hpp"

#include <fcntl.h>
#include <netinet/in.h>

#include <fmt/format.h>

#include "core/log.hpp"
#include "verbs/address.hpp"
#include "verbs/endpoint.hpp"

namespace smc {
namespace {

constexpr int kBacklog = 128;
constexpr int kEventsPerWakeup = 64;

IncomingConnection take_request(const rdma_cm_event& event)
{
    const auto& conn = event.param.conn;
    const auto* data = static_cast<const std::uint8_t*>(conn.private_data);
    IncomingConnection incoming;
    incoming.id.reset(event.id);
    incoming.id->context = nullptr;
    incoming.device = ibv_get_device_name(event.id->verbs->device);
    incoming.peer = verbs::to_text(rdma_get_peer_addr(event.id));
    if (data != nullptr)
        incoming.private_data.assign(data, data + conn.private_data_len);
    incoming.responder_resources = conn.responder_resources;
    incoming.initiator_depth = conn.initiator_depth;
    return incoming;
}

// Every address there is; of IPv4 alone where IPv6 is switched off.
Result<void> bind_any(rdma_cm_id* id, std::uint16_t port)
{
    sockaddr_in6 any6{};
    any6.sin6_family = AF_INET6;
    any6.sin6_port = htons(port);
    if (rdma_bind_addr(id, reinterpret_cast<sockaddr*>(&any6)) == 0)
        return {};
    const int error = errno;
    sockaddr_in any4{};
    any4.sin_family = AF_INET;
    any4.sin_port = htons(port);
    if (error != EADDRINUSE && rdma_bind_addr(id, reinterpret_cast<sockaddr*>(&any4)) == 0)
        return {};
    return fail_errno(error, fmt::format("cannot bind to RDMA port {}", port));
}

} // namespace

Result<std::unique_ptr<Listener>> Listener::create(EventLoop& loop, std::uint16_t port,
                                                   RequestCallback on_request)
{
    std::unique_ptr<Listener> listener(new Listener(std::move(on_request)));
    SMC_TRY(listener->listen(port));
    auto* self = listener.get();
    listener->source_ = SMC_TRY(
        loop.add_fd(listener->channel_->fd, EPOLLIN, [self](std::uint32_t) { self->drain(); }));
    return listener;
}

Result<void> Listener::listen(std::uint16_t port)
{
    channel_.reset(rdma_create_event_channel());
    if (!channel_ && errno == ENODEV)
        return fail(ENODEV, "this node has no RDMA device, see: rdma link");
    if (!channel_)
        return fail(ENODEV, fmt::format("no RDMA connection manager in this kernel ({}): modprobe "
                                        "rdma_ucm",
                                        std::strerror(errno)));
    const int flags = ::fcntl(channel_->fd, F_GETFL);
    if (flags < 0 || ::fcntl(channel_->fd, F_SETFL, flags | O_NONBLOCK) < 0)
        return fail_errno(errno, "fcntl O_NONBLOCK");

    rdma_cm_id* id = nullptr;
    if (rdma_create_id(channel_.get(), &id, nullptr, RDMA_PS_TCP) != 0)
        return fail_errno(errno, "rdma_create_id");
    id_.reset(id);
    SMC_TRY(bind_any(id, port));
    if (rdma_listen(id, kBacklog) != 0)
        return fail_errno(errno, fmt::format("cannot listen on RDMA port {}", port));
    return {};
}

void Listener::drain()
{
    for (int i = 0; i < kEventsPerWakeup; i++) {
        rdma_cm_event* event = nullptr;
        if (rdma_get_cm_event(channel_.get(), &event) != 0) {
            if (errno != EAGAIN && errno != EINTR)
                log::warn("rdma_get_cm_event: {}", std::strerror(errno));
            return;
        }
        // Destroying an id waits until its events are acknowledged: take what is needed, do so, act.
        const auto type = event->event;
        const int status = event->status;
        auto* context = static_cast<verbs::CmEvents*>(event->id->context);
        IncomingConnection incoming;
        if (type == RDMA_CM_EVENT_CONNECT_REQUEST)
            incoming = take_request(*event);
        rdma_ack_cm_event(event);

        if (incoming.id)
            on_request_(std::move(incoming));
        else if (context != nullptr)
            context->cm_event(type, status);
        else
            log::debug("rdma connection manager: {} ({})", rdma_event_str(type), status);
    }
}

void reject(verbs::CmId id)
{
    if (rdma_reject(id.get(), nullptr, 0) != 0)
        log::debug("rdma_reject: {}", std::strerror(errno));
}

} // namespace smc
