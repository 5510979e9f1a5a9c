// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// Owns: one connection to the local daemon, and one request at a time on it (docs/protocol.md).
//
// Failure: ENOTCONN when no daemon listens, ETIMEDOUT when it does not answer in time, EPROTO when
// what it sends is no frame; else the errno and the sentence of its answer.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "core/fd.hpp"
#include "core/result.hpp"

namespace smc::client {

using Json = nlohmann::json;

inline constexpr const char* kDaemonSocket = "/run/smcfs/smcfsd.sock";
inline constexpr size_t kFrameBytesMax = 65536;

class DaemonClient {
public:
    using Milliseconds = std::chrono::milliseconds;

    static Result<DaemonClient> connect(const std::string& path = kDaemonSocket,
                                        Milliseconds timeout = Milliseconds(5000));

    // args is an object; type and id are added. After any error but the daemon's own answer the
    // connection is of no more use.
    Result<Json> request(std::string_view type, Json args, Milliseconds timeout);

    // The next message without an id; nothing when stop_fd (if any) became readable or the time has
    // passed between two messages.
    Result<std::optional<Json>> next_notice(Milliseconds timeout, int stop_fd = -1);

private:
    using Deadline = std::chrono::steady_clock::time_point;

    explicit DaemonClient(Fd fd, std::string path) : fd_(std::move(fd)), path_(std::move(path)) {}
    Result<bool> wait(short events, Deadline deadline, int stop_fd = -1);
    Result<void> send(const Json& message, Deadline deadline);
    Result<void> read_exactly(char* out, size_t length, Deadline deadline);
    Result<Json> receive(Deadline deadline);

    Fd fd_;
    std::string path_;
    uint64_t next_id_ = 1;
};

// Members of an answer: EPROTO names the key that is missing or of the wrong type.
Result<uint64_t> get_uint(const Json& object, const char* key);
Result<std::string> get_string(const Json& object, const char* key);

} // namespace smc::client
