// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// Marks around what is timed, for whoever watches the processor: instructions that do nothing and that
// no compiler makes. tests/bench/plugin knows them.
#pragma once

namespace smc::bench {

// Counted: this repetition is one of those that count.
inline void mark_begin([[maybe_unused]] bool counted)
{
#ifdef __x86_64__
    if (counted)
        __asm__ volatile("nopl 0x534d4301(%%rax)" ::: "memory");
#endif
}

inline void mark_end([[maybe_unused]] bool counted)
{
#ifdef __x86_64__
    if (counted)
        __asm__ volatile("nopl 0x534d4302(%%rax)" ::: "memory");
#endif
}

} // namespace smc::bench
