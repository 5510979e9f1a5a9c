// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// The command line of smcbench.
// Failure: printed once on err; exit 0 ok, 1 failed, 2 usage.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

namespace smc::bench {

int run(const std::vector<std::string>& args, std::ostream& out, std::ostream& err);

} // namespace smc::bench
