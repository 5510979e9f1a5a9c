// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// One-time secrets and random identities.
#pragma once

#include "target/types.hpp"

namespace smc {

// From the kernel's generator. Never all zero.
Token random_token();
std::uint64_t random_identity(); // not 0

// Takes the same time wherever they differ.
bool tokens_equal(const Token& a, const Token& b);

} // namespace smc
