// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// Raw verbs between two nodes, for comparison: the one side offers memory, the other one writes and
// reads it. Nothing of SMC is in between.
//
// Owns: one connection at a time, on its own protection domain and memory; nobody else's memory can
// be reached through it. Whoever can reach the port can connect: the memory holds nothing.
// Contexts: the calling thread, which polls.
// Failure: the connection is given up, also that of a peer that has become silent; serve_raw() goes
// on with the next one.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "core/result.hpp"
#include "figures.hpp"

namespace smc::bench {

inline constexpr std::uint16_t kRawPort = 7452;

struct RawServer {
    std::uint16_t port = kRawPort;
    std::chrono::seconds silence{30};                             // after which a peer is given up
    std::function<void()> listening = [] {};                      // once the port is open
    std::function<void(const Error&)> lost = [](const Error&) {}; // a peer that did not just end
};

// On the node that has the memory: take connections until a signal ends the process.
Result<void> serve_raw(const RawServer& server);

struct RawTarget {
    std::string address; // of an RDMA device there: name or number
    std::uint16_t port = kRawPort;
};

using RawProgress = std::function<void(const std::string& kind, std::uint64_t bytes, unsigned round,
                                       unsigned rounds)>;

// On the other one: every figure that a workload is compared with.
Result<Figures> measure_raw(const RawTarget& target, const RawProgress& progress);

} // namespace smc::bench
