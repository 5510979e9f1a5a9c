// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// Owns: smc_status(). A netlink socket per call: none to share between threads or across fork.
#include "internal.hpp"

#include <algorithm>
#include <cstring>

#include "kernel_model.hpp"
#include "netlink.hpp"

static_assert(int{SMC_STATE_BINDING} == int{SMCFS_REGION_BINDING});
static_assert(int{SMC_STATE_ACTIVE} == int{SMCFS_REGION_ACTIVE});
static_assert(int{SMC_STATE_DEGRADED} == int{SMCFS_REGION_DEGRADED});
static_assert(int{SMC_STATE_FAILED} == int{SMCFS_REGION_FAILED});
static_assert(int{SMC_STATE_DETACHING} == int{SMCFS_REGION_DETACHING});
static_assert(int{SMC_WRITER_NONE} == int{SMCFS_WRITER_NONE});
static_assert(int{SMC_WRITER_ASKING} == int{SMCFS_WRITER_ASKING});
static_assert(int{SMC_WRITER_HELD} == int{SMCFS_WRITER_HELD});

namespace {

template <size_t N>
void copy_text(char (&out)[N], const std::string& text)
{
    size_t length = std::min(text.size(), N - 1);
    std::memcpy(out, text.data(), length);
    out[length] = '\0';
}

smc_status_info to_status(const smc::client::RegionInfo& region)
{
    smc_status_info info{};
    info.state = region.state;
    info.writer_state = region.writer_state;
    info.region_id = region.id;
    info.generation = region.generation;
    info.session_id = region.session_id;
    info.region_bytes = region.size_bytes;
    info.dirty_bytes = region.dirty_bytes;
    info.writeback_bytes = region.writeback_bytes;
    info.cached_bytes = region.cached_bytes;
    info.oldest_ms = region.oldest_ms;
    info.openers = region.openers;
    copy_text(info.node, region.node);
    copy_text(info.name, region.name);
    return info;
}

int status(const smc_region& region, smc_status_info& out)
{
    auto kernel = smc::client::Kernel::open();
    if (!kernel)
        return -kernel.error().code;
    auto found = kernel->region(region.region_id);
    if (!found)
        return found.error().code == ENOENT ? -ESTALE : -found.error().code;
    smc_status_info info = to_status(*found);
    // A caller with a longer struct is newer than this library: what we do not know is 0.
    const size_t caller_bytes = out.size;
    info.size = caller_bytes;
    std::memset(reinterpret_cast<char*>(&out) + sizeof(info), 0, caller_bytes - sizeof(info));
    std::memcpy(&out, &info, sizeof(info));
    return 0;
}

} // namespace

int smc_status(const smc_region* region, smc_status_info* info)
{
    if (!region || !info || info->size < sizeof(*info))
        return -EINVAL;
    return smc::abi::guarded([&] { return status(*region, *info); });
}
