// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// Threads for what may block: opening files of others, pinning memory, requests that the kernel
// answers late. Each job hands its result to the event loop itself, by EventLoop::Remote.
//
// Owns: jobs that wait. At most threads_max run at a time; a thread ends when nothing waits.
// Contexts: submit() on the owner's thread; jobs on threads of their own.
// Lifetime: jobs that have not begun are dropped with the Workers. One that runs cannot be
// interrupted: it ends by itself, later, unless wait() was called.
// Failure: without memory for another thread jobs wait for those that are there; the first one then
// runs in the caller.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

namespace smc {

class Workers {
public:
    using Job = std::function<void()>;

    Workers(unsigned threads_max, std::size_t waiting_max);
    Workers(const Workers&) = delete;
    Workers& operator=(const Workers&) = delete;
    ~Workers();

    // False: so many wait already.
    [[nodiscard]] bool submit(Job job);
    // Drops what waits and returns when nothing runs any more.
    void wait();

private:
    struct State;
    std::shared_ptr<State> state_; // shared with the threads, which may outlive this
};

} // namespace smc
