// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
#include "core/workers.hpp"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <system_error>
#include <thread>

namespace smc {

struct Workers::State {
    State(unsigned at_a_time, std::size_t jobs) : threads_max(at_a_time), waiting_max(jobs) {}

    const unsigned threads_max;
    const std::size_t waiting_max;
    std::mutex mutex;
    std::condition_variable idle; // threads became 0
    std::deque<Job> waiting;      // [mutex]
    unsigned threads = 0;         // [mutex]

    void run()
    {
        std::unique_lock lock(mutex);
        while (!waiting.empty()) {
            {
                const Job job = std::move(waiting.front());
                waiting.pop_front();
                lock.unlock();
                job();
            } // what it held goes outside of the lock
            lock.lock();
        }
        if (--threads == 0)
            idle.notify_all();
    }
};

Workers::Workers(unsigned threads_max, std::size_t waiting_max)
    : state_(std::make_shared<State>(threads_max, waiting_max))
{}

Workers::~Workers()
{
    std::deque<Job> dropped; // outlives the lock
    const std::lock_guard lock(state_->mutex);
    dropped.swap(state_->waiting);
}

bool Workers::submit(Job job)
{
    {
        const std::lock_guard lock(state_->mutex);
        if (state_->waiting.size() >= state_->waiting_max)
            return false;
        state_->waiting.push_back(std::move(job));
        if (state_->threads >= state_->threads_max)
            return true;
        state_->threads++;
    }
    try { // the one report of a failed thread is an exception
        std::thread([state = state_] { state->run(); }).detach();
    } catch (const std::system_error&) {
        std::unique_lock lock(state_->mutex);
        if (--state_->threads != 0)
            return true;
        state_->threads++;
        lock.unlock();
        state_->run();
    }
    return true;
}

void Workers::wait()
{
    std::deque<Job> dropped;
    std::unique_lock lock(state_->mutex);
    dropped.swap(state_->waiting);
    state_->idle.wait(lock, [this] { return state_->threads == 0; });
}

} // namespace smc
