// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// The loads and stores that are timed. They are what a compiler makes of a plain loop, with the widest
// registers that the processor has, as memset and memcpy of the C library do it: what is measured is
// the mapping, not the loop.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace smc::bench {

inline constexpr std::size_t kSlotBytes = 64;

// Store value to every byte.
void fill(std::span<std::byte> bytes, unsigned char value);

// Change every float a little: a factor of 1 + 2^-20, so that the low bytes change.
void nudge(std::span<float> values);

// 64-byte stores to these slots. What is stored differs with seed and from slot to slot.
void store_slots(std::byte* base, std::span<const std::uint32_t> slots, std::uint64_t seed);

// Load every byte.
std::uint64_t sum(std::span<const std::byte> bytes);

} // namespace smc::bench
