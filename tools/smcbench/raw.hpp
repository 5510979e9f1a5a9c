// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// Raw verbs between two nodes, for comparison: the one side offers memory, the other one writes and
// reads it. Nothing of SMC is in between.
//
// Owns: one connection at a time, on its own protection domain and memory; nobody else's memory can be
// reached through it. Whoever can reach the port can connect: the memory holds nothing.
// Contexts: the calling thread, which polls.
// Failure: the connection is given up; serve() goes on with the next one.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "core/result.hpp"
#include "figures.hpp"

namespace smc::bench {

inline constexpr std::uint16_t kRawPort = 7452;

// On the node that has the memory: take connections until a signal ends the process.
// listening runs once the port is open.
Result<void> serve_raw(std::uint16_t port, const std::function<void()>& listening);

struct RawTarget {
    std::string address; // of an RDMA device there: name or number
    std::uint16_t port = kRawPort;
};

using RawProgress = std::function<void(const std::string& kind, std::uint64_t bytes)>;

// On the other one: every figure that a workload is compared with.
Result<Figures> measure_raw(const RawTarget& target, const RawProgress& progress);

} // namespace smc::bench
