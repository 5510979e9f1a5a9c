// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// Owns: how people name a region, NODE:NAME or /smc/NODE/NAME, and what a valid name is.
#pragma once

#include <string>
#include <string_view>

#include "core/result.hpp"

namespace smc::client {

inline constexpr std::string_view kMountPoint = "/smc";

struct RegionName {
    std::string node;
    std::string name; // components joined by '/'

    [[nodiscard]] std::string text() const { return node + ":" + name; }
    [[nodiscard]] std::string path() const;
    bool operator==(const RegionName&) const = default;
};

// One path component of 1 to SMCFS_NODE_NAME_MAX bytes, without ':' and control characters.
Result<void> check_node_name(std::string_view node);

// 1 to SMCFS_REGION_NAME_MAX bytes: components that are neither empty nor "." nor "..".
Result<void> check_region_name(std::string_view name);

// text is NODE:NAME, or a path below the mount point. Doubled and trailing slashes of a path are
// taken as the file system takes them.
Result<RegionName> parse_region_name(std::string_view text);

} // namespace smc::client
