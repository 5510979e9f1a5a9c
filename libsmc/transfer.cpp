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

namespace {

using smc::abi::range_fits;

// pread and pwrite move 2 GiB minus a page at most per call, and may stop early.
template <class Move>
int move_all(const smc_region& region, uint64_t offset, size_t length, Move&& move)
{
    for (size_t done = 0; done < length;) {
        ssize_t n = move(done, length - done, static_cast<off_t>(region.offset + offset + done));
        if (n > 0)
            done += static_cast<size_t>(n);
        else if (n == 0)
            return -EIO; // within the region by our check: its file has been replaced by none
        else if (errno != EINTR)
            return -errno;
    }
    return 0;
}

} // namespace

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
    return move_all(*region, offset, length, [&](size_t done, size_t left, off_t at) {
        return pwrite(region->fd.get(), static_cast<const char*>(buf) + done, left, at);
    });
}

int smc_load(smc_region* region, uint64_t offset, void* buf, size_t length)
{
    if (!region || (!buf && length > 0))
        return -EINVAL;
    if (!range_fits(offset, length, region->size))
        return -ERANGE;
    return move_all(*region, offset, length, [&](size_t done, size_t left, off_t at) {
        return pread(region->fd.get(), static_cast<char*>(buf) + done, left, at);
    });
}
