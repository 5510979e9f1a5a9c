// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// Owns: one generic netlink socket to smcfs.ko, and one request at a time on it.
//
// Failure: ENODEV when the module is not loaded, ETIMEDOUT when it does not answer, else the errno
// and the words that the kernel gave.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "kernel_model.hpp"

struct nl_sock;
struct nl_msg;

namespace smc::client {

class Kernel {
public:
    static Result<Kernel> open();

    Result<KernelInfo> info();
    Result<std::vector<PeerName>> peers();
    Result<std::vector<SessionInfo>> sessions();
    Result<std::vector<RegionInfo>> regions();
    // ENOENT: no such region, any more.
    Result<RegionInfo> region(uint64_t id);

    // Those that are here, rising. CAP_NET_ADMIN.
    Result<std::vector<PageRun>> pages(uint64_t id);
    // Of all regions; of one, if region_id is not 0.
    Result<std::vector<LatencyInfo>> latencies(uint64_t region_id = 0);
    Result<void> set(uint64_t id, const RegionSettings& settings); // CAP_NET_ADMIN
    // How many changed bytes were thrown away; without force none are. CAP_NET_ADMIN.
    Result<uint64_t> detach(uint64_t id, bool force);

    // From here on this socket is for events only. CAP_NET_ADMIN.
    Result<void> subscribe();
    // The next event, or nothing when stop_fd (if any) became readable or the time has passed.
    // ENOBUFS: events were lost.
    Result<std::optional<KernelEvent>> next_event(std::chrono::milliseconds timeout,
                                                  int stop_fd = -1);

private:
    struct SockFree {
        void operator()(nl_sock* sock) const;
    };
    struct MsgFree {
        void operator()(nl_msg* msg) const;
    };
    using Sock = std::unique_ptr<nl_sock, SockFree>;
    using Msg = std::unique_ptr<nl_msg, MsgFree>;
    using OnMessage = std::function<Result<void>(const nlmsghdr*)>;

    Kernel(Sock sock, int family) : sock_(std::move(sock)), family_(family) {}
    Result<Msg> message(int cmd, int flags);
    Result<void> transact(Msg msg, const OnMessage& on_message);
    template <class T>
    Result<std::vector<T>> dump(int cmd, Result<T> (*parse)(const nlmsghdr*),
                                uint64_t region_id = 0);

    Sock sock_;
    int family_;
};

} // namespace smc::client
