// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// What a node and a region may be called. The kernel makes path components of both, so nothing that
// means something to a path walk gets through, and nothing that garbles a terminal.
#pragma once

#include <string_view>

#include "core/result.hpp"

namespace smc {

// One path component of letters, digits, '.', '_', '-' that starts with a letter or digit.
Result<void> check_node_name(std::string_view name);
// Such components, joined by '/'; '+', '@', ':', '=' and ',' are allowed too, but not in front.
Result<void> check_region_name(std::string_view name);
// Whether one of the two is a directory above the other: both cannot exist on one node.
bool names_clash(std::string_view a, std::string_view b);

} // namespace smc
