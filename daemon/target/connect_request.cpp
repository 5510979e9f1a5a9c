// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
#include "target/connect_request.hpp"

#include <endian.h>

#include <algorithm>

#include <fmt/format.h>

namespace smc {
namespace {

struct ProbeWire { // little endian
    std::uint32_t magic;
    std::uint32_t rkey;
    std::uint64_t addr;
    std::uint32_t length_bytes;
    std::uint32_t zero;
};
static_assert(sizeof(ProbeWire) == kProbeMemoryBytes);

constexpr std::uint32_t kProbeMagic = 0x50434d53; // "SMCP"

} // namespace

const char* to_string(QpRole role)
{
    return role == QpRole::read ? "read" : "bulk";
}

Result<ConnectRequest> parse_connect_request(std::span<const std::uint8_t> data)
{
    smcfs_cm_private wire{};
    if (data.size() < sizeof wire)
        return fail(EPROTO, fmt::format("{} bytes of private data, {} are needed", data.size(),
                                        sizeof wire));
    std::memcpy(&wire, data.data(), sizeof wire);
    if (le32toh(wire.magic) != SMCFS_CM_MAGIC)
        return fail(EPROTO, "private data of another protocol");
    if (le16toh(wire.version) != SMCFS_CM_VERSION)
        return fail(EPROTONOSUPPORT, fmt::format("version {}, this node speaks {}",
                                                 le16toh(wire.version), SMCFS_CM_VERSION));
    const auto role = le16toh(wire.qp_role);
    if (role != SMCFS_CM_QP_READ && role != SMCFS_CM_QP_BULK)
        return fail(EPROTO, fmt::format("QP role {}", role));

    ConnectRequest request;
    request.role = static_cast<QpRole>(role);
    request.session = le64toh(wire.session_id);
    if (request.session == 0)
        return fail(EPROTO, "session 0");
    std::copy_n(wire.token, request.token.size(), request.token.begin());
    return request;
}

std::array<std::uint8_t, sizeof(smcfs_cm_private)> encode(const ConnectRequest& request)
{
    smcfs_cm_private wire{};
    wire.magic = htole32(SMCFS_CM_MAGIC);
    wire.version = htole16(SMCFS_CM_VERSION);
    wire.qp_role = htole16(static_cast<std::uint16_t>(request.role));
    wire.session_id = htole64(request.session);
    std::copy(request.token.begin(), request.token.end(), wire.token);
    std::array<std::uint8_t, sizeof wire> bytes{};
    std::memcpy(bytes.data(), &wire, sizeof wire);
    return bytes;
}

std::array<std::uint8_t, kProbeMemoryBytes> encode(const ProbeMemory& memory)
{
    ProbeWire wire{};
    wire.magic = htole32(kProbeMagic);
    wire.rkey = htole32(memory.rkey);
    wire.addr = htole64(memory.addr);
    wire.length_bytes = htole32(memory.length_bytes);
    std::array<std::uint8_t, sizeof wire> bytes{};
    std::memcpy(bytes.data(), &wire, sizeof wire);
    return bytes;
}

Result<ProbeMemory> parse_probe_memory(std::span<const std::uint8_t> data)
{
    ProbeWire wire{};
    if (data.size() < sizeof wire)
        return fail(EPROTO, fmt::format("the target answered with {} bytes, {} are needed",
                                        data.size(), sizeof wire));
    std::memcpy(&wire, data.data(), sizeof wire);
    if (le32toh(wire.magic) != kProbeMagic)
        return fail(EPROTO, "the target's answer is of another protocol");
    ProbeMemory memory;
    memory.rkey = le32toh(wire.rkey);
    memory.addr = le64toh(wire.addr);
    memory.length_bytes = le32toh(wire.length_bytes);
    return memory;
}

} // namespace smc
