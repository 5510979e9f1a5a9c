// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// The private data that comes with a connect request and goes back with the accept.
#pragma once

#include <cstdint>
#include <span>

#include "core/result.hpp"
#include "target/types.hpp"

namespace smc {

enum class QpRole : std::uint16_t { read = SMCFS_CM_QP_READ, bulk = SMCFS_CM_QP_BULK };
inline constexpr std::size_t kQpRoles = 2;

const char* to_string(QpRole role);

struct ConnectRequest {
    QpRole role = QpRole::read;
    SessionId session = 0;
    Token token{};
};

// From anybody on the network. Longer data is fine: the connection manager pads it.
Result<ConnectRequest> parse_connect_request(std::span<const std::uint8_t> data);
std::array<std::uint8_t, sizeof(smcfs_cm_private)> encode(const ConnectRequest& request);

// What the accept of a probe session carries: the memory that may be read.
struct ProbeMemory {
    std::uint64_t addr = 0;
    std::uint32_t length_bytes = 0;
    std::uint32_t rkey = 0;
};
inline constexpr std::size_t kProbeMemoryBytes = 24;

std::array<std::uint8_t, kProbeMemoryBytes> encode(const ProbeMemory& memory);
Result<ProbeMemory> parse_probe_memory(std::span<const std::uint8_t> data);

} // namespace smc
