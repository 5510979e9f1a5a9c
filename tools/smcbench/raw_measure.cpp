// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// The side that measures.
#include "raw.hpp"

#include <poll.h>
#include <rdma/rdma_verbs.h>
#include <sched.h>

#include <cstring>

#include "raw_wire.hpp"
#include "samples.hpp"

namespace smc::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint8_t kRetries = 7;
constexpr Clock::duration kCompletionTimeout = std::chrono::seconds(10);
// Some time longer than a message takes. From then on others may run: a device that is made of
// software may want the processor that waits for it.
constexpr Clock::duration kSpin = std::chrono::microseconds(100);
// A figure is the median of so many rounds. Where they last long, they end early, and then are
// fewer.
constexpr unsigned kRounds = 5;
constexpr Clock::duration kRoundTime = std::chrono::milliseconds(200);
constexpr Clock::duration kFigureTime = std::chrono::seconds(1);

struct Kind {
    const char* name;
    ibv_wr_opcode opcode;
    std::uint64_t bytes;
    unsigned depth;
    unsigned count; // in a round
};

// What workloads are compared with, see workload.cpp.
constexpr Kind kKinds[] = {
    {"write", IBV_WR_RDMA_WRITE, 64, kRawDepth, 4096},
    {"write", IBV_WR_RDMA_WRITE, 4096, kRawDepth, 2048},
    {"write", IBV_WR_RDMA_WRITE, kRawBytes, 2, 16},
    {"read", IBV_WR_RDMA_READ, kRawBytes, 2, 16},
    {"write_sync", IBV_WR_RDMA_WRITE, 64, 1, 1024},
    {"read_lat", IBV_WR_RDMA_READ, 4096, 1, 1024},
};

Result<RawInfo> resolve(const std::string& name, std::uint16_t port)
{
    rdma_addrinfo hints{};
    hints.ai_port_space = RDMA_PS_TCP;
    rdma_addrinfo* info = nullptr;
    const std::string service = std::to_string(port);
    // Its own return value is that of getaddrinfo or -1.
    if (rdma_getaddrinfo(name.c_str(), service.c_str(), &hints, &info) != 0)
        return fail(EHOSTUNREACH, name + ": no such name, or no RDMA device leads there");
    return RawInfo{info};
}

class Connection {
public:
    explicit Connection(std::string name) : name_(std::move(name)) {}
    ~Connection()
    {
        if (connected_)
            rdma_disconnect(id_.get());
    }
    Connection(const Connection&) = delete;
    Connection& operator=(const Connection&) = delete;

    Result<void> connect(std::uint16_t port)
    {
        auto info = SMC_TRY(resolve(name_, port));
        auto attributes = raw_qp_attributes();
        rdma_cm_id* id = nullptr;
        if (rdma_create_ep(&id, info.get(), nullptr, &attributes) != 0)
            return fail_errno(errno, "no RDMA device leads to " + name_);
        id_.reset(id);
        mr_.reset(rdma_reg_msgs(id, memory_.get(), sizeof(*memory_)));
        if (!mr_)
            return fail_errno(errno, "ibv_reg_mr of 4 MiB (see ulimit -l)");
        rdma_conn_param param{};
        param.initiator_depth = RDMA_MAX_INIT_DEPTH;
        param.retry_count = kRetries;
        if (rdma_connect(id, &param) != 0)
            return fail_errno(errno, name_ + ", port " + std::to_string(port) +
                                         ": is smcbench serve running there?");
        connected_ = true;
        const auto& reply = id->event->param.conn;
        if (reply.private_data_len < sizeof(offer_) || reply.private_data == nullptr)
            return fail(EPROTO, name_ + " is no smcbench serve");
        std::memcpy(&offer_, reply.private_data, sizeof(offer_));
        if (offer_.magic != kRawMagic)
            return fail(EPROTO, name_ + " is no smcbench serve");
        return {};
    }

