// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
#include "target/registrar.hpp"

#include "memory/limits.hpp"

namespace smc {
namespace {

Result<Registered> register_now(const RegistrationJob& job)
{
    SMC_TRY(memory::check_memlock(job.memory->size())); // before it brings anything in
    SMC_TRY(job.memory->populate(*job.cancelled));
    verbs::RegistrationParams params;
    params.pd = job.pd ? job.pd.get() : job.device->pd();
    params.data = job.memory->data();
    params.length_bytes = job.memory->size();
    params.extent_max = job.extent_max;
    params.access = job.access;
    params.cancelled = job.cancelled.get();
    return verbs::register_memory(params);
}

} // namespace

Registrar::~Registrar()
{
    workers_.wait();
}

void Registrar::submit(RegistrationJob job, Done<Registered> done)
{
    const auto at = works_.insert(works_.end(), {std::move(job), std::move(done), Registered{}});
    const bool taken = workers_.submit([this, at, alive = std::weak_ptr(alive_)] {
        at->result = register_now(at->job);
        loop_.post([this, at, alive] {
            if (!alive.expired())
                hand_over(at);
        });
    });
    if (taken)
        return;
    at->result = fail(EBUSY, "too much memory waits to be registered: try again later");
    loop_.defer([this, at, alive = std::weak_ptr(alive_)] {
        if (!alive.expired())
            hand_over(at);
    });
}

void Registrar::hand_over(std::list<Work>::iterator at)
{
    std::list<Work> one; // what the job held goes when its result was taken
    one.splice(one.begin(), works_, at);
    at->done(std::move(at->result));
}

} // namespace smc
