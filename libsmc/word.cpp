// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// Owns: what touches single words at the target: ordered publish, atomics, waiting for a word.
//
// Failure: ranges are checked before anything is done; the kernel says whether a request that failed may
// have been done (EREMOTEIO), and never repeats it. Nor does this file.
#include "internal.hpp"

#include <linux/smcfs.h>
#include <sys/ioctl.h>

using smc::abi::range_fits;

namespace {

// Waits in the kernel end with EINTR when a signal comes; nothing was done then that must be known.
template <class Request>
int call(const smc_region* region, unsigned long command, Request& request)
{
    if (ioctl(region->fd.get(), command, &request) == 0)
        return 0;
    return errno == ENOTTY ? -EOPNOTSUPP : -errno; // a module older than this library
}

constexpr bool is_word(uint64_t offset, uint64_t bytes)
{
    return (bytes == 4 || bytes == 8) && offset % bytes == 0;
}

int atomic(smc_region* region, uint64_t offset, uint32_t op, uint64_t operand, uint64_t compare,
           uint64_t* old)
{
    if (!region || !is_word(offset, 8))
        return -EINVAL;
    if (!range_fits(offset, 8, region->size))
        return -ERANGE;
    smcfs_ioc_atomic request{};
    request.offset = region->offset + offset;
    request.op = op;
    request.operand = operand;
    request.compare = compare;
    const int err = call(region, SMCFS_IOC_ATOMIC, request);
    if (err == 0 && old)
        *old = request.old;
    return err;
}

int read_wait_opts(const smc_wait_opts* opts, smc_wait_opts& out)
{
    if (!opts)
        return -EINVAL;
    if (const int err = smc::abi::copy_opts(*opts, out); err != 0)
        return err;
    if (out.bytes == 0)
        out.bytes = 8;
    const uint64_t bits = out.bytes == 4 ? UINT32_MAX : UINT64_MAX;
    if (out.mask == 0)
        out.mask = bits;
    if (out.timeout_ms == 0)
        out.timeout_ms = SMC_TIMEOUT_MS_DEFAULT;
    if (out.until > SMC_WAIT_AT_LEAST || out.timeout_ms > SMC_TIMEOUT_MS_MAX || out.reserved != 0)
        return -EINVAL;
    // A word can never have such bits: it would be waited for in vain, or not at all.
    return (out.value & ~bits) != 0 || (out.mask & ~bits) != 0 ? -EINVAL : 0;
}

static_assert(SMC_TIMEOUT_MS_MAX <= SMCFS_WAIT_TIMEOUT_MS_MAX);
constexpr uint32_t kCondition[] = {SMCFS_WAIT_NE, SMCFS_WAIT_EQ, SMCFS_WAIT_GE};

} // namespace

int smc_publish(smc_region* region, uint64_t offset, uint64_t length, uint64_t flag_offset,
                uint64_t value, size_t flag_bytes)
{
    if (!region || !is_word(flag_offset, flag_bytes) || (flag_bytes == 4 && value > UINT32_MAX))
        return -EINVAL;
    if (!range_fits(offset, length, region->size) ||
        !range_fits(flag_offset, flag_bytes, region->size))
        return -ERANGE;
    smcfs_ioc_publish request{};
    request.offset = region->offset + offset;
    request.length = length;
    request.flag_offset = region->offset + flag_offset;
    request.value = value;
    request.size = static_cast<uint32_t>(flag_bytes);
    return call(region, SMCFS_IOC_PUBLISH, request);
}

int smc_fetch_add(smc_region* region, uint64_t offset, uint64_t addend, uint64_t* old)
{
    return atomic(region, offset, SMCFS_ATOMIC_FETCH_ADD, addend, 0, old);
}

int smc_compare_swap(smc_region* region, uint64_t offset, uint64_t expected, uint64_t desired,
                     uint64_t* old)
{
    return atomic(region, offset, SMCFS_ATOMIC_COMPARE_SWAP, desired, expected, old);
}

int smc_wait(smc_region* region, uint64_t offset, const smc_wait_opts* opts, uint64_t* seen)
{
    smc_wait_opts full{};
    if (const int err = read_wait_opts(opts, full); err != 0)
        return err;
    if (!region || !is_word(offset, full.bytes))
        return -EINVAL;
    if (!range_fits(offset, full.bytes, region->size))
        return -ERANGE;
    smcfs_ioc_wait request{};
    request.offset = region->offset + offset;
    request.value = full.value;
    request.mask = full.mask;
    request.size = full.bytes;
    request.cond = kCondition[full.until];
    request.timeout_ms = full.timeout_ms;
    const int err = call(region, SMCFS_IOC_WAIT, request);
    if ((err == 0 || err == -ETIMEDOUT) && seen)
        *seen = request.seen;
    return err;
}
