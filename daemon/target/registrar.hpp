// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// Pins and registers memory on a thread of its own: for much memory that takes seconds, and the loop
// has others to serve. One at a time, so that the checks against limits hold.
//
// Owns: jobs, from submit() until their result was handed over.
// Contexts: the event loop's thread; the work itself on the worker, which touches the job alone.
// Lifetime: a job shares what it works on with its owners, so that they may let go of it meanwhile.
// All of it is destroyed on the loop's thread. Destroying the Registrar waits for the job under way
// and drops the callbacks; whoever does that cancels the jobs first.
// Failure: as register_memory(); EBUSY when too many wait.
#pragma once

#include <atomic>
#include <list>
#include <memory>
#include <vector>

#include "core/result.hpp"
#include "core/workers.hpp"
#include "event_loop.hpp"
#include "memory/memory.hpp"
#include "target/types.hpp"
#include "verbs/device.hpp"
#include "verbs/registration.hpp"

namespace smc {

using Registered = std::vector<verbs::RegisteredExtent>;

struct RegistrationJob {
    // In this order: destroyed from the end.
    std::shared_ptr<memory::Memory> memory;
    std::shared_ptr<verbs::Device> device;
    std::shared_ptr<ibv_pd> pd; // of a session; null: the device's
    std::uint64_t extent_max = 0;
    int access = 0; // IBV_ACCESS_*
    std::shared_ptr<const std::atomic<bool>> cancelled;
};

class Registrar {
public:
    explicit Registrar(EventLoop& loop) : loop_(loop) {}
    Registrar(const Registrar&) = delete;
    Registrar& operator=(const Registrar&) = delete;
    ~Registrar();

    void submit(RegistrationJob job, Done<Registered> done);

private:
    static constexpr std::size_t kWaitingMax = 65536;

    struct Work {
        RegistrationJob job;
        Done<Registered> done;
        Result<Registered> result; // destroyed first
    };
    void hand_over(std::list<Work>::iterator at);

    EventLoop& loop_;
    std::list<Work> works_;
    std::shared_ptr<int> alive_ = std::make_shared<int>(0); // watched by what was posted
    Workers workers_{1, kWaitingMax};
};

} // namespace smc
