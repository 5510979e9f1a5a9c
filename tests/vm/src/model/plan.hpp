/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* Copyright (c) 2026 The SMC authors */
// What happens next: a seed and the number of a command decide, nothing else, so that a run can be
// repeated. Only target_write looks at the model, to keep the promise of exclusive regions.
#pragma once

#include "common.hpp"
#include "shadow.hpp"

#include <cstdint>
#include <string>

namespace smc::test {

enum class Op : std::uint32_t {
    kLoad,
    kStore,
    kPread,
    kPwrite,
    kMsync,
    kFsync,
    kAcquire,       // posix_fadvise(POSIX_FADV_DONTNEED)
    kReopen,        // open and close once more: close-to-open
    kRemapAll,      // unmap and close everything, then open and map again
    kForkStore,     // a forked child stores and leaves without a barrier
    kMremap,        // the mapping moves
    kHole,          // part of the mapping is unmapped, and mapped again
    kPrivate,       // stores to a MAP_PRIVATE mapping
    kMprotect,      // read-only, and writable again
    kMadvise,       // DONTNEED, PAGEOUT, COLD, HUGEPAGE, POPULATE_READ, WILLNEED
    kPopulateWrite, // dirty without a change of content
    kMlock,
    kSelfCopy, // pwrite whose source is the mapping of the same file
    kSendfile,
    kStream,  // long sequential reads, which readahead serves with large folios
    kPastEnd, // stores between the end of the region and the end of its last page
    kVmRead,  // process_vm_readv, process_vm_writev on the companion's mapping
    kVmWrite,
    kKill,       // the companion stores and is killed
    kDirectIn,   // O_DIRECT read of another file into the mapping
    kDirectOut,  // O_DIRECT write of the mapping to another file
    kDirectRead, // O_DIRECT on the region itself
    kDirectWrite,
    kTargetWrite,
    kCompact, // page migration
    kDropCaches,
    kCount
};

const char* op_name(Op op);

struct Command {
    Op op;
    std::uint32_t actor;   // 0: the main process, 1: the companion
    std::uint32_t view;    // which of the actor's mappings
    std::uint32_t variant; // how exactly; each command has its own meaning of it
    std::uint64_t number;
    std::uint64_t value; // what is stored: see fill()
    Range range;
    std::uint64_t other; // a second offset: scratch file, or source of a copy
};

std::string describe(const Command& command);

// What the environment offers; commands without it are not drawn.
struct Abilities {
    bool scratch = false; // another file for O_DIRECT
    bool direct = false;  // O_DIRECT on the region
    bool system = false;  // may use knobs of the whole machine
};

class Plan {
public:
    Plan(std::uint64_t seed, const Abilities& abilities, std::uint64_t region_size,
         std::uint64_t scratch_size);
    Command next(std::uint64_t number);
    // How often it is expected among so many commands.
    std::uint64_t expected(Op op, std::uint64_t commands) const;

private:
    Op draw_op(Random& random) const;
    Range draw_range(Random& random) const;
    Range draw_pages(Random& random, std::uint64_t pages_max) const;

    std::uint64_t seed_;
    Abilities abilities_;
    std::uint64_t size_;
    std::uint64_t scratch_size_;
    std::uint64_t weight_total_ = 0;
};

} // namespace smc::test
