// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// Owns: a buffer of trace events of its own in the kernel (an instance of tracefs), and what its lines
// mean. Nothing is mounted, and what others trace is left alone.
//
// Lifetime: the instance goes with its TraceInstance; what a killed smcctl left goes with the next one.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <sys/types.h>

#include "core/fd.hpp"
#include "core/result.hpp"

namespace smc::ctl {

struct TraceEvent {
    enum class Kind { store, fetch };
    Kind kind = Kind::store;
    uint64_t region_id = 0;
    uint64_t pos = 0; // bytes
    uint64_t bytes = 0;
    // Of stores:
    pid_t pid = 0;       // the process
    pid_t tid = 0;       // the thread
    std::string command; // of the thread, as far as the kernel remembers it
    bool mapped = false; // by a page fault; else by write(2)
    bool first = false;  // what holds the page was clean
};

// A line of trace_pipe; nothing, if it is none of these events.
std::optional<TraceEvent> parse_trace_line(std::string_view line);
// How many events the kernel had no room for, if the line says that.
std::optional<uint64_t> parse_lost_line(std::string_view line);

class TraceInstance {
public:
    // Of all regions, or of one. EACCES without root; ENOENT: no tracefs, or a module without events.
    static Result<std::unique_ptr<TraceInstance>> create(uint64_t region_id,
                                                         const std::string& root = kRoot);
    TraceInstance(const TraceInstance&) = delete;
    TraceInstance& operator=(const TraceInstance&) = delete;
    ~TraceInstance();

    // Nothing more is recorded; what was can still be read.
    void stop();
    // Hands over what was recorded meanwhile, a line at a time. Waits for nothing.
    Result<void> read(const std::function<void(std::string_view line)>& take);

    static constexpr const char* kRoot = "/sys/kernel/tracing";

private:
    explicit TraceInstance(std::string path) : path_(std::move(path)) {}
    Result<void> start(uint64_t region_id);

    std::string path_;
    Fd pipe_;
    std::string rest_; // of a line that is not whole yet
};

} // namespace smc::ctl
