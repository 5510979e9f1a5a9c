// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// Owns: pools: which bytes of a part of an attached region are given out. The books are kept in this
// process alone; nothing of them is in the region.
//
// Locking: the pool's mutex, a leaf; it guards both maps.
// Failure: what does not fit changes nothing. First fit by address keeps what is free together.
#include "internal.hpp"

#include <map>
#include <memory>
#include <mutex>

using smc::abi::guarded;
using smc::abi::range_fits;

struct smc_pool {
    std::mutex lock;
    std::map<uint64_t, uint64_t> free; // [lock] offset -> bytes; neighbours are joined
    std::map<uint64_t, uint64_t> used; // [lock] offset -> bytes, rounded up
};

namespace {

constexpr uint64_t kAlign = SMC_POOL_ALIGN;

constexpr uint64_t align_down(uint64_t bytes)
{
    return bytes / kAlign * kAlign;
}

int create(smc_region* region, uint64_t offset, uint64_t length, smc_pool** out)
{
    if (!region || !out)
        return -EINVAL;
    if (!range_fits(offset, length, region->size))
        return -ERANGE;
    const uint64_t end = align_down(length == 0 ? region->size : offset + length);
    const uint64_t begin = align_down(offset) == offset ? offset : align_down(offset) + kAlign;
    if (begin >= end)
        return -ENOBUFS;
    auto pool = std::make_unique<smc_pool>();
    pool->free.emplace(begin, end - begin);
    *out = pool.release();
    return 0;
}

int allocate(smc_pool* pool, size_t bytes, uint64_t* offset)
{
    if (!pool || !offset || bytes == 0)
        return -EINVAL;
    if (bytes > UINT64_MAX - kAlign)
        return -ENOBUFS;
    const uint64_t wanted = align_down(bytes + kAlign - 1);
    const std::lock_guard guard(pool->lock);
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
    const std::lock_guard guard(pool->lock);
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

int smc_pool_create(smc_region* region, uint64_t offset, uint64_t length, smc_pool** out)
{
    return guarded([&] { return create(region, offset, length, out); });
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