    // One round. The time of one of its operations.
    Result<std::uint64_t> run(const Kind& kind)
    {
        unsigned posted = 0;
        unsigned done = 0;
        const auto start = Clock::now();
        auto progress = start;
        for (auto now = start;; now = Clock::now()) {
            for (; posted < kind.count && posted - done < kind.depth && now - start < kRoundTime;
                 posted++)
                SMC_TRY(post(kind.opcode, memory_->bytes.data(), kind.bytes, offer_.address, 0));
            if (done == posted)
                break;
            SMC_TRY(beat(now));
            ibv_wc completion{};
            const int found = ibv_poll_cq(id_->send_cq, 1, &completion);
            if (found < 0)
                return fail_errno(errno, "ibv_poll_cq");
            if (found == 0) {
                if (now - progress > kCompletionTimeout)
                    return lost(ETIMEDOUT, "no completion for 10 s");
                if (now - progress > kSpin)
                    ::sched_yield();
                continue;
            }
            if (completion.status != IBV_WC_SUCCESS)
                return lost(EIO, ibv_wc_status_str(completion.status));
            progress = now;
            if (completion.wr_id == kBeatId)
                beating_ = false;
            else
                done++;
        }
        const auto ns = std::chrono::nanoseconds(Clock::now() - start).count();
        return static_cast<std::uint64_t>(ns) / done;
    }

private:
    static constexpr std::uint64_t kBeatId = 1;

    // Once it is connected, what the connection manager has to say is its end.
    [[nodiscard]] bool closed() const
    {
        pollfd event{id_->channel->fd, POLLIN, 0};
        return ::poll(&event, 1, 0) > 0;
    }

    // That it was closed explains whatever else is seen.
    [[nodiscard]] tl::unexpected<Error> lost(int code, const std::string& why) const
    {
        const std::string where = "raw verbs with " + name_ + ": ";
        return closed() ? fail(ECONNRESET, where + "it has closed the connection")
                        : fail(code, where + why);
    }

    // Looks whether the other side is there, and tells it that this one is; too seldom to be seen
    // in what is measured.
    Result<void> beat(Clock::time_point now)
    {
        if (now - last_beat_ < kBeatEvery)
            return {};
        last_beat_ = now;
        if (closed())
            return lost(ECONNRESET, "");
        if (beating_)
            return {};
        beating_ = true;
        memory_->beat++;
        return post(IBV_WR_RDMA_WRITE, &memory_->beat, sizeof(memory_->beat),
                    offer_.address + offsetof(RawMemory, beat), kBeatId);
    }

    Result<void> post(ibv_wr_opcode opcode, void* local, std::uint64_t bytes, std::uint64_t remote,
                      std::uint64_t wr_id)
    {
        ibv_sge segment{};
        segment.addr = reinterpret_cast<std::uintptr_t>(local);
        segment.length = static_cast<std::uint32_t>(bytes);
        segment.lkey = mr_->lkey;
        ibv_send_wr request{};
        request.wr_id = wr_id;
        request.sg_list = &segment;
        request.num_sge = 1;
        request.opcode = opcode;
        request.wr.rdma.remote_addr = remote;
        request.wr.rdma.rkey = offer_.rkey;
        ibv_send_wr* bad = nullptr;
        if (const int error = ibv_post_send(id_->qp, &request, &bad); error != 0)
            return fail_errno(error, "ibv_post_send");
        return {};
    }

    std::string name_;
    std::unique_ptr<RawMemory> memory_ = std::make_unique<RawMemory>();
    RawId id_;
    RawMr mr_; // goes before the id
    RawOffer offer_{};
    bool connected_ = false;
    bool beating_ = false; // one is on its way
    Clock::time_point last_beat_{};
};

} // namespace

Result<Figures> measure_raw(const RawTarget& target, const RawProgress& progress)
{
    Connection connection(target.address);
    SMC_TRY(connection.connect(target.port));
    Figures figures;
    for (const Kind& kind : kKinds) {
        Samples samples;
        const auto start = Clock::now();
        for (unsigned round = 0; round < kRounds && Clock::now() - start < kFigureTime; round++) {
            progress(kind.name, kind.bytes, round, kRounds);
            samples.add(SMC_TRY(connection.run(kind)));
        }
        figures.set(kind.name, kind.bytes, static_cast<double>(samples.median()));
    }
    return figures;
}

} // namespace smc::bench
