// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
#include "initiator.hpp"

#include <poll.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

#include "verbs/address.hpp"

namespace smc::test {
namespace {

constexpr int kTimeoutMs = 20000;
constexpr unsigned kDepth = 64;

} // namespace

Result<std::unique_ptr<Initiator>>
Initiator::connect(const std::string& address, std::uint16_t port, const ConnectRequest& request)
{
    return connect_raw(address, port, encode(request));
}

Result<std::unique_ptr<Initiator>> Initiator::connect_raw(const std::string& address,
                                                          std::uint16_t port,
                                                          std::span<const std::uint8_t> data)
{
    auto initiator = std::make_unique<Initiator>();
    SMC_TRY(initiator->open(address, port, data));
    return initiator;
}

Initiator::~Initiator()
{
    if (qp_)
        rdma_disconnect(id_.get());
}

Result<void> Initiator::wait_for(rdma_cm_event_type wanted)
{
    pollfd descriptor{channel_->fd, POLLIN, 0};
    if (::poll(&descriptor, 1, kTimeoutMs) != 1)
        return fail(ETIMEDOUT, std::string("no event, but not ") + rdma_event_str(wanted));
    rdma_cm_event* event = nullptr;
    if (rdma_get_cm_event(channel_.get(), &event) != 0)
        return fail_errno(errno, "rdma_get_cm_event");
    const auto type = event->event;
    rdma_ack_cm_event(event);
    if (type != wanted)
        return fail(type == RDMA_CM_EVENT_REJECTED ? ECONNREFUSED : EIO, rdma_event_str(type));
    return {};
}

Result<void> Initiator::open(const std::string& address, std::uint16_t port,
                             std::span<const std::uint8_t> data)
{
    auto remote = SMC_TRY(verbs::parse_address(address, port));
    channel_.reset(rdma_create_event_channel());
    if (!channel_)
        return fail_errno(errno, "rdma_create_event_channel");
    rdma_cm_id* id = nullptr;
    if (rdma_create_id(channel_.get(), &id, nullptr, RDMA_PS_TCP) != 0)
        return fail_errno(errno, "rdma_create_id");
    id_.reset(id);
    if (rdma_resolve_addr(id, nullptr, reinterpret_cast<sockaddr*>(&remote), kTimeoutMs) != 0)
        return fail_errno(errno, "rdma_resolve_addr");
    SMC_TRY(wait_for(RDMA_CM_EVENT_ADDR_RESOLVED));
    if (rdma_resolve_route(id, kTimeoutMs) != 0)
        return fail_errno(errno, "rdma_resolve_route");
    SMC_TRY(wait_for(RDMA_CM_EVENT_ROUTE_RESOLVED));

    pd_.reset(ibv_alloc_pd(id->verbs));
    mr_.reset(ibv_reg_mr(pd_.get(), buffer_.data(), buffer_.size(), IBV_ACCESS_LOCAL_WRITE));
    cq_.reset(ibv_create_cq(id->verbs, kDepth, nullptr, nullptr, 0));
    if (!mr_ || !cq_)
        return fail_errno(errno, "ibv_reg_mr or ibv_create_cq");
    ibv_qp_init_attr init{};
    init.send_cq = init.recv_cq = cq_.get();
    init.cap = {kDepth, 1, 1, 1, 0};
    init.qp_type = IBV_QPT_RC;
    init.sq_sig_all = 1;
    if (rdma_create_qp(id, pd_.get(), &init) != 0)
        return fail_errno(errno, "rdma_create_qp");
    qp_.reset(id);

    rdma_conn_param param{};
    param.private_data = data.data();
    param.private_data_len = static_cast<std::uint8_t>(data.size());
    param.initiator_depth = RDMA_MAX_INIT_DEPTH;
    param.responder_resources = 1;
    param.retry_count = 7;
    param.rnr_retry_count = 6;
    if (rdma_connect(id, &param) != 0)
        return fail_errno(errno, "rdma_connect");
    return wait_for(RDMA_CM_EVENT_ESTABLISHED);
}

Result<void> Initiator::post(ibv_send_wr& request, std::size_t length)
{
    ibv_sge sge{reinterpret_cast<std::uint64_t>(buffer_.data()), static_cast<std::uint32_t>(length),
                mr_->lkey};
    request.sg_list = &sge;
    request.num_sge = 1;
    ibv_send_wr* bad = nullptr;
    if (const int error = ibv_post_send(id_->qp, &request, &bad); error != 0)
        return fail_errno(error, "ibv_post_send");
    return {};
}

Result<void> Initiator::post(ibv_wr_opcode opcode, std::uint64_t addr, std::uint32_t rkey,
                             std::size_t length)
{
    ibv_send_wr request{};
    request.opcode = opcode;
    request.wr.rdma.remote_addr = addr;
    request.wr.rdma.rkey = rkey;
    return post(request, length);
}

Result<void> Initiator::finish_one()
{
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(kTimeoutMs);
    ibv_wc wc{};
    while (ibv_poll_cq(cq_.get(), 1, &wc) == 0) {
        if (std::chrono::steady_clock::now() > deadline)
            return fail(ETIMEDOUT, "no completion");
        std::this_thread::yield();
    }
    switch (wc.status) {
    case IBV_WC_SUCCESS:
        return {};
    case IBV_WC_REM_ACCESS_ERR:
    case IBV_WC_REM_INV_REQ_ERR:
        return fail(EREMOTEIO, ibv_wc_status_str(wc.status));
    case IBV_WC_WR_FLUSH_ERR:
        return fail(EPIPE, ibv_wc_status_str(wc.status));
    default:
        return fail(EIO, ibv_wc_status_str(wc.status));
    }
}

Result<std::vector<std::uint8_t>> Initiator::read(std::uint64_t addr, std::uint32_t rkey,
                                                  std::size_t length)
{
    std::fill_n(buffer_.begin(), length, 0xee);
    SMC_TRY(post(IBV_WR_RDMA_READ, addr, rkey, length));
    SMC_TRY(finish_one());
    return std::vector<std::uint8_t>(buffer_.begin(),
                                     buffer_.begin() + static_cast<std::ptrdiff_t>(length));
}

Result<void> Initiator::write(std::uint64_t addr, std::uint32_t rkey,
                              std::span<const std::uint8_t> data)
{
    std::copy(data.begin(), data.end(), buffer_.begin());
    SMC_TRY(post(IBV_WR_RDMA_WRITE, addr, rkey, data.size()));
    return finish_one();
}

Result<std::uint64_t> Initiator::fetch_add(std::uint64_t addr, std::uint32_t rkey,
                                           std::uint64_t addend)
{
    ibv_send_wr request{};
    request.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
    request.wr.atomic.remote_addr = addr;
    request.wr.atomic.rkey = rkey;
    request.wr.atomic.compare_add = addend;
    std::uint64_t old = 0;
    SMC_TRY(post(request, sizeof(old)));
    SMC_TRY(finish_one());
    std::memcpy(&old, buffer_.data(), sizeof(old));
    return old;
}

Result<void> Initiator::start_write(std::uint64_t addr, std::uint32_t rkey, std::size_t length)
{
    return post(IBV_WR_RDMA_WRITE, addr, rkey, length);
}

bool Initiator::disconnected()
{
    return wait_for(RDMA_CM_EVENT_DISCONNECTED).has_value();
}

} // namespace smc::test
