// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
#include "event_loop.hpp"

#include <thread>

#include <catch2/catch.hpp>

using smc::EventLoop;
using smc::Milliseconds;

TEST_CASE("what is deferred runs in order, also what a deferred callback defers", "[event_loop]")
{
    auto loop = *EventLoop::create();
    std::string order;
    loop->defer([&] {
        order += 'a';
        loop->defer([&] {
            order += 'c';
            loop->exit(7);
        });
    });
    loop->defer([&] { order += 'b'; });
    CHECK(*loop->run() == 7);
    CHECK(order == "abc");
}

TEST_CASE("other threads can post", "[event_loop]")
{
    auto loop = *EventLoop::create();
    int count = 0;
    std::vector<std::thread> threads;
    threads.reserve(4);
    for (int t = 0; t < 4; ++t)
        threads.emplace_back([&] {
            for (int i = 0; i < 1000; ++i)
                loop->post([&] {
                    if (++count == 4000)
                        loop->exit(0);
                });
        });
    REQUIRE(loop->run());
    for (auto& thread : threads)
        thread.join();
    CHECK(count == 4000);
}

TEST_CASE("a timer fires once per arming and may destroy itself", "[event_loop]")
{
    auto loop = *EventLoop::create();
    int fired = 0;
    EventLoop::Source timer = loop->add_timer(Milliseconds(1), [&] {
        if (++fired < 3) {
            timer.rearm(Milliseconds(1));
            return;
        }
        timer.reset();
        loop->exit(0);
    });
    EventLoop::Source idle = loop->add_timer(Milliseconds(-1), [&] { fired = 100; });
    REQUIRE(loop->run());
    CHECK(fired == 3);
}
