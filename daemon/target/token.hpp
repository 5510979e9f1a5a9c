// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// The one-time secret that lets a QP into a session.
#pragma once

#include "target/types.hpp"

namespace smc {

// Never all zero.
Token random_token();

// Takes the same time wherever they differ.
bool tokens_equal(const Token& a, const Token& b);

} // namespace smc
