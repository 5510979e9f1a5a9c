// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// Random bytes of the kernel, for identities and tokens. Never fails once the system has booted.
#pragma once

#include <sys/random.h>

#include <array>
#include <cstdint>
#include <cstdlib>

namespace smc {

template <std::size_t N>
std::array<char, N> random_array()
{
    static_assert(N <= 256, "getrandom is not interrupted up to this size");
    std::array<char, N> bytes{};
    if (::getrandom(bytes.data(), N, 0) != static_cast<ssize_t>(N))
        std::abort();
    return bytes;
}

// Not 0, which means none.
inline std::uint64_t random_identity()
{
    std::uint64_t identity = 0;
    while (identity == 0)
        if (::getrandom(&identity, sizeof identity, 0) != sizeof identity)
            std::abort();
    return identity;
}

} // namespace smc
