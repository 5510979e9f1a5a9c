/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* Copyright (c) 2026 The SMC authors */
// A target: accepts every connection of a session, so that sessions become LIVE and what needs one can be
// asked of the kernel. Through its connections can be read and written what was shared, at first nothing.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <thread>

#include "common.hpp"

struct rdma_event_channel;
struct rdma_cm_id;
struct ibv_mr;

namespace smc::test {

class Acceptor {
public:
    // Listens on a local address (numeric) that has an RDMA device; dies if it cannot.
    explicit Acceptor(const std::string& address);
    Acceptor(const Acceptor&) = delete;
    Acceptor& operator=(const Acceptor&) = delete;
    ~Acceptor();

    [[nodiscard]] std::uint16_t port() const { return port_; } // network byte order
    // Registers memory, which must outlive this; returns its key, for every connection. Once.
    std::uint32_t share(std::span<std::uint8_t> memory);

private:
    void run();
    void handle(rdma_cm_id* id, int event);

    rdma_event_channel* channel_;
    rdma_cm_id* listener_ = nullptr;
    ibv_mr* shared_ = nullptr;
    Fd stop_;
    std::uint16_t port_ = 0;
    int connections_ = 0;
    std::thread thread_;
};

} // namespace smc::test
