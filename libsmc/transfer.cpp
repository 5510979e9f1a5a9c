// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// Owns: what moves bytes of an attached region: barrier, acquire, store, load.
//
// Failure: ranges are checked before anything is done. The kernel keeps what it could not send.
#include "internal.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

using smc::abi::move_all;
using smc::abi::range_fits;

int smc_barrier(smc_region* region)
{
    return region ? smc_barrier_range(region, 0, region->size) : -EINVAL;
}

int smc_barrier_range(smc_region* region, uint64_t offset, uint64_t length)
{
    if (!region)
        return -EINVAL;
    if (!range_fits(offset, length, region->size))
        return -ERANGE;
    if (length == 0)
        return 0;
    // Of a file that is open for reading only a shared mapping is a private one to the kernel, and
    // msync passes it over: what others of this node changed would stay here. fdatasync does more
    // than the range.
    if (region->readonly)
        return fdatasync(region->fd.get()) < 0 ? -errno : 0;
    // msync wants an aligned start, and rounds the end up itself.
    const uint64_t slack = offset % smc::abi::page_bytes();
    auto* begin = static_cast<char*>(region->addr) + (offset - slack);
    return msync(begin, length + slack, MS_SYNC) < 0 ? -errno : 0;
}

int smc_acquire(smc_region* region, uint64_t offset, uint64_t length)
{
    if (!region)
        return -EINVAL;
    if (!range_fits(offset, length, region->size))
        return -ERANGE;
    if (length == 0)
        length = region->size - offset;
    if (length == 0)
        return 0; // to posix_fadvise 0 would mean the rest of the region
    return -posix_fadvise(region->fd.get(), static_cast<off_t>(region->offset + offset),
                          static_cast<off_t>(length), POSIX_FADV_DONTNEED);
}

int smc_store(smc_region* region, uint64_t offset, const void* buf, size_t length)
{
    if (!region || (!buf && length > 0))
        return -EINVAL;
    if (!range_fits(offset, length, region->size))
        return -ENOSPC;
    return move_all(region->offset + offset, length, [&](size_t done, size_t left, off_t at) {
        return pwrite(region->fd.get(), static_cast<const char*>(buf) + done, left, at);
    });
}

int smc_load(smc_region* region, uint64_t offset, void* buf, size_t length)
{
    if (!region || (!buf && length > 0))
        return -EINVAL;
    if (!range_fits(offset, length, region->size))
        return -ERANGE;
    return move_all(region->offset + offset, length, [&](size_t done, size_t left, off_t at) {
        return pread(region->fd.get(), static_cast<char*>(buf) + done, left, at);
    });
}
