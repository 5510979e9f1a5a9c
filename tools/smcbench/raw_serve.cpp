// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// The side that has the memory. One peer at a time, so that none is measured beside another; the
// others wait in the kernel.
#include "raw.hpp"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>

#include <optional>

#include "raw_wire.hpp"

namespace smc::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kBacklog = 16; // peers that wait; more are refused
constexpr std::chrono::milliseconds kForever{-1};
constexpr std::chrono::milliseconds kLookEvery{500}; // at what the peer has written

struct Event {
    rdma_cm_id* id;
    rdma_cm_event_type type;
};

Result<RawChannel> open_channel()
{
    RawChannel channel{rdma_create_event_channel()};
    if (!channel)
        return fail_errno(errno, "no RDMA device: rdma_create_event_channel");
    // An event that the library keeps for itself must not make it wait for the next one.
    if (::fcntl(channel->fd, F_SETFL, O_NONBLOCK) != 0)
        return fail_errno(errno, "fcntl");
    return channel;
}

// Nothing: none came in time.
Result<std::optional<Event>> next_event(rdma_event_channel& channel,
                                        std::chrono::milliseconds within)
{
    pollfd wanted{channel.fd, POLLIN, 0};
    if (::poll(&wanted, 1, static_cast<int>(within.count())) < 0 && errno != EINTR)
        return fail_errno(errno, "poll");
    rdma_cm_event* event = nullptr;
    if (rdma_get_cm_event(&channel, &event) != 0) {
        if (errno != EAGAIN)
            return fail_errno(errno, "rdma_get_cm_event");
        return std::nullopt;
    }
    const Event seen{event->id, event->event};
    rdma_ack_cm_event(event); // its id can be destroyed only after this
    return seen;
}

// On all addresses, of either family.
Result<RawId> listen_on(rdma_event_channel& channel, std::uint16_t port)
{
    rdma_cm_id* id = nullptr;
    if (rdma_create_id(&channel, &id, nullptr, RDMA_PS_TCP) != 0)
        return fail_errno(errno, "rdma_create_id");
    RawId listener{id};
    int only_v6 = 0;
    rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &only_v6, sizeof(only_v6));
    sockaddr_in6 any6{};
    any6.sin6_family = AF_INET6;
    any6.sin6_port = htons(port);
    sockaddr_in any4{}; // where there is no IPv6
    any4.sin_family = AF_INET;
    any4.sin_port = htons(port);
    if ((rdma_bind_addr(id, reinterpret_cast<sockaddr*>(&any6)) != 0 &&
         rdma_bind_addr(id, reinterpret_cast<sockaddr*>(&any4)) != 0) ||
        rdma_listen(id, kBacklog) != 0) {
        const int error = errno;
        const std::string name = "port " + std::to_string(port);
        // The connection manager says either of a port.
        if (error == EADDRNOTAVAIL || error == EADDRINUSE)
            return fail(EADDRINUSE, name + " is in use");
        return fail_errno(error, name);
    }
    return listener;
}

std::string name_of_peer(rdma_cm_id* id)
{
    const sockaddr* address = rdma_get_peer_addr(id);
    const socklen_t length =
        address->sa_family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
    std::array<char, NI_MAXHOST> name{};
    if (::getnameinfo(address, length, name.data(), name.size(), nullptr, 0, NI_NUMERICHOST) != 0)
        return "a peer";
    return name.data();
}

// From the answer to the peer's request until it ends, or has said nothing for so long.
Result<void> watch(rdma_event_channel& channel, const std::uint64_t& beat,
                   std::chrono::seconds silence)
{
    // The device writes to it.
    const auto look = [&] { return *static_cast<const volatile std::uint64_t*>(&beat); };
    auto last = look();
    auto heard = Clock::now();
    for (;;) {
        const auto event = SMC_TRY(next_event(channel, kLookEvery));
        const auto now = Clock::now();
        if (const auto number = look(); event || number != last) {
            last = number;
            heard = now;
        }
        if (event && event->type != RDMA_CM_EVENT_ESTABLISHED)
            return {};
        if (now - heard > silence)
            return fail(ETIMEDOUT,
                        "nothing heard for " + std::to_string(silence.count()) + " s, given up");
    }
}

// One peer, from its request to its end.
Result<void> serve_one(RawId request, RawMemory& memory, std::chrono::seconds silence)
{
    // A channel of its own: that of the listener is not read meanwhile, so others wait.
    const auto channel = SMC_TRY(open_channel());
    const RawId peer = std::move(request); // goes before its channel
    auto attributes = raw_qp_attributes();
    if (rdma_migrate_id(peer.get(), channel.get()) != 0)
        return fail_errno(errno, "rdma_migrate_id");
    if (rdma_create_qp(peer.get(), nullptr, &attributes) != 0)
        return fail_errno(errno, "rdma_create_qp");
    const RawMr mr{
        ibv_reg_mr(peer->pd, &memory, sizeof(memory),
                   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)};
    if (!mr)
        return fail_errno(errno, "ibv_reg_mr of 4 MiB (see ulimit -l)");
    const RawOffer offer{kRawMagic, mr->rkey, reinterpret_cast<std::uintptr_t>(&memory)};
    rdma_conn_param param{};
    param.private_data = &offer;
    param.private_data_len = sizeof(offer);
    param.responder_resources = RDMA_MAX_RESP_RES;
    if (rdma_accept(peer.get(), &param) != 0)
        return fail_errno(errno, "rdma_accept");
    auto ended = watch(*channel, memory.beat, silence);
    rdma_disconnect(peer.get());
    return ended;
}

} // namespace

Result<void> serve_raw(const RawServer& server)
{
    const auto memory = std::make_unique<RawMemory>();
    const auto channel = SMC_TRY(open_channel());
    const auto listener = SMC_TRY(listen_on(*channel, server.port));
    server.listening();
    for (;;) {
        const auto event = SMC_TRY(next_event(*channel, kForever));
        if (!event || event->type != RDMA_CM_EVENT_CONNECT_REQUEST)
            continue;
        const std::string name = name_of_peer(event->id);
        if (auto served = serve_one(RawId{event->id}, *memory, server.silence); !served)
            server.lost({served.error().code, name + ": " + served.error().what});
    }
}

} // namespace smc::bench
