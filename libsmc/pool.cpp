// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// Owns: pools: which bytes of a part of an attached region are given out. The books are kept in this
// process alone; nothing of them is in the region.
//
// Locking: the pool's mutex, a leaf.
// Failure: what does not fit changes nothing. First fit by address keeps what is free together.
#include "internal.hpp"

#include <bit>
#include <map>
#include <memory>

#include "core/mutex.hpp"

using smc::abi::guarded;
using smc::abi::range_fits;

struct smc_pool {
    explicit smc_pool(uint64_t alignment) : align(alignment) {}

    const uint64_t align; // a power of two
    smc::Mutex mutex;
    std::map<uint64_t, uint64_t>
        free SMC_GUARDED_BY(mutex); // offset -> bytes; neighbours are joined
    std::map<uint64_t, uint64_t> used SMC_GUARDED_BY(mutex); // offset -> bytes, rounded up
};

namespace {

// Of bytes that are far from the end of what 64 bits can count.
constexpr uint64_t round_up(uint64_t bytes, uint64_t align)
{
    return (bytes + align - 1) / align * align;
}

int create(smc_region* region, uint64_t offset, uint64_t length, size_t alignment, smc_pool** out)
{
    if (alignment == 0)
        alignment = SMC_POOL_ALIGN;
    if (!region || !out || alignment < SMC_POOL_ALIGN || alignment > SMC_POOL_ALIGN_MAX ||
        !std::has_single_bit(alignment))
        return -EINVAL;
    if (!range_fits(offset, length, region->size))
        return -ERANGE;
    // Pieces are aligned in the target's memory, as far as that begins so, hence in the region.
    const uint64_t first = region->offset + offset;
    const uint64_t last = region->offset + (length == 0 ? region->size : offset + length);
    const uint64_t begin = round_up(first, alignment);
    const uint64_t end = last / alignment * alignment;
    if (begin >= end)
        return -ENOBUFS;
    auto pool = std::make_unique<smc_pool>(alignment);
    {
        const smc::MutexLock lock(pool->mutex);
        pool->free.emplace(begin - region->offset, end - begin);
    }
    *out = pool.release();
    return 0;
}

int allocate(smc_pool* pool, size_t bytes, uint64_t* offset)
{
    if (!pool || !offset || bytes == 0)
        return -EINVAL;
    if (bytes > UINT64_MAX - pool->align)
        return -ENOBUFS;
    const uint64_t wanted = round_up(bytes, pool->align);
    const smc::MutexLock lock(pool->mutex);
    for (auto hole = pool->free.begin(); hole != pool->free.end(); ++hole) {
        const auto [at, room] = *hole;
        if (room < wanted)
            continue;
        pool->used.emplace(at, wanted); // the only step that can fail, and the first
        auto node = pool->free.extract(hole);
        if (room > wanted) {
            node.key() = at + wanted;
            node.mapped() = room - wanted;
            pool->free.insert(std::move(node));
        }
        *offset = at;
        return 0;
    }
    return -ENOBUFS;
}

// Moves a node between the maps, so it cannot fail halfway.
int give_back(smc_pool* pool, uint64_t offset)
{
    if (!pool)
        return -EINVAL;
    const smc::MutexLock lock(pool->mutex);
    auto node = pool->used.extract(offset);
    if (node.empty())
        return -EINVAL;
    const auto hole = pool->free.insert(std::move(node)).position;
    if (const auto after = std::next(hole);
        after != pool->free.end() && hole->first + hole->second == after->first) {
        hole->second += after->second;
        pool->free.erase(after);
    }
    if (hole != pool->free.begin()) {
        const auto before = std::prev(hole);
        if (before->first + before->second == hole->first) {
            before->second += hole->second;
            pool->free.erase(hole);
        }
    }
    return 0;
}

} // namespace

int smc_pool_create(smc_region* region, uint64_t offset, uint64_t length, size_t alignment,
                    smc_pool** out)
{
    return guarded([&] { return create(region, offset, length, alignment, out); });
}

int smc_pool_alloc(smc_pool* pool, size_t bytes, uint64_t* offset)
{
    return guarded([&] { return allocate(pool, bytes, offset); });
}

int smc_pool_free(smc_pool* pool, uint64_t offset)
{
    return guarded([&] { return give_back(pool, offset); });
}

void smc_pool_destroy(smc_pool* pool)
{
    delete pool;
}
