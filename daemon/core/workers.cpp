// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
#include "core/workers.hpp"

#include <pthread.h>

#include <condition_variable>
#include <deque>
#include <mutex>

#include "core/log.hpp"
#include "core/result.hpp"

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

    // A thread that runs them and that nobody waits for. Not std::thread, which tells of its
    // failure by an exception.
    static Result<void> start_thread(const std::shared_ptr<State>& state)
    {
        auto argument = std::make_unique<std::shared_ptr<State>>(state);
        pthread_t thread{};
        if (const int error = ::pthread_create(&thread, nullptr, thread_main, argument.get());
            error != 0)
            return fail_errno(error, "pthread_create");
        static_cast<void>(argument.release()); // the thread's
        ::pthread_detach(thread);
        return {};
    }

private:
    static void* thread_main(void* argument) noexcept
    {
        const std::unique_ptr<std::shared_ptr<State>> state(
            static_cast<std::shared_ptr<State>*>(argument));
        (*state)->run();
        return nullptr;
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
    const auto started = State::start_thread(state_);
    if (started)
        return true;
    log::debug("{}; jobs wait for threads that there are", started.error().what);
    {
        const std::lock_guard lock(state_->mutex);
        if (state_->threads > 1) {
            state_->threads--;
            return true;
        }
    }
    state_->run();
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
