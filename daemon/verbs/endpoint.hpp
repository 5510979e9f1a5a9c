// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// The target's end of one QP: accepts a connection, binds and invalidates memory windows on it, and
// notices its end. Data flows without it: the peer reads and writes memory by itself.
//
// Owns: QP, CQ, cm id, and the operations that were asked for and have not completed. At most
// kSendQueueDepth are posted, the others wait their turn.
// Contexts: the event loop's thread.
// Lifetime: on_failed runs at most once, from the loop, never after stop(). Before the endpoint is
// destroyed, stop() it and deallocate the windows bound on it.
// Failure: an operation that fails takes the QP to error, as the device does. One that does not
// complete in time is taken for a device that hangs: the same.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "core/result.hpp"
#include "event_loop.hpp"
#include "verbs/device.hpp"
#include "verbs/handles.hpp"

namespace smc::verbs {

// What happens to a connected or connecting cm id; its context points to one of these, or is null.
class CmEvents {
public:
    virtual ~CmEvents() = default;
    virtual void cm_event(rdma_cm_event_type type, int status) = 0;
};

struct AcceptParams {
    unsigned remote_access = 0;           // IBV_ACCESS_REMOTE_*: what the peer may do at all
    std::uint8_t responder_resources = 0; // as the connect request had them
    std::uint8_t initiator_depth = 0;
    std::span<const std::uint8_t> reply; // private data
};

class Endpoint final : private Completions, private CmEvents {
public:
    using OpDone = std::function<void(Result<void>)>;
    using FailedCallback = std::function<void(const std::string& reason)>;

    static constexpr unsigned kSendQueueDepth = 64;

    // The QP takes requests from the peer when this returns. pd is the device's or the session's
    // and outlives the endpoint. The id is the caller's again when this fails.
    static Result<std::unique_ptr<Endpoint>> accept(EventLoop& loop, Device& device, ibv_pd* pd,
                                                    CmId& id, const AcceptParams& params,
                                                    FailedCallback on_failed);
    Endpoint(const Endpoint&) = delete;
    Endpoint& operator=(const Endpoint&) = delete;
    ~Endpoint() override;

    // Bind a type 2 window, to be used under rkey from then on.
    void bind(ibv_mw* mw, std::uint32_t rkey, const ibv_mw_bind_info& info, OpDone done);
    void invalidate(std::uint32_t rkey, OpDone done);
    // A request that needs the peer's answer and moves no data. on_failed says when none came.
    void check_alive(OpDone done);

    // No request of the peer is served and no callback runs any more.
    void stop();
    [[nodiscard]] bool stopped() const { return stopped_; }
    [[nodiscard]] std::uint32_t qp_number() const { return qp_->qp_num; }
    [[nodiscard]] std::string peer_address() const;

private:
    struct Op {
        ibv_send_wr request{};
        Milliseconds deadline{};
        OpDone done;
    };

    Endpoint(Device& device, FailedCallback on_failed)
        : device_(device), on_failed_(std::move(on_failed))
    {}
    Result<void> create_qp(ibv_pd* pd);
    Result<void> connect_qp(rdma_cm_id* id, const AcceptParams& params);
    void submit(Op op);
    void post_waiting();
    void rearm_deadline();
    void on_deadline();
    void fail_once(const std::string& reason);

    void completed() override;
    void failed(const char* reason) override { fail_once(reason); }
    void cm_event(rdma_cm_event_type type, int status) override;

    Device& device_;
    FailedCallback on_failed_;
    CmId id_;
    Cq cq_;
    Qp qp_;
    EventLoop::Source deadline_;
    std::deque<Op> posted_; // complete in this order
    std::deque<Op> waiting_;
    std::uint64_t completed_ = 0; // operations so far
    bool stopped_ = false;
    bool failed_ = false;
};

} // namespace smc::verbs
