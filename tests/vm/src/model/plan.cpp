// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
#include "plan.hpp"

#include <algorithm>
#include <array>
#include <cstdio>

namespace smc::test {

namespace {

enum Needs { kNothing, kScratch, kDirect, kSystem };

struct OpTraits {
    Op op;
    const char* name;
    unsigned weight; // in 10,000
    Needs needs;
    bool pages; // the range is whole pages
};

// Loads and stores are cheap and find most; what costs a round trip or a process is rarer.
constexpr std::array<OpTraits, static_cast<std::size_t>(Op::kCount)> kOps{{
    {Op::kLoad, "load", 3000, kNothing, false},
    {Op::kStore, "store", 2900, kNothing, false},
    {Op::kPread, "pread", 900, kNothing, false},
    {Op::kPwrite, "pwrite", 900, kNothing, false},
    {Op::kMsync, "msync", 500, kNothing, true},
    {Op::kFsync, "fsync", 60, kNothing, false},
    {Op::kAcquire, "acquire", 200, kNothing, false},
    {Op::kReopen, "reopen", 20, kNothing, false},
    {Op::kRemapAll, "remap-all", 4, kNothing, false},
    {Op::kForkStore, "fork-store", 50, kNothing, false},
    {Op::kMremap, "mremap", 60, kNothing, false},
    {Op::kHole, "hole", 100, kNothing, true},
    {Op::kPrivate, "private", 100, kNothing, true},
    {Op::kMprotect, "mprotect", 60, kNothing, true},
    {Op::kMadvise, "madvise", 200, kNothing, true},
    {Op::kPopulateWrite, "populate-write", 40, kNothing, true},
    {Op::kMlock, "mlock", 30, kNothing, true},
    {Op::kSelfCopy, "self-copy", 120, kNothing, false},
    {Op::kSendfile, "sendfile", 60, kNothing, false},
    {Op::kStream, "stream", 15, kNothing, true},
    {Op::kPastEnd, "past-end", 30, kNothing, false},
    {Op::kVmRead, "vm-read", 80, kNothing, false},
    {Op::kVmWrite, "vm-write", 80, kNothing, false},
    {Op::kKill, "kill", 8, kNothing, false},
    {Op::kDirectIn, "direct-in", 120, kScratch, true},
    {Op::kDirectOut, "direct-out", 100, kScratch, true},
    {Op::kDirectRead, "direct-read", 60, kDirect, true},
    {Op::kDirectWrite, "direct-write", 60, kDirect, true},
    {Op::kTargetWrite, "target-write", 200, kNothing, false},
    {Op::kCompact, "compact", 3, kSystem, false},
    {Op::kDropCaches, "drop-caches", 5, kSystem, false},
}};

constexpr bool ops_are_in_order()
{
    for (std::size_t i = 0; i < kOps.size(); i++)
        if (kOps[i].op != static_cast<Op>(i))
            return false;
    return true;
}
static_assert(ops_are_in_order());

bool possible(const OpTraits& traits, const Abilities& abilities)
{
    switch (traits.needs) {
    case kScratch:
        return abilities.scratch;
    case kDirect:
        return abilities.direct;
    case kSystem:
        return abilities.system;
    case kNothing:
        break;
    }
    return true;
}

constexpr std::uint64_t kHotBytes = 64 * kPageBytes; // half of all ranges start here
constexpr std::uint64_t kStreamPages = 256;
constexpr std::uint64_t kPagesMax = 48;

} // namespace

const char* op_name(Op op)
{
    return kOps[static_cast<std::size_t>(op)].name;
}

std::string describe(const Command& c)
{
    char text[200];
    std::snprintf(text, sizeof text,
                  "op %llu %s actor %u view %u variant %u offset %llu length %llu "
                  "other %llu",
                  static_cast<unsigned long long>(c.number), op_name(c.op), c.actor, c.view,
                  c.variant, static_cast<unsigned long long>(c.range.offset),
                  static_cast<unsigned long long>(c.range.length),
                  static_cast<unsigned long long>(c.other));
    return text;
}

Plan::Plan(std::uint64_t seed, const Abilities& abilities, std::uint64_t region_size,
           std::uint64_t scratch_size)
    : seed_(seed), abilities_(abilities), size_(region_size), scratch_size_(scratch_size)
{
    for (const OpTraits& traits : kOps)
        if (possible(traits, abilities_))
            weight_total_ += traits.weight;
}

std::uint64_t Plan::expected(Op op, std::uint64_t commands) const
{
    const OpTraits& traits = kOps[static_cast<std::size_t>(op)];
    return possible(traits, abilities_) ? commands * traits.weight / weight_total_ : 0;
}

Op Plan::draw_op(Random& random) const
{
    std::uint64_t at = random.below(weight_total_);
    for (const OpTraits& traits : kOps) {
        if (!possible(traits, abilities_))
            continue;
        if (at < traits.weight)
            return traits.op;
        at -= traits.weight;
    }
    return Op::kLoad;
}

// Bytes: small ones often, page borders and the end of the region more often than by chance.
Range Plan::draw_range(Random& random) const
{
    std::uint64_t length = 0;
    std::uint64_t kind = random.below(100);
    if (kind < 45)
        length = 1 + random.below(16);
    else if (kind < 75)
        length = 1 + random.below(512);
    else if (kind < 92)
        length = 1 + random.below(2 * kPageBytes);
    else if (kind < 99)
        length = 1 + random.below(64 << 10);
    else
        length = 1 + random.below(256 << 10);
    length = std::min(length, size_);

    std::uint64_t offset = 0;
    kind = random.below(100);
    std::uint64_t last = size_ - length;
    if (kind < 45)
        offset = random.below(std::min(kHotBytes, last + 1));
    else if (kind < 75)
        offset = random.below(last + 1);
    else if (kind < 90) // across a border
        offset = page_down(random.below(size_)) - std::min<std::uint64_t>(length / 2, kPageBytes);
    else
        offset = last;
    if (offset > last)
        offset = last;
    return {offset, length};
}

// Whole pages; the last may end with the region.
Range Plan::draw_pages(Random& random, std::uint64_t pages_max) const
{
    std::uint64_t pages = page_up(size_) / kPageBytes;
    std::uint64_t most =
        std::min(pages, random.one_in(8) ? pages_max : std::min<std::uint64_t>(pages_max, 8));
    std::uint64_t count = 1 + random.below(most);
    std::uint64_t first = random.below(pages - count + 1);
    if (random.one_in(2))
        first = random.below(std::min(kHotBytes / kPageBytes, pages - count + 1));
    std::uint64_t offset = first * kPageBytes;
    return {offset, std::min(count * kPageBytes, size_ - offset)};
}

Command Plan::next(std::uint64_t number)
{
    Random random{mix(seed_) ^ number};
    Command c{};
    c.op = draw_op(random);
    c.number = number;
    c.value = mix(seed_ + number * 2 + 1);
    c.actor = random.one_in(3);
    c.view = static_cast<std::uint32_t>(random.below(2));
    c.variant = static_cast<std::uint32_t>(random.below(1 << 16));

    const OpTraits& traits = kOps[static_cast<std::size_t>(c.op)];
    c.range = traits.pages ? draw_pages(random, c.op == Op::kStream ? kStreamPages : kPagesMax)
                           : draw_range(random);
    if (c.op == Op::kTargetWrite)
        c.range.length = std::min<std::uint64_t>(c.range.length, 16 << 10);
    if (c.op == Op::kDirectIn || c.op == Op::kDirectOut) {
        // Whole blocks only: a device has no partial ones.
        c.range.length = page_down(std::min(c.range.length, scratch_size_));
        std::uint64_t blocks = (scratch_size_ - c.range.length) / kPageBytes;
        c.other = random.below(blocks + 1) * kPageBytes;
    }
    if (c.op == Op::kSelfCopy) {
        // Source and destination apart, or what the copy means would depend on its direction.
        c.range.length = std::min(c.range.length, size_ / 2);
        c.range.offset = std::min(c.range.offset, size_ - c.range.length);
        std::uint64_t room_below =
            c.range.offset >= c.range.length ? c.range.offset - c.range.length + 1 : 0;
        std::uint64_t room_above = size_ - c.range.end() >= c.range.length
                                       ? size_ - c.range.end() - c.range.length + 1
                                       : 0;
        if (room_below + room_above == 0)
            c.op = Op::kLoad;
        std::uint64_t at = random.below(room_below + room_above);
        c.other = at < room_below ? at : c.range.end() + (at - room_below);
    }
    return c;
}

} // namespace smc::test
