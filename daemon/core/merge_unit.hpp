// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// What a merge region sends together: one rule for configuration, messages and command line.
#pragma once

#include <cstdint>

#include <linux/smcfs.h>

namespace smc {

constexpr bool merge_unit_valid(std::uint64_t bytes)
{
    return bytes >= SMCFS_MERGE_UNIT_MIN && bytes <= SMCFS_MERGE_UNIT_MAX &&
           (bytes & (bytes - 1)) == 0;
}

} // namespace smc
