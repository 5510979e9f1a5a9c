// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
#include "verbs/handles.hpp"

#include <cerrno>
#include <cstring>

#include "core/log.hpp"

namespace smc::verbs {
namespace {

void check(int error, const char* call)
{
    if (error != 0)
        log::error("{} failed, the object is leaked: {}", call, std::strerror(error));
}

} // namespace

void Destroy::operator()(ibv_context* context) const
{
    check(ibv_close_device(context) == 0 ? 0 : errno, "ibv_close_device");
}

void Destroy::operator()(ibv_pd* pd) const
{
    check(ibv_dealloc_pd(pd), "ibv_dealloc_pd");
}

void Destroy::operator()(ibv_comp_channel* channel) const
{
    check(ibv_destroy_comp_channel(channel), "ibv_destroy_comp_channel");
}

void Destroy::operator()(ibv_cq* cq) const
{
    check(ibv_destroy_cq(cq), "ibv_destroy_cq");
}

void Destroy::operator()(ibv_qp* qp) const
{
    check(ibv_destroy_qp(qp), "ibv_destroy_qp");
}

void Destroy::operator()(ibv_mr* mr) const
{
    check(ibv_dereg_mr(mr), "ibv_dereg_mr");
}

void Destroy::operator()(ibv_mw* mw) const
{
    check(ibv_dealloc_mw(mw), "ibv_dealloc_mw");
}

void Destroy::operator()(rdma_event_channel* channel) const
{
    rdma_destroy_event_channel(channel);
}

void Destroy::operator()(rdma_cm_id* id) const
{
    check(rdma_destroy_id(id) == 0 ? 0 : errno, "rdma_destroy_id");
}

} // namespace smc::verbs
