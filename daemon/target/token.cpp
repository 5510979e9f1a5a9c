// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
#include "target/token.hpp"

#include <algorithm>

#include "core/random.hpp"

namespace smc {

Token random_token()
{
    Token token{};
    do {
        const auto bytes = random_array<SMCFS_TOKEN_BYTES>();
        std::copy(bytes.begin(), bytes.end(), token.begin());
    } while (token == Token{});
    return token;
}

bool tokens_equal(const Token& a, const Token& b)
{
    // volatile keeps the compiler from leaving the loop early.
    volatile std::uint8_t difference = 0;
    for (std::size_t i = 0; i < a.size(); i++)
        difference = difference | (a[i] ^ b[i]);
    return difference == 0;
}

} // namespace smc
