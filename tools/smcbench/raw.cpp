// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
#include "raw.hpp"

#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>

#include <chrono>
#include <cstring>
#include <memory>
#include <vector>

#include "samples.hpp"

namespace smc::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kMemoryBytes = std::size_t{4} << 20; // the largest operation
constexpr unsigned kDepth = 64;                            // operations in flight
constexpr unsigned kRounds = 5;                            // a figure is their median
constexpr std::uint32_t kMagic = 0x42434d53;               // "SMCB"
constexpr std::uint8_t kRetries = 7;
constexpr Clock::duration kCompletionTimeout = std::chrono::seconds(10);

// What the connection's reply says of the memory; both ends are little endian.
struct Offer {
    std::uint32_t magic;
    std::uint32_t rkey;
    std::uint64_t address;
};

struct DestroyId {
    void operator()(rdma_cm_id* id) const { rdma_destroy_ep(id); }
};
struct FreeInfo {
    void operator()(rdma_addrinfo* info) const { rdma_freeaddrinfo(info); }
};
struct Deregister {
    void operator()(ibv_mr* mr) const { rdma_dereg_mr(mr); }
};
using Id = std::unique_ptr<rdma_cm_id, DestroyId>;
using Info = std::unique_ptr<rdma_addrinfo, FreeInfo>;
using Mr = std::unique_ptr<ibv_mr, Deregister>;

Result<Info> resolve(const char* address, std::uint16_t port, int flags)
{
    rdma_addrinfo hints{};
    hints.ai_port_space = RDMA_PS_TCP;
    hints.ai_flags = flags;
    rdma_addrinfo* info = nullptr;
    const std::string service = std::to_string(port);
    // Its own return value is that of getaddrinfo or -1.
    if (rdma_getaddrinfo(address, service.c_str(), &hints, &info) != 0)
        return fail(EHOSTUNREACH, std::string(address != nullptr ? address : "any address") +
                                      ": no such name, or no RDMA device leads there");
    return Info{info};
}

ibv_qp_init_attr qp_attributes()
{
    ibv_qp_init_attr attributes{};
    attributes.cap.max_send_wr = kDepth;
    attributes.cap.max_recv_wr = 1;
    attributes.cap.max_send_sge = 1;
    attributes.cap.max_recv_sge = 1;
    attributes.qp_type = IBV_QPT_RC;
    attributes.sq_sig_all = 1;
    return attributes;
}

// One peer of serve_raw(), from its request to its end.
Result<void> serve_one(rdma_cm_id* id, std::vector<std::byte>& memory)
{
    const Mr mr{
        ibv_reg_mr(id->pd, memory.data(), memory.size(),
                   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)};
    if (!mr)
        return fail_errno(errno, "ibv_reg_mr of 4 MiB (see ulimit -l)");
    const Offer offer{kMagic, mr->rkey, reinterpret_cast<std::uintptr_t>(memory.data())};
    rdma_conn_param param{};
    param.private_data = &offer;
    param.private_data_len = sizeof(offer);
    param.responder_resources = RDMA_MAX_RESP_RES;
    param.rnr_retry_count = kRetries;
    if (rdma_accept(id, &param) != 0)
        return fail_errno(errno, "rdma_accept");
    // What comes next is its end: the other side's operations need nothing from this process.
    rdma_cm_event* event = nullptr;
    if (rdma_get_cm_event(id->channel, &event) == 0)
        rdma_ack_cm_event(event);
    rdma_disconnect(id);
    return {};
}

class Connection {
public:
    static Result<std::unique_ptr<Connection>> open(const RawTarget& target)
    {
        auto connection = std::unique_ptr<Connection>(new Connection);
        SMC_TRY(connection->connect(target));
        return connection;
    }
    ~Connection()
    {
        if (connected_)
            rdma_disconnect(id_.get());
    }
    Connection(const Connection&) = delete;
    Connection& operator=(const Connection&) = delete;

    // The time of one of count operations, of which depth are in flight.
    Result<std::uint64_t> run(ibv_wr_opcode opcode, std::uint64_t bytes, unsigned depth,
                              unsigned count)
    {
        unsigned posted = 0;
        unsigned done = 0;
        const auto start = Clock::now();
        auto progress = start;
        while (done < count) {
            for (; posted < count && posted - done < depth; posted++)
                SMC_TRY(post(opcode, bytes));
            ibv_wc completion{};
            const int found = ibv_poll_cq(id_->send_cq, 1, &completion);
            if (found < 0)
                return fail_errno(errno, "ibv_poll_cq");
            if (found == 0) {
                if (Clock::now() - progress > kCompletionTimeout)
                    return fail(ETIMEDOUT, "raw verbs: no completion for 10 s");
                continue;
            }
            if (completion.status != IBV_WC_SUCCESS)
                return fail(EIO, std::string("raw verbs: ") + ibv_wc_status_str(completion.status));
            progress = Clock::now();
            done++;
        }
        const auto ns = std::chrono::nanoseconds(Clock::now() - start).count();
        return static_cast<std::uint64_t>(ns) / count;
    }

private:
    Connection() : memory_(kMemoryBytes) {}

