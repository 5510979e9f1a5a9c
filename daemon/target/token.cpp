// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
#include "target/token.hpp"

#include <sys/random.h>

#include <cstdlib>
#include <span>

#include "core/log.hpp"

namespace smc {
namespace {

void fill_random(std::span<std::uint8_t> bytes)
{
    while (!bytes.empty()) {
        const auto got = ::getrandom(bytes.data(), bytes.size(), 0);
        if (got > 0) {
            bytes = bytes.subspan(static_cast<std::size_t>(got));
        } else if (errno != EINTR) {
            // Without randomness there are no secrets, and going on would mean known ones.
            log::critical("getrandom failed: {}", std::strerror(errno));
            std::abort();
        }
    }
}

} // namespace

Token random_token()
{
    Token token{};
    do
        fill_random(token);
    while (token == Token{});
    return token;
}

std::uint64_t random_identity()
{
    std::uint64_t value = 0;
    while (value == 0)
        fill_random({reinterpret_cast<std::uint8_t*>(&value), sizeof value});
    return value;
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
