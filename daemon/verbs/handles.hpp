// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// Owners of the objects of libibverbs and librdmacm.
//
// Lifetime: each goes after what was made from it: windows before the QP that they are bound to and
// the MR below them, QPs before CQs, all before PD and context. Drivers hold references across
// these and wait for them in the kernel.
// Failure: an object that cannot be destroyed is a bug of ours or of the driver; it is logged and
// leaked.
#pragma once

#include <memory>

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

namespace smc::verbs {

struct Destroy {
    void operator()(ibv_context* context) const;
    void operator()(ibv_pd* pd) const;
    void operator()(ibv_comp_channel* channel) const;
    void operator()(ibv_cq* cq) const;
    void operator()(ibv_qp* qp) const;
    void operator()(ibv_mr* mr) const;
    void operator()(ibv_mw* mw) const;
    void operator()(rdma_event_channel* channel) const;
    void operator()(rdma_cm_id* id) const; // not its QP: that has an owner of its own
};

using Context = std::unique_ptr<ibv_context, Destroy>;
using Pd = std::unique_ptr<ibv_pd, Destroy>;
using CompChannel = std::unique_ptr<ibv_comp_channel, Destroy>;
using Cq = std::unique_ptr<ibv_cq, Destroy>;
using Qp = std::unique_ptr<ibv_qp, Destroy>;
using Mr = std::unique_ptr<ibv_mr, Destroy>;
using Mw = std::unique_ptr<ibv_mw, Destroy>;
using EventChannel = std::unique_ptr<rdma_event_channel, Destroy>;
using CmId = std::unique_ptr<rdma_cm_id, Destroy>;

} // namespace smc::verbs
