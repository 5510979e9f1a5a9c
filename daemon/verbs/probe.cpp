// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
#include "verbs/probe.hpp"

#include <poll.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "target/connect_request.hpp"
#include "verbs/address.hpp"
#include "verbs/handles.hpp"

namespace smc::verbs {
namespace {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

constexpr int kStepTimeoutMs = 3000; // resolve, connect
constexpr int kPollSliceMs = 100;    // how soon a cancellation is seen
constexpr unsigned kLatencyReads = 1000;
constexpr Seconds kLatencySeconds{1.0}; // fewer reads on a slow path
constexpr std::uint32_t kLatencyBytes = 8;
constexpr std::uint32_t kReadBytes = 64 << 10;
constexpr unsigned kReadsInFlight = 16;
constexpr Seconds kCompletionTimeout{5.0}; // above the transport's retries

// One connection, alone on its event channel and CQ.
class Prober {
public:
    Prober(const ProbeParams& params, const std::atomic<bool>& cancelled)
        : params_(params), cancelled_(cancelled)
    {}

    Result<ProbeResult> run()
    {
        SMC_TRY(resolve());
        SMC_TRY(connect());
        SMC_TRY(measure_latency());
        SMC_TRY(measure_bandwidth());
        return result_;
    }

    ~Prober()
    {
        if (id_ && qp_)
            rdma_disconnect(id_.get());
    }

private:
    Result<void> check_cancelled() const
    {
        if (cancelled_)
            return fail(ECANCELED, "the probe was cancelled");
        return {};
    }

    Result<void> expect(rdma_cm_event_type wanted, const char* step)
    {
        pollfd descriptor{channel_->fd, POLLIN, 0};
        int waited_ms = 0;
        while (::poll(&descriptor, 1, kPollSliceMs) <= 0) {
            SMC_TRY(check_cancelled());
            waited_ms += kPollSliceMs;
            if (waited_ms >= kStepTimeoutMs)
                return fail(ETIMEDOUT, fmt::format("{} {}: no answer within {} ms", step,
                                                   params_.address, kStepTimeoutMs));
        }
        rdma_cm_event* event = nullptr;
        if (rdma_get_cm_event(channel_.get(), &event) != 0)
            return fail_errno(errno, "rdma_get_cm_event");
        const auto type = event->event;
        const int status = event->status;
        if (type == RDMA_CM_EVENT_ESTABLISHED && wanted == type) {
            const auto* data = static_cast<const std::uint8_t*>(event->param.conn.private_data);
            reply_.assign(data, data + (data != nullptr ? event->param.conn.private_data_len : 0));
        }
        rdma_ack_cm_event(event);
        if (type == wanted)
            return {};
        return fail(
            status < 0 ? -status : ECONNREFUSED,
            fmt::format("{} {}: {} ({})", step, params_.address, rdma_event_str(type), status));
    }

    Result<void> resolve()
    {
        auto remote = SMC_TRY(parse_address(params_.address, params_.port));
        sockaddr_storage source{};
        if (!params_.source_address.empty())
            source = SMC_TRY(parse_address(params_.source_address, 0));
        channel_.reset(rdma_create_event_channel());
        if (!channel_)
            return fail_errno(errno, "rdma_create_event_channel");
        rdma_cm_id* id = nullptr;
        if (rdma_create_id(channel_.get(), &id, nullptr, RDMA_PS_TCP) != 0)
            return fail_errno(errno, "rdma_create_id");
        id_.reset(id);
        if (rdma_resolve_addr(id, params_.source_address.empty() ? nullptr : as_sockaddr(source),
                              as_sockaddr(remote), kStepTimeoutMs) != 0)
            return fail_errno(errno, "no RDMA device leads to " + params_.address);
        SMC_TRY(expect(RDMA_CM_EVENT_ADDR_RESOLVED, "resolving"));
        if (rdma_resolve_route(id, kStepTimeoutMs) != 0)
            return fail_errno(errno, "no RDMA route to " + params_.address);
        SMC_TRY(expect(RDMA_CM_EVENT_ROUTE_RESOLVED, "finding the route to"));
        result_.device = ibv_get_device_name(id->verbs->device);
        result_.local_address = to_text(rdma_get_local_addr(id));
        result_.remote_address = params_.address;
        return {};
    }

    Result<void> connect()
    {
        pd_.reset(ibv_alloc_pd(id_->verbs));
        if (!pd_)
            return fail_errno(errno, "ibv_alloc_pd");
        buffer_.resize(kReadBytes);
        mr_.reset(ibv_reg_mr(pd_.get(), buffer_.data(), buffer_.size(), IBV_ACCESS_LOCAL_WRITE));
        if (!mr_)
            return fail_errno(errno, "ibv_reg_mr");
        cq_.reset(ibv_create_cq(id_->verbs, kReadsInFlight, nullptr, nullptr, 0));
        if (!cq_)
            return fail_errno(errno, "ibv_create_cq");
        ibv_qp_init_attr init{};
        init.send_cq = cq_.get();
        init.recv_cq = cq_.get();
        init.cap.max_send_wr = kReadsInFlight;
        init.cap.max_recv_wr = 1;
        init.cap.max_send_sge = 1;
        init.cap.max_recv_sge = 1;
        init.qp_type = IBV_QPT_RC;
        init.sq_sig_all = 1;
        if (rdma_create_qp(id_.get(), pd_.get(), &init) != 0)
            return fail_errno(errno, "rdma_create_qp");
        qp_.reset(id_.get());

        ConnectRequest request;
        request.role = QpRole::read;
        request.session = params_.session;
        request.token = params_.token;
        const auto data = encode(request);
        rdma_conn_param param{};
        param.private_data = data.data();
        param.private_data_len = static_cast<std::uint8_t>(data.size());
        param.initiator_depth = RDMA_MAX_INIT_DEPTH;
        param.responder_resources = 0;
        param.retry_count = 7;
        param.rnr_retry_count = 6;
        if (rdma_connect(id_.get(), &param) != 0)
            return fail_errno(errno, "rdma_connect to " + params_.address);
        SMC_TRY(expect(RDMA_CM_EVENT_ESTABLISHED, "connecting to"));
        remote_ = SMC_TRY(parse_probe_memory(reply_));
        if (remote_.length_bytes < kReadBytes)
            return fail(EPROTO, fmt::format("the target offers only {} bytes to read",
                                            remote_.length_bytes));
        ibv_qp_attr attr{};
        ibv_qp_init_attr unused{};
        if (ibv_query_qp(id_->qp, &attr, IBV_QP_PATH_MTU, &unused) == 0)
            result_.mtu_bytes = 128U << attr.path_mtu; // IBV_MTU_256 is 1
        return {};
    }

