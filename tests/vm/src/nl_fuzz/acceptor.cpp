// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
#include "acceptor.hpp"

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <sys/eventfd.h>

#include <rdma/rdma_cma.h>

namespace smc::test {

namespace {

// Connections at a time; more are rejected, as a target does that is full.
constexpr int kConnectionsMax = 64;

bool make_queues(rdma_cm_id* id)
{
    ibv_qp_init_attr init{};
    init.qp_type = IBV_QPT_RC;
    init.cap.max_send_wr = 1;
    init.cap.max_recv_wr = 1;
    init.cap.max_send_sge = 1;
    init.cap.max_recv_sge = 1;
    return rdma_create_qp(id, nullptr, &init) == 0;
}

void destroy(rdma_cm_id* id)
{
    if (id->qp)
        rdma_destroy_qp(id);
    rdma_destroy_id(id);
}

} // namespace

Acceptor::Acceptor(const std::string& address)
    : channel_(rdma_create_event_channel()), stop_(eventfd(0, EFD_CLOEXEC))
{
    if (!channel_ || !stop_)
        die("rdma_create_event_channel", errno);
    fcntl(channel_->fd, F_SETFL, fcntl(channel_->fd, F_GETFL) | O_NONBLOCK);
    addrinfo hints{};
    addrinfo* found = nullptr;
    hints.ai_flags = AI_NUMERICHOST;
    if (getaddrinfo(address.c_str(), nullptr, &hints, &found))
        die("'" + address + "' is no numeric address");
    if (rdma_create_id(channel_, &listener_, nullptr, RDMA_PS_TCP) ||
        rdma_bind_addr(listener_, found->ai_addr) || rdma_listen(listener_, kConnectionsMax))
        die("listening on " + address + ", which wants an RDMA device", errno);
    freeaddrinfo(found);
    port_ = rdma_get_src_port(listener_);
    thread_ = std::thread(&Acceptor::run, this);
}

Acceptor::~Acceptor()
{
    const std::uint64_t one = 1;
    if (write(stop_.get(), &one, sizeof(one)) < 0)
        die("stopping the target", errno);
    thread_.join();
    if (shared_)
        ibv_dereg_mr(shared_);
    rdma_destroy_id(listener_);
    rdma_destroy_event_channel(channel_);
}

std::uint32_t Acceptor::share(std::span<std::uint8_t> memory)
{
    // The connection manager has one protection domain for all queue pairs of a device.
    if (listener_->pd)
        shared_ =
            ibv_reg_mr(listener_->pd, memory.data(), memory.size(),
                       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE);
    if (!shared_)
        die("registering memory", errno);
    return shared_->rkey;
}

void Acceptor::handle(rdma_cm_id* id, int event)
{
    rdma_conn_param param{};
    switch (event) {
    case RDMA_CM_EVENT_CONNECT_REQUEST:
        if (connections_ >= kConnectionsMax || !make_queues(id)) {
            rdma_reject(id, nullptr, 0);
            destroy(id);
            break;
        }
        connections_++;
        param.responder_resources = 16;
        param.rnr_retry_count = 3;
        if (rdma_accept(id, &param)) {
            connections_--;
            destroy(id);
        }
        break;
    case RDMA_CM_EVENT_DISCONNECTED:
        rdma_disconnect(id);
        [[fallthrough]];
    case RDMA_CM_EVENT_CONNECT_ERROR:
    case RDMA_CM_EVENT_UNREACHABLE:
    case RDMA_CM_EVENT_REJECTED:
        connections_--;
        destroy(id);
        break;
    default:
        break;
    }
}

void Acceptor::run()
{
    for (;;) {
        pollfd fds[2] = {{channel_->fd, POLLIN, 0}, {stop_.get(), POLLIN, 0}};
        if (poll(fds, 2, -1) < 0 && errno != EINTR)
            die("poll", errno);
        rdma_cm_event* event = nullptr;
        while (rdma_get_cm_event(channel_, &event) == 0) {
            rdma_cm_id* id = event->id;
            int what = event->event;
            rdma_ack_cm_event(event); // an id is destroyed only after its events
            handle(id, what);
        }
        if (fds[1].revents)
            return;
    }
}

} // namespace smc::test
