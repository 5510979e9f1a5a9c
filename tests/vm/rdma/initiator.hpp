// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// One QP of a client, as the kernel module connects it: token in the private data, one-sided reads
// and writes. Calls wait for the outcome, with a limit.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/result.hpp"
#include "target/connect_request.hpp"
#include "verbs/handles.hpp"

namespace smc::test {

class Initiator {
public:
    static Result<std::unique_ptr<Initiator>>
    connect(const std::string& address, std::uint16_t port, const ConnectRequest& request);
    static Result<std::unique_ptr<Initiator>>
    connect_raw(const std::string& address, std::uint16_t port, std::span<const std::uint8_t> data);
    ~Initiator();

    // The error is EREMOTEIO for a key or range that the target's device refused, EPIPE when the QP
    // was in error already, EIO otherwise.
    Result<std::vector<std::uint8_t>> read(std::uint64_t addr, std::uint32_t rkey,
                                           std::size_t length);
    Result<void> write(std::uint64_t addr, std::uint32_t rkey, std::span<const std::uint8_t> data);
    // Return: what was there before.
    Result<std::uint64_t> fetch_add(std::uint64_t addr, std::uint32_t rkey, std::uint64_t addend);
    // Posts a write of 0xdd bytes and does not wait.
    Result<void> start_write(std::uint64_t addr, std::uint32_t rkey, std::size_t length);
    Result<void> finish_one();
    // Waits for the end of the connection by the other side.
    bool disconnected();

private:
    static constexpr std::size_t kBufferBytes = 1 << 20;

    Result<void> wait_for(rdma_cm_event_type wanted);
    Result<void> open(const std::string& address, std::uint16_t port,
                      std::span<const std::uint8_t> data);
    Result<void> post(ibv_send_wr& request, std::size_t length);
    Result<void> post(ibv_wr_opcode opcode, std::uint64_t addr, std::uint32_t rkey,
                      std::size_t length);

    // In this order: destroyed from the end.
    verbs::EventChannel channel_;
    verbs::CmId id_;
    verbs::Pd pd_;
    std::vector<std::uint8_t> buffer_ = std::vector<std::uint8_t>(kBufferBytes);
    verbs::Mr mr_;
    verbs::Cq cq_;
    struct DestroyCmQp {
        void operator()(rdma_cm_id* id) const { rdma_destroy_qp(id); }
    };
    std::unique_ptr<rdma_cm_id, DestroyCmQp> qp_;
};

} // namespace smc::test