    Result<void> post_read(std::uint32_t length, std::uint64_t offset)
    {
        ibv_sge sge{reinterpret_cast<std::uint64_t>(buffer_.data()), length, mr_->lkey};
        ibv_send_wr request{};
        request.sg_list = &sge;
        request.num_sge = 1;
        request.opcode = IBV_WR_RDMA_READ;
        request.wr.rdma.remote_addr = remote_.addr + offset;
        request.wr.rdma.rkey = remote_.rkey;
        ibv_send_wr* bad = nullptr;
        if (const int error = ibv_post_send(id_->qp, &request, &bad); error != 0)
            return fail_errno(error, "ibv_post_send");
        return {};
    }

    Result<void> wait_one()
    {
        const auto deadline = Clock::now() + kCompletionTimeout;
        while (true) {
            ibv_wc wc{};
            const int count = ibv_poll_cq(cq_.get(), 1, &wc);
            if (count < 0)
                return fail(EIO, "ibv_poll_cq failed");
            if (count == 1 && wc.status != IBV_WC_SUCCESS)
                return fail(EIO, fmt::format("an RDMA READ from {} failed: {}", params_.address,
                                             ibv_wc_status_str(wc.status)));
            if (count == 1)
                return {};
            SMC_TRY(check_cancelled());
            if (Clock::now() > deadline)
                return fail(ETIMEDOUT,
                            "an RDMA READ from " + params_.address + " did not complete in time");
        }
    }

    Result<void> measure_latency()
    {
        SMC_TRY(post_read(kLatencyBytes, 0)); // fills caches on the way
        SMC_TRY(wait_one());
        Seconds total{0};
        Seconds least{kCompletionTimeout};
        Seconds most{0};
        while (result_.reads < kLatencyReads && total < kLatencySeconds) {
            const auto start = Clock::now();
            SMC_TRY(post_read(kLatencyBytes, 0));
            SMC_TRY(wait_one());
            const Seconds took = Clock::now() - start;
            total += took;
            least = std::min(least, took);
            most = std::max(most, took);
            result_.reads++;
        }
        constexpr double kMicro = 1e6;
        result_.min_us = least.count() * kMicro;
        result_.max_us = most.count() * kMicro;
        result_.avg_us = total.count() * kMicro / result_.reads;
        return {};
    }

    Result<void> measure_bandwidth()
    {
        const std::uint64_t places = remote_.length_bytes / kReadBytes;
        const Seconds wanted{std::clamp(params_.seconds, 0.0, kProbeSecondsMax)};
        std::uint64_t posted = 0;
        std::uint64_t done = 0;
        const auto start = Clock::now();
        Seconds took{0};
        do {
            while (posted - done < kReadsInFlight) {
                SMC_TRY(post_read(kReadBytes, posted % places * kReadBytes));
                posted++;
            }
            SMC_TRY(wait_one());
            done++;
            took = Clock::now() - start;
        } while (took < wanted);
        result_.bytes = done * kReadBytes;
        result_.bandwidth_mbps = static_cast<double>(result_.bytes) * 8 / 1e6 / took.count();
        while (done < posted) {
            SMC_TRY(wait_one());
            done++;
        }
        return {};
    }

    static sockaddr* as_sockaddr(sockaddr_storage& storage)
    {
        return reinterpret_cast<sockaddr*>(&storage);
    }

    struct DestroyCmQp {
        void operator()(rdma_cm_id* id) const { rdma_destroy_qp(id); }
    };

    const ProbeParams& params_;
    const std::atomic<bool>& cancelled_; // set by the owner of the thread
    ProbeResult result_;
    // In this order: destroyed from the end.
    EventChannel channel_;
    CmId id_;
    Pd pd_;
    std::vector<std::uint8_t> buffer_;
    Mr mr_;
    Cq cq_;
    std::unique_ptr<rdma_cm_id, DestroyCmQp> qp_; // the QP of id_
    std::vector<std::uint8_t> reply_;
    ProbeMemory remote_;
};

} // namespace

Result<ProbeResult> probe(const ProbeParams& params, const std::atomic<bool>& cancelled)
{
    return Prober(params, cancelled).run();
}

Probe::Probe(EventLoop& loop, ProbeParams params, Done<ProbeResult> done)
    : done_(std::make_shared<Done<ProbeResult>>(std::move(done))),
      thread_([this, &loop, params = std::move(params), weak = std::weak_ptr(done_)] {
          auto result = probe(params, cancelled_);
          loop.post([result = std::move(result), weak] {
              if (const auto callback = weak.lock())
                  (*callback)(result);
          });
      })
{}

Probe::~Probe()
{
    cancelled_ = true;
    thread_.join();
}

} // namespace smc::verbs
