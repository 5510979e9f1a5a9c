// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
#include "verbs/address.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <algorithm>

#include "core/log.hpp"
#include "verbs/device.hpp"
#include "verbs/handles.hpp"

namespace smc::verbs {
namespace {

// Whether another node can use it.
bool is_routable(const sockaddr* address)
{
    if (address->sa_family == AF_INET) {
        const auto* in = reinterpret_cast<const sockaddr_in*>(address);
        return (ntohl(in->sin_addr.s_addr) >> 24) != IN_LOOPBACKNET;
    }
    if (address->sa_family == AF_INET6) {
        const auto& in6 = reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr;
        return !IN6_IS_ADDR_LOOPBACK(&in6) && !IN6_IS_ADDR_LINKLOCAL(&in6) &&
               !IN6_IS_ADDR_V4MAPPED(&in6);
    }
    return false;
}

const char* port_state(ibv_port_state state)
{
    switch (state) {
    case IBV_PORT_ACTIVE:
        return "active";
    case IBV_PORT_DOWN:
        return "down";
    case IBV_PORT_INIT:
        return "initializing";
    case IBV_PORT_ARMED:
        return "armed";
    default:
        return "unknown";
    }
}

const char* link_layer(std::uint8_t layer)
{
    switch (layer) {
    case IBV_LINK_LAYER_ETHERNET:
        return "Ethernet";
    case IBV_LINK_LAYER_INFINIBAND:
        return "InfiniBand";
    default:
        return "unspecified";
    }
}

unsigned mtu_bytes(ibv_mtu mtu)
{
    constexpr unsigned kSmallest = 256; // IBV_MTU_256 is 1
    return mtu >= IBV_MTU_256 && mtu <= IBV_MTU_4096 ? kSmallest << (mtu - IBV_MTU_256) : 0;
}

void append_ports(ibv_context* context, const std::vector<RdmaAddress>& addresses,
                  std::vector<RdmaPortInfo>& infos)
{
    ibv_device_attr attributes{};
    if (ibv_query_device(context, &attributes) != 0)
        return;
    for (unsigned port = 1; port <= attributes.phys_port_cnt; port++) {
        ibv_port_attr attr{};
        if (ibv_query_port(context, static_cast<std::uint8_t>(port), &attr) != 0)
            continue;
        RdmaPortInfo info;
        info.device = ibv_get_device_name(context->device);
        info.port = port;
        info.state = port_state(attr.state);
        info.link_layer = link_layer(attr.link_layer);
        info.mtu_bytes = mtu_bytes(attr.active_mtu);
        info.windows = has_windows(attributes);
        for (const auto& address : addresses)
            if (address.device == info.device && address.port == port)
                info.addresses.push_back(address.text);
        infos.push_back(std::move(info));
    }
}

} // namespace

std::string to_text(const sockaddr* address)
{
    char text[INET6_ADDRSTRLEN] = "?";
    if (address->sa_family == AF_INET)
        inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(address)->sin_addr, text,
                  sizeof text);
    else if (address->sa_family == AF_INET6)
        inet_ntop(AF_INET6, &reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr, text,
                  sizeof text);
    return text;
}

Result<sockaddr_storage> parse_address(const std::string& text, std::uint16_t port)
{
    sockaddr_storage storage{};
    auto* in = reinterpret_cast<sockaddr_in*>(&storage);
    auto* in6 = reinterpret_cast<sockaddr_in6*>(&storage);
    if (inet_pton(AF_INET, text.c_str(), &in->sin_addr) == 1) {
        in->sin_family = AF_INET;
        in->sin_port = htons(port);
    } else if (inet_pton(AF_INET6, text.c_str(), &in6->sin6_addr) == 1) {
        in6->sin6_family = AF_INET6;
        in6->sin6_port = htons(port);
    } else {
        return fail(EINVAL, "\"" + text + "\" is no numeric IPv4 or IPv6 address");
    }
    return storage;
}

Result<std::vector<RdmaAddress>> local_addresses()
{
    std::vector<RdmaAddress> found;
    const EventChannel channel(rdma_create_event_channel());
    if (!channel) {
        if (errno == ENOENT || errno == ENODEV) // no RDMA in this kernel, or no device so far
            return found;
        return fail_errno(errno, "rdma_create_event_channel");
    }
    ifaddrs* list = nullptr;
    if (getifaddrs(&list) != 0)
        return fail_errno(errno, "getifaddrs");
    const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(list, &freeifaddrs);

    for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
        if (entry->ifa_addr == nullptr || (entry->ifa_flags & IFF_UP) == 0 ||
            !is_routable(entry->ifa_addr))
            continue;
        rdma_cm_id* raw = nullptr;
        if (rdma_create_id(channel.get(), &raw, nullptr, RDMA_PS_TCP) != 0)
            return fail_errno(errno, "rdma_create_id");
        const CmId id(raw);
        // Fails for the addresses of ordinary network interfaces.
        if (rdma_bind_addr(id.get(), entry->ifa_addr) != 0 || id->verbs == nullptr)
            continue;
        found.push_back(
            {ibv_get_device_name(id->verbs->device), id->port_num, to_text(entry->ifa_addr)});
    }
    return found;
}

std::vector<RdmaPortInfo> port_infos(const std::vector<RdmaAddress>& addresses)
{
    std::vector<RdmaPortInfo> infos;
    int count = 0;
    ibv_device** list = ibv_get_device_list(&count);
    if (list == nullptr)
        return infos;
    for (int i = 0; i < count; i++) {
        const Context context(ibv_open_device(list[i]));
        if (context)
            append_ports(context.get(), addresses, infos);
        else
            log::debug("cannot open {}: {}", ibv_get_device_name(list[i]), std::strerror(errno));
    }
    ibv_free_device_list(list);
    return infos;
}

} // namespace smc::verbs
