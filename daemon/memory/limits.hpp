// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// How much memory there is, and how much of it may be pinned.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/result.hpp"

namespace smc::memory {

// The value of "Field:   123 kB" in bytes, or nothing.
std::optional<std::uint64_t> kilobyte_field(std::string_view text, std::string_view field);

// MemAvailable of the node; nothing when it cannot be read.
std::optional<std::uint64_t> available_memory_bytes();
// What this process has pinned so far, by the kernel's account against RLIMIT_MEMLOCK.
std::optional<std::uint64_t> pinned_memory_bytes();
// Whether RLIMIT_MEMLOCK does not apply: CAP_IPC_LOCK is effective.
bool may_lock_without_limit();
// Refuses what RLIMIT_MEMLOCK would refuse, with the limit that is needed and where to set it.
Result<void> check_memlock(std::uint64_t needed_bytes);

} // namespace smc::memory
