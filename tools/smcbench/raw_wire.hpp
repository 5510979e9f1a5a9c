// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// What both ends of the raw verbs share: the memory that is offered, what the connection's reply
// says of it, and owners of what librdmacm makes.
//
// The peer's operations need nothing from the process that serves, which therefore cannot see them.
// So the peer also writes a new number to `beat`, once in kBeatEvery, for as long as it is at work.
#pragma once

#include <rdma/rdma_cma.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace smc::bench {

inline constexpr std::size_t kRawBytes = std::size_t{4} << 20; // the largest operation
inline constexpr unsigned kRawDepth = 64;                      // operations in flight
inline constexpr std::uint32_t kRawMagic = 0x42434d53;         // "SMCB"
inline constexpr std::chrono::milliseconds kBeatEvery{1000};

struct RawMemory {
    std::array<std::byte, kRawBytes> bytes;
    std::uint64_t beat;
};

// Both ends are little endian.
struct RawOffer {
    std::uint32_t magic;
    std::uint32_t rkey;
    std::uint64_t address; // of a RawMemory
};

struct DestroyChannel {
    void operator()(rdma_event_channel* channel) const { rdma_destroy_event_channel(channel); }
};
struct DestroyId {
    void operator()(rdma_cm_id* id) const { rdma_destroy_ep(id); }
};
struct FreeInfo {
    void operator()(rdma_addrinfo* info) const { rdma_freeaddrinfo(info); }
};
struct Deregister {
    void operator()(ibv_mr* mr) const { ibv_dereg_mr(mr); }
};
using RawChannel = std::unique_ptr<rdma_event_channel, DestroyChannel>;
using RawId = std::unique_ptr<rdma_cm_id, DestroyId>; // with its QP; goes before its channel
using RawInfo = std::unique_ptr<rdma_addrinfo, FreeInfo>;
using RawMr = std::unique_ptr<ibv_mr, Deregister>;

inline ibv_qp_init_attr raw_qp_attributes()
{
    ibv_qp_init_attr attributes{};
    attributes.cap.max_send_wr = kRawDepth + 1; // one more: a beat
    attributes.cap.max_recv_wr = 1;
    attributes.cap.max_send_sge = 1;
    attributes.cap.max_recv_sge = 1;
    attributes.qp_type = IBV_QPT_RC;
    attributes.sq_sig_all = 1;
    return attributes;
}

} // namespace smc::bench
