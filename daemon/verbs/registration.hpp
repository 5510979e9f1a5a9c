// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// Memory made known to a device: one registration per extent.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/result.hpp"
#include "verbs/handles.hpp"

namespace smc::verbs {

struct Extent {
    std::uint64_t offset = 0;
    std::uint64_t length = 0;
};

// [0, length_bytes) in as few pieces as a limit per piece allows; all but the last are multiples of
// SMCFS_EXTENT_MIN. EFBIG when there were more than SMCFS_EXTENTS_MAX; EINVAL for a limit below
// SMCFS_EXTENT_MIN.
Result<std::vector<Extent>> split_extents(std::uint64_t length_bytes, std::uint64_t extent_max);

struct RegisteredExtent {
    Extent extent;
    std::uint64_t addr = 0;
    Mr mr;
};

struct RegistrationParams {
    ibv_pd* pd = nullptr;
    std::byte* data = nullptr;
    std::uint64_t length_bytes = 0;
    std::uint64_t extent_max = 0;                 // 0: what the device can
    int access = 0;                               // IBV_ACCESS_*
    const std::atomic<bool>* cancelled = nullptr; // looked at before each extent
};

// Pins the memory, for which the calling thread waits. Refused before that when RLIMIT_MEMLOCK is
// too low. ECANCELED.
Result<std::vector<RegisteredExtent>> register_memory(const RegistrationParams& params);

} // namespace smc::verbs
