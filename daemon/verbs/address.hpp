// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// IP addresses by which the RDMA devices of this node are reached. They are what the connection
// manager itself takes for this node's, so it holds for RoCE, InfiniBand and iWARP alike.
#pragma once

#include <sys/socket.h>

#include <string>
#include <vector>

#include "core/result.hpp"
#include "target/types.hpp"

namespace smc::verbs {

struct RdmaAddress {
    std::string device;
    unsigned port = 0;
    std::string text; // numeric, without port
};

// Loopback and IPv6 link-local addresses mean nothing to another node and are left out.
Result<std::vector<RdmaAddress>> local_addresses();

// All ports of all devices, with their addresses.
std::vector<RdmaPortInfo> port_infos(const std::vector<RdmaAddress>& addresses);

// "192.0.2.1", "2001:db8::1", or "?" for a family that is none of the two.
std::string to_text(const sockaddr* address);

// A numeric IPv4 or IPv6 address; EINVAL names it.
Result<sockaddr_storage> parse_address(const std::string& text, std::uint16_t port);

} // namespace smc::verbs
