// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
#include "verbs/endpoint.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "verbs/address.hpp"

namespace smc::verbs {
namespace {

// Local operations take microseconds; a device that needs longer than this does not work.
constexpr Milliseconds kLocalDeadline{5000};
// Above the transport's own limit, which ends the request and the QP.
constexpr Milliseconds kAliveDeadline{60000};

// Of requests of this side, which are only check_alive(): 4.096 us << 16 = 0.27 s, 7 times more.
constexpr std::uint8_t kAckTimeout = 16;
constexpr std::uint8_t kRetryCount = 7;
constexpr std::uint8_t kRnrRetryCount = 6; // 7 means for ever

std::string connection_end(rdma_cm_event_type type, int status)
{
    switch (type) {
    case RDMA_CM_EVENT_DISCONNECTED:
        return "the client disconnected";
    case RDMA_CM_EVENT_DEVICE_REMOVAL:
        return "the RDMA device was removed";
    default:
        return fmt::format("the connection failed: {} ({})", rdma_event_str(type), status);
    }
}

} // namespace

Result<std::unique_ptr<Endpoint>> Endpoint::accept(EventLoop& loop, Device& device, ibv_pd* pd,
                                                   CmId& id, const AcceptParams& params,
                                                   FailedCallback on_failed)
{
    std::unique_ptr<Endpoint> endpoint(new Endpoint(device, std::move(on_failed)));
    endpoint->deadline_ =
        loop.add_timer(Milliseconds(-1), [self = endpoint.get()] { self->on_deadline(); });
    SMC_TRY(endpoint->create_qp(pd));
    SMC_TRY(endpoint->connect_qp(id.get(), params));
    id->context = static_cast<CmEvents*>(endpoint.get());
    endpoint->id_ = std::move(id);
    return endpoint;
}

Result<void> Endpoint::create_qp(ibv_pd* pd)
{
    ibv_context* context = device_.context();
    cq_.reset(ibv_create_cq(context, kSendQueueDepth, static_cast<Completions*>(this),
                            device_.channel(), 0));
    if (!cq_)
        return fail_errno(errno, "ibv_create_cq on " + device_.name());
    if (const int error = ibv_req_notify_cq(cq_.get(), 0); error != 0)
        return fail_errno(error, "ibv_req_notify_cq on " + device_.name());

    ibv_qp_init_attr init{};
    init.qp_context = static_cast<Completions*>(this);
    init.send_cq = cq_.get();
    init.recv_cq = cq_.get();
    init.cap.max_send_wr = kSendQueueDepth;
    init.cap.max_recv_wr = 1;
    init.cap.max_send_sge = 1;
    init.cap.max_recv_sge = 1;
    init.qp_type = IBV_QPT_RC;
    init.sq_sig_all = 1;
    qp_.reset(ibv_create_qp(pd, &init));
    if (!qp_)
        return fail_errno(errno, "ibv_create_qp on " + device_.name());
    return {};
}

// The QP is not librdmacm's, since its device may not be either: the transitions are made here.
Result<void> Endpoint::connect_qp(rdma_cm_id* id, const AcceptParams& params)
{
    const auto depth_max = [](int device_limit) {
        return static_cast<std::uint8_t>(std::clamp(device_limit, 0, 255));
    };
    const auto& limits = device_.attributes();
    const auto responder_resources =
        std::min(params.responder_resources, depth_max(limits.max_qp_rd_atom));
    const auto initiator_depth =
        std::min(params.initiator_depth, depth_max(limits.max_qp_init_rd_atom));

    for (const auto state : {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS}) {
        ibv_qp_attr attr{};
        int mask = 0;
        attr.qp_state = state;
        if (rdma_init_qp_attr(id, &attr, &mask) != 0)
            return fail_errno(errno, "rdma_init_qp_attr");
        if (state == IBV_QPS_INIT) {
            attr.qp_access_flags = params.remote_access;
            mask |= IBV_QP_ACCESS_FLAGS;
        } else if (state == IBV_QPS_RTR) {
            attr.max_dest_rd_atomic = responder_resources;
        } else {
            attr.max_rd_atomic = initiator_depth;
            attr.timeout = kAckTimeout;
            attr.retry_cnt = kRetryCount;
            attr.rnr_retry = kRnrRetryCount;
        }
        if (const int error = ibv_modify_qp(qp_.get(), &attr, mask); error != 0)
            return fail_errno(error, fmt::format("ibv_modify_qp to state {} on {}",
                                                 static_cast<int>(state), device_.name()));
    }

    rdma_conn_param accept{};
    accept.private_data = params.reply.data();
    accept.private_data_len = static_cast<std::uint8_t>(params.reply.size());
    accept.responder_resources = responder_resources;
    accept.initiator_depth = initiator_depth;
    accept.rnr_retry_count = kRnrRetryCount;
    accept.qp_num = qp_->qp_num;
    if (rdma_accept(id, &accept) != 0)
        return fail_errno(errno, "rdma_accept");
    return {};
}

Endpoint::~Endpoint()
{
    stop();
    if (id_) {
        id_->context = nullptr;
        rdma_disconnect(id_.get()); // fails when the peer was first
    }
}

void Endpoint::bind(ibv_mw* mw, std::uint32_t rkey, const ibv_mw_bind_info& info, OpDone done)
{
    Op op;
    op.request.opcode = IBV_WR_BIND_MW;
    op.request.bind_mw.mw = mw;
    op.request.bind_mw.rkey = rkey;
    op.request.bind_mw.bind_info = info;
    op.deadline = kLocalDeadline;
    op.done = std::move(done);
    submit(std::move(op));
}

void Endpoint::invalidate(std::uint32_t rkey, OpDone done)
{
    Op op;
    op.request.opcode = IBV_WR_LOCAL_INV;
    op.request.invalidate_rkey = rkey;
    op.deadline = kLocalDeadline;
    op.done = std::move(done);
    submit(std::move(op));
}

void Endpoint::check_alive(OpDone done)
{
    // A write of zero bytes: acknowledged by the peer's device, checked against no key.
    Op op;
    op.request.opcode = IBV_WR_RDMA_WRITE;
    op.deadline = kAliveDeadline;
    op.done = std::move(done);
    submit(std::move(op));
}

void Endpoint::submit(Op op)
{
    waiting_.push_back(std::move(op));
    post_waiting();
}

void Endpoint::post_waiting()
{
    while (!stopped_ && !failed_ && !waiting_.empty() && posted_.size() < kSendQueueDepth) {
        ibv_send_wr* bad = nullptr;
        if (const int error = ibv_post_send(qp_.get(), &waiting_.front().request, &bad);
            error != 0) {
            fail_once(fmt::format("ibv_post_send: {}", std::strerror(error)));
            return;
        }
        posted_.push_back(std::move(waiting_.front()));
        waiting_.pop_front();
        if (posted_.size() == 1)
            rearm_deadline();
    }
}

void Endpoint::rearm_deadline()
{
    if (posted_.empty())
        deadline_.disarm();
    else
        deadline_.rearm(posted_.front().deadline);
}

// The time may have passed while the loop was busy elsewhere: what has completed by now counts.
void Endpoint::on_deadline()
{
    const auto before = completed_;
    completed();
    if (completed_ == before)
        fail_once("the RDMA device did not complete a request in time");
}

void Endpoint::completed()
{
    bool armed = false;
    while (!stopped_) {
        ibv_wc wc{};
        const int count = ibv_poll_cq(cq_.get(), 1, &wc);
        if (count < 0) {
            fail_once("ibv_poll_cq failed");
            return;
        }
        if (count == 0) {
            // What completed before the notification was asked for needs another look.
            if (armed)
                break;
            if (ibv_req_notify_cq(cq_.get(), 0) != 0) {
                fail_once("ibv_req_notify_cq failed");
                return;
            }
            armed = true;
            continue;
        }
        if (posted_.empty()) {
            fail_once("a completion of no request");
            return;
        }
        Op op = std::move(posted_.front());
        posted_.pop_front();
        completed_++;
        rearm_deadline();
        if (wc.status == IBV_WC_SUCCESS) {
            op.done({});
        } else {
            const std::string what = ibv_wc_status_str(wc.status);
            op.done(fail(EIO, "RDMA device " + device_.name() + ": " + what));
            fail_once(what);
        }
        post_waiting();
    }
}

void Endpoint::cm_event(rdma_cm_event_type type, int status)
{
    switch (type) {
    case RDMA_CM_EVENT_DISCONNECTED:
    case RDMA_CM_EVENT_CONNECT_ERROR:
    case RDMA_CM_EVENT_UNREACHABLE:
    case RDMA_CM_EVENT_REJECTED:
    case RDMA_CM_EVENT_DEVICE_REMOVAL:
        fail_once(connection_end(type, status));
        break;
    default: // established, or the end of a timewait
        break;
    }
}

void Endpoint::fail_once(const std::string& reason)
{
    if (stopped_ || failed_)
        return;
    failed_ = true;
    on_failed_(reason);
}

void Endpoint::stop()
{
    if (stopped_)
        return;
    stopped_ = true;
    deadline_.reset();
    posted_.clear();
    waiting_.clear();
    if (qp_) {
        ibv_qp_attr attr{};
        attr.qp_state = IBV_QPS_ERR;
        // Fails only with a device that is gone, and then nothing is served either.
        ibv_modify_qp(qp_.get(), &attr, IBV_QP_STATE);
    }
}

std::string Endpoint::peer_address() const
{
    return to_text(rdma_get_peer_addr(id_.get()));
}

} // namespace smc::verbs
