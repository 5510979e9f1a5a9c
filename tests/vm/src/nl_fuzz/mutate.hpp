/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* Copyright (c) 2026 The SMC authors */
// Requests that are nearly right. A request depends on the seed and its number alone, but for the
// identities of regions, so that one can be sent again without those before it.
#pragma once

#include <cstdint>
#include <vector>

#include "world.hpp"

namespace smc::test {

struct Mutant {
    Bytes datagram;
    int command;      // of the request that it was made from
    bool by_stranger; // to be sent by a socket without rights
};

Mutant make_mutant(const World& world, const std::vector<std::uint64_t>& regions, Random random);

} // namespace smc::test
