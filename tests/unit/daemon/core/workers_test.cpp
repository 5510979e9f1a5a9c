// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
#include "core/workers.hpp"

#include <pthread.h>

#include <atomic>
#include <future>
#include <thread>

#include <catch2/catch.hpp>

using smc::Workers;

namespace {

// While it lives no thread can be created: its stack would be larger than the address space.
class NoThreads {
public:
    NoThreads()
    {
        pthread_attr_t attributes;
        pthread_getattr_default_np(&before_);
        pthread_getattr_default_np(&attributes);
        pthread_attr_setstacksize(&attributes, std::size_t{1} << 47U);
        REQUIRE(pthread_setattr_default_np(&attributes) == 0);
        pthread_attr_destroy(&attributes);
    }
    ~NoThreads()
    {
        pthread_setattr_default_np(&before_);
        pthread_attr_destroy(&before_);
    }
    NoThreads(const NoThreads&) = delete;
    NoThreads& operator=(const NoThreads&) = delete;

private:
    pthread_attr_t before_{};
};

} // namespace

TEST_CASE("so many jobs run at a time, the others wait their turn", "[workers]")
{
    Workers workers(2, 100);
    std::promise<void> go;
    const auto gone = go.get_future().share();
    std::atomic<int> running = 0;
    std::atomic<int> most = 0;
    std::atomic<int> done = 0;
    std::promise<void> both;
    for (int i = 0; i < 10; ++i)
        REQUIRE(workers.submit([&] {
            const int now = ++running;
            for (int seen = most; now > seen && !most.compare_exchange_weak(seen, now);) {}
            if (now == 2 && done == 0)
                both.set_value();
            gone.wait();
            --running;
            ++done;
        }));
    both.get_future().wait();
    std::promise<void> last;
    REQUIRE(workers.submit([&] { last.set_value(); }));
    go.set_value();
    last.get_future().wait();
    workers.wait();
    CHECK(most == 2);
    CHECK(done == 10);
}

TEST_CASE("more than may wait are refused", "[workers]")
{
    Workers workers(1, 2);
    std::promise<void> started;
    std::promise<void> go;
    REQUIRE(workers.submit([&] {
        started.set_value();
        go.get_future().wait();
    }));
    started.get_future().wait();
    CHECK(workers.submit([] {}));
    CHECK(workers.submit([] {}));
    CHECK_FALSE(workers.submit([] {}));
    go.set_value();
    workers.wait();
}

TEST_CASE("wait() drops what has not begun and waits for what runs", "[workers]")
{
    Workers workers(1, 10);
    std::promise<void> started;
    std::atomic<bool> ended = false;
    REQUIRE(workers.submit([&] {
        started.set_value();
        ended = true;
    }));
    started.get_future().wait();
    workers.wait();
    CHECK(ended);
    std::promise<void> again; // it goes on being of use
    REQUIRE(workers.submit([&] { again.set_value(); }));
    again.get_future().wait();
    workers.wait();
}

TEST_CASE("without a thread a job runs in the caller", "[workers]")
{
    const NoThreads none;
    Workers workers(2, 10);
    std::thread::id ran;
    REQUIRE(workers.submit([&] { ran = std::this_thread::get_id(); }));
    CHECK(ran == std::this_thread::get_id());
    workers.wait();
}

TEST_CASE("without another thread jobs wait for those that there are", "[workers]")
{
    Workers workers(2, 10);
    std::promise<void> started;
    std::promise<void> go;
    std::promise<std::thread::id> ran;
    REQUIRE(workers.submit([&] {
        started.set_value();
        go.get_future().wait();
    }));
    started.get_future().wait();
    {
        const NoThreads none;
        REQUIRE(workers.submit([&] { ran.set_value(std::this_thread::get_id()); }));
    }
    go.set_value();
    CHECK(ran.get_future().get() != std::this_thread::get_id());
    workers.wait();
}

TEST_CASE("a job may outlive its Workers", "[workers]")
{
    std::promise<void> started;
    std::promise<void> go;
    std::promise<void> ended;
    {
        Workers workers(1, 10);
        REQUIRE(workers.submit([&] {
            started.set_value();
            go.get_future().wait();
            ended.set_value();
        }));
        started.get_future().wait();
    }
    go.set_value();
    ended.get_future().wait();
}