    Result<void> connect(const RawTarget& target)
    {
        auto info = SMC_TRY(resolve(target.address.c_str(), target.port, 0));
        auto attributes = qp_attributes();
        rdma_cm_id* id = nullptr;
        if (rdma_create_ep(&id, info.get(), nullptr, &attributes) != 0)
            return fail_errno(errno, "no RDMA device leads to " + target.address);
        id_.reset(id);
        mr_.reset(rdma_reg_msgs(id, memory_.data(), memory_.size()));
        if (!mr_)
            return fail_errno(errno, "ibv_reg_mr of 4 MiB (see ulimit -l)");
        rdma_conn_param param{};
        param.initiator_depth = RDMA_MAX_INIT_DEPTH;
        param.retry_count = kRetries;
        param.rnr_retry_count = kRetries;
        if (rdma_connect(id, &param) != 0)
            return fail_errno(errno, target.address + ", port " + std::to_string(target.port) +
                                         ": is smcbench serve running there?");
        connected_ = true;
        const auto& reply = id->event->param.conn;
        if (reply.private_data_len < sizeof(offer_) || reply.private_data == nullptr)
            return fail(EPROTO, target.address + " is no smcbench serve");
        std::memcpy(&offer_, reply.private_data, sizeof(offer_));
        if (offer_.magic != kMagic)
            return fail(EPROTO, target.address + " is no smcbench serve");
        return {};
    }

    Result<void> post(ibv_wr_opcode opcode, std::uint64_t bytes)
    {
        ibv_sge segment{};
        segment.addr = reinterpret_cast<std::uintptr_t>(memory_.data());
        segment.length = static_cast<std::uint32_t>(bytes);
        segment.lkey = mr_->lkey;
        ibv_send_wr request{};
        request.sg_list = &segment;
        request.num_sge = 1;
        request.opcode = opcode;
        request.wr.rdma.remote_addr = offer_.address;
        request.wr.rdma.rkey = offer_.rkey;
        ibv_send_wr* bad = nullptr;
        if (const int error = ibv_post_send(id_->qp, &request, &bad); error != 0)
            return fail_errno(error, "ibv_post_send");
        return {};
    }

    std::vector<std::byte> memory_;
    Id id_;
    Mr mr_; // goes before the id
    Offer offer_{};
    bool connected_ = false;
};

struct Kind {
    const char* name;
    ibv_wr_opcode opcode;
    std::uint64_t bytes;
    unsigned depth;
    unsigned count;
};

// What workloads are compared with, see workload.cpp.
constexpr Kind kKinds[] = {
    {"write", IBV_WR_RDMA_WRITE, 64, kDepth, 4096},
    {"write", IBV_WR_RDMA_WRITE, 4096, kDepth, 2048},
    {"write", IBV_WR_RDMA_WRITE, kMemoryBytes, 4, 16},
    {"read", IBV_WR_RDMA_READ, kMemoryBytes, 4, 16},
    {"write_sync", IBV_WR_RDMA_WRITE, 64, 1, 1024},
    {"read_lat", IBV_WR_RDMA_READ, 4096, 1, 1024},
};

} // namespace

Result<void> serve_raw(std::uint16_t port, const std::function<void()>& listening)
{
    std::vector<std::byte> memory(kMemoryBytes);
    auto info = SMC_TRY(resolve(nullptr, port, RAI_PASSIVE));
    auto attributes = qp_attributes();
    rdma_cm_id* id = nullptr;
    if (rdma_create_ep(&id, info.get(), nullptr, &attributes) != 0)
        return fail_errno(errno, "no RDMA device to listen on");
    const Id listener{id};
    if (rdma_listen(id, 1) != 0)
        return fail_errno(errno, "port " + std::to_string(port));
    listening();
    for (;;) {
        rdma_cm_id* next = nullptr;
        if (rdma_get_request(listener.get(), &next) != 0)
            return fail_errno(errno, "rdma_get_request");
        const Id peer{next};
        // Its failure is the peer's to see.
        static_cast<void>(serve_one(peer.get(), memory));
    }
}

Result<Figures> measure_raw(const RawTarget& target, const RawProgress& progress)
{
    auto connection = SMC_TRY(Connection::open(target));
    Figures figures;
    for (const Kind& kind : kKinds) {
        progress(kind.name, kind.bytes);
        Samples samples;
        for (unsigned round = 0; round < kRounds; round++)
            samples.add(SMC_TRY(connection->run(kind.opcode, kind.bytes, kind.depth, kind.count)));
        figures.set(kind.name, kind.bytes, static_cast<double>(samples.median()));
    }
    return figures;
}

} // namespace smc::bench
