// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// Host lists as cluster tools write them: "gpu[001-512]", "rack[1-2]node[08,11-13]", "a,b".
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/result.hpp"

namespace smc {

inline constexpr std::size_t kHostlistMax = 65536; // names in one list

// In the order written; every result is a valid node name. Leading zeros set the width.
Result<std::vector<std::string>> expand_hostlist(std::string_view text);

} // namespace smc
