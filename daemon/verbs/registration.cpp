// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
#include "verbs/registration.hpp"

#include <algorithm>
#include <limits>

#include <fmt/format.h>
#include <linux/smcfs.h>

#include "memory/limits.hpp"

namespace smc::verbs {
namespace {

std::string hint(int error, int access)
{
    switch (error) {
    case EFAULT:
    case EOPNOTSUPP:
        if ((access & IBV_ACCESS_LOCAL_WRITE) == 0)
            return " (this kernel lets devices read only what is mapped for writing: use a file on "
                   "tmpfs such as /dev/shm that its owner may write to)";
        return " (this file system does not let devices write to its pages: use a file on tmpfs "
               "such as /dev/shm or on hugetlbfs, or export it read-only)";
    case ENOMEM:
        return " (not enough memory, or the limit on locked memory is too low: set "
               "LimitMEMLOCK=infinity in the unit of smcfsd)";
    default:
        return "";
    }
}

} // namespace

Result<std::vector<Extent>> split_extents(std::uint64_t length_bytes, std::uint64_t extent_max)
{
    const auto piece = extent_max / SMCFS_EXTENT_MIN * SMCFS_EXTENT_MIN;
    if (piece == 0 && extent_max < length_bytes)
        return fail(EINVAL,
                    fmt::format("extents of at most {} bytes are too short, the least is {}",
                                extent_max, std::uint64_t{SMCFS_EXTENT_MIN}));
    std::vector<Extent> extents;
    for (std::uint64_t offset = 0; offset < length_bytes;) {
        if (extents.size() == SMCFS_EXTENTS_MAX)
            return fail(EFBIG, fmt::format("{} bytes in pieces of {} are more than {} extents",
                                           length_bytes, piece, SMCFS_EXTENTS_MAX));
        const auto rest = length_bytes - offset;
        const auto length = rest <= extent_max ? rest : piece;
        extents.push_back({offset, length});
        offset += length;
    }
    return extents;
}

Result<std::vector<RegisteredExtent>> register_memory(const RegistrationParams& params)
{
    ibv_device_attr attributes{};
    if (const int error = ibv_query_device(params.pd->context, &attributes); error != 0)
        return fail_errno(error, "ibv_query_device");
    auto extent_max = attributes.max_mr_size != 0 ? attributes.max_mr_size
                                                  : std::numeric_limits<std::uint64_t>::max();
    if (params.extent_max != 0)
        extent_max = std::min(extent_max, params.extent_max);

    SMC_TRY(memory::check_memlock(params.length_bytes));
    const auto extents = SMC_TRY(split_extents(params.length_bytes, extent_max));
    std::vector<RegisteredExtent> registered;
    for (const auto& extent : extents) {
        if (params.cancelled != nullptr && *params.cancelled)
            return fail(ECANCELED, "it is not wanted any more");
        std::byte* start = params.data + extent.offset;
        Mr mr(ibv_reg_mr(params.pd, start, extent.length, params.access));
        if (!mr) {
            const int error = errno;
            return fail(error,
                        fmt::format("cannot register {} bytes with RDMA device {}: {}{}",
                                    extent.length, ibv_get_device_name(params.pd->context->device),
                                    std::strerror(error), hint(error, params.access)));
        }
        registered.push_back({extent, reinterpret_cast<std::uint64_t>(start), std::move(mr)});
    }
    return registered;
}

} // namespace smc::verbs
