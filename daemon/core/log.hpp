// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// Logging to stderr: smc::log::info("region {} lost", id). Under systemd each line starts with the
// syslog level in angle brackets, which journald takes off; elsewhere with time and level.
// Sentences in lower case; what a peer can provoke at will goes through RateLimit.
#pragma once

#include <chrono>
#include <string_view>

#include <spdlog/spdlog.h>

#include "core/result.hpp"

namespace smc::log {

using spdlog::critical;
using spdlog::debug;
using spdlog::error;
using spdlog::info;
using spdlog::warn;

// level: trace, debug, info, warning, error. EINVAL names the choices.
Result<void> init(std::string_view level);

// At most burst lines per interval; the line after a gap may say how many were left out.
class RateLimit {
public:
    RateLimit(unsigned burst, std::chrono::milliseconds interval)
        : burst_(burst), interval_(interval)
    {}
    // True when the caller may log now.
    bool allow();
    // How many calls were refused since the last one that was allowed.
    [[nodiscard]] unsigned long suppressed() const { return suppressed_; }

private:
    using Clock = std::chrono::steady_clock;
    unsigned burst_;
    std::chrono::milliseconds interval_;
    Clock::time_point window_start_{};
    unsigned used_ = 0;
    unsigned long refused_ = 0;
    unsigned long suppressed_ = 0;
};

} // namespace smc::log
