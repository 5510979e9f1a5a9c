// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// Measures the RDMA path to a target: latency of small reads, bandwidth of large ones.
//
// Owns: a thread, which connects, polls its completions without sleeping, and ends. Polling through
// the event loop would measure the loop.
// Contexts: everything but the measurement is on the loop's thread.
// Lifetime: destroying the Probe ends the measurement and waits for its thread, a fraction of a
// second; done does not run any more.
// Failure: every step has a deadline, the whole at most kProbeSecondsMax and a few seconds.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>

#include "core/result.hpp"
#include "event_loop.hpp"
#include "target/types.hpp"

namespace smc::verbs {

inline constexpr double kProbeSecondsMax = 60;

struct ProbeParams {
    std::string address;        // one of ProbeOffer::addresses
    std::string source_address; // which local device; empty: the route's
    std::uint16_t port = 0;
    SessionId session = 0;
    Token token{};
    double seconds = 2; // for the bandwidth
};

struct ProbeResult {
    std::string device; // local
    std::string local_address;
    std::string remote_address;
    unsigned mtu_bytes = 0;
    unsigned reads = 0; // that the latency is taken from
    double min_us = 0;
    double avg_us = 0;
    double max_us = 0;
    std::uint64_t bytes = 0;
    double bandwidth_mbps = 0; // 10^6 bits in a second
};

class Probe {
public:
    // done runs once, from the loop. It may destroy the Probe.
    Probe(EventLoop& loop, ProbeParams params, Done<ProbeResult> done);
    ~Probe();
    Probe(const Probe&) = delete;
    Probe& operator=(const Probe&) = delete;

private:
    std::atomic<bool> cancelled_ = false;
    // Shared with what was posted to the loop, which may run after the Probe is gone.
    std::shared_ptr<Done<ProbeResult>> done_;
    std::thread thread_;
};

// The measurement itself, in the calling thread. ECANCELED soon after cancelled is set.
Result<ProbeResult> probe(const ProbeParams& params, const std::atomic<bool>& cancelled);

} // namespace smc::verbs
