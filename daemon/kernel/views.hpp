// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// Sessions and regions as dumps and events describe them.
#pragma once

#include "kernel_link.hpp"

namespace smc::kernel {

inline KernelSession read_session(const Attributes& a)
{
    return {a.u64(SMCFS_A_SESSION_ID),
            a.text(SMCFS_A_NODE),
            static_cast<smcfs_session_state>(a.u32(SMCFS_A_STATE)),
            static_cast<int>(a.u32(SMCFS_A_ERRNO)),
            a.text(SMCFS_A_REASON),
            a.text(SMCFS_A_RDMA_DEVICE)};
}

inline KernelRegion read_region(const Attributes& a)
{
    return {a.u64(SMCFS_A_REGION_ID),
            a.text(SMCFS_A_NODE),
            a.text(SMCFS_A_NAME),
            static_cast<smcfs_region_state>(a.u32(SMCFS_A_STATE)),
            static_cast<int>(a.u32(SMCFS_A_ERRNO)),
            a.text(SMCFS_A_REASON),
            a.u64(SMCFS_A_GENERATION),
            a.u64(SMCFS_A_SESSION_ID),
            a.u32(SMCFS_A_WRITER_STATE) > SMCFS_WRITER_NONE};
}

} // namespace smc::kernel
