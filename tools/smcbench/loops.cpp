// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
#include "loops.hpp"

#include <cstring>

namespace smc::bench {
namespace {

constexpr float kNudge = 1.0F + 0x1p-20F;

[[gnu::always_inline]] inline void nudge_all(float* values, std::size_t count)
{
    for (std::size_t i = 0; i < count; i++)
        values[i] *= kNudge;
}

[[gnu::always_inline]] inline void store_all(std::byte* base, const std::uint32_t* slots,
                                             std::size_t count, std::uint64_t seed)
{
    for (std::size_t i = 0; i < count; i++) {
        // One number all over the slot: as many stores as the registers are wide.
        auto* words = reinterpret_cast<std::uint64_t*>(base + kSlotBytes * slots[i]);
        for (std::size_t word = 0; word < kSlotBytes / sizeof(std::uint64_t); word++)
            words[word] = seed + i;
    }
}

[[gnu::always_inline]] inline std::uint64_t sum_all(const std::uint64_t* words, std::size_t count)
{
    std::uint64_t total = 0;
    for (std::size_t i = 0; i < count; i++)
        total += words[i];
    return total;
}

#ifdef __x86_64__
#define SMC_WIDE [[gnu::target("avx2")]]
SMC_WIDE void nudge_wide(float* values, std::size_t count)
{
    nudge_all(values, count);
}
SMC_WIDE void store_wide(std::byte* base, const std::uint32_t* slots, std::size_t count,
                         std::uint64_t seed)
{
    store_all(base, slots, count, seed);
}
SMC_WIDE std::uint64_t sum_wide(const std::uint64_t* words, std::size_t count)
{
    return sum_all(words, count);
}
bool wide()
{
    return __builtin_cpu_supports("avx2") != 0;
}
#else
constexpr auto nudge_wide = nudge_all;
constexpr auto store_wide = store_all;
constexpr auto sum_wide = sum_all;
constexpr bool wide()
{
    return false;
}
#endif

} // namespace

void fill(std::span<std::byte> bytes, unsigned char value)
{
    std::memset(bytes.data(), value, bytes.size());
}

void nudge(std::span<float> values)
{
    if (wide())
        nudge_wide(values.data(), values.size());
    else
        nudge_all(values.data(), values.size());
}

void store_slots(std::byte* base, std::span<const std::uint32_t> slots, std::uint64_t seed)
{
    if (wide())
        store_wide(base, slots.data(), slots.size(), seed);
    else
        store_all(base, slots.data(), slots.size(), seed);
}

std::uint64_t sum(std::span<const std::byte> bytes)
{
    const auto* words = reinterpret_cast<const std::uint64_t*>(bytes.data());
    const std::size_t count = bytes.size() / sizeof(std::uint64_t);
    return wide() ? sum_wide(words, count) : sum_all(words, count);
}

} // namespace smc::bench
