// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// What makes a message between nodes genuine. With MUNGE each message is the payload of a credential
// that only daemons of the cluster can make and read, each once. The payload starts with the
// connection's id and the message's number, so that a genuine message cannot be held back, moved to
// another connection, or sent back to where it came from.
//
// Contexts: the loop's thread. munge_encode() and munge_decode() ask munged over a local socket and
// block for that long, some 100 us; munged is local and as trusted as the kernel.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "config.hpp"
#include "core/result.hpp"

namespace smc {

enum class SealSide { initiator, acceptor };

// State of one connection.
class Seal {
public:
    virtual ~Seal() = default;
    // EMSGSIZE: sealed it would not fit into a frame; nothing has changed, a shorter one may follow.
    virtual Result<std::string> wrap(std::string_view message) = 0;
    // EACCES: not genuine; says why and what to do.
    virtual Result<std::string> unwrap(std::string_view frame) = 0;
    [[nodiscard]] virtual Auth auth() const = 0;
};

std::unique_ptr<Seal> make_seal(const ControlConfig& config, SealSide side);
const char* to_string(Auth auth);
// EACCES: the two ends of a connection are configured differently.
Error auth_mismatch(std::string_view theirs, Auth ours);
// Whether munged answers: encodes and decodes once.
Result<void> check_munge(const std::string& socket);

} // namespace smc
