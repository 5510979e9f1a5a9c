// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
#include "recovery.hpp"

#include <catch2/catch.hpp>

#include "daemon/client/fake_port.hpp"

using namespace smc;
using test::Asked;
using test::World;
using Timer = NodePort::Timer;

TEST_CASE("a first use makes one session, step by step", "[recovery]")
{
    World world;
    world.binder.bind_for_kernel("r");
    CHECK(world.port.take() == Asked{"link_open"});
    world.link_comes_up();
    CHECK(world.port.take() == Asked{"open 1"});
    world.offer(1);
    CHECK(world.port.take() == Asked{"connect 1 10.0.0.1"});
    world.kernel_says(1, SMCFS_SESSION_LIVE);
    CHECK(world.port.take() == Asked{"grant 1 r"});
    CHECK(world.keeper().live());
}

TEST_CASE("of several addresses the next is tried when one fails", "[recovery]")
{
    World world;
    world.binder.bind_for_kernel("r");
    world.link_comes_up();
    world.offer(1, {"10.0.0.1", "10.0.1.1"});
    world.port.take();
    world.kernel_says(1, SMCFS_SESSION_DEAD, EHOSTUNREACH);
    CHECK(world.port.take() == Asked{"delete 1"});
    world.kernel_says(1, SMCFS_SESSION_DEAD);
    // The token may be used up, and the target may hold half a session: both are done away with.
    CHECK(world.port.take() == Asked{"close 1"});
    world.keeper().on_closed(1, {});
    CHECK(world.port.take() == Asked{"open 2"});
    world.offer(2, {"10.0.0.1", "10.0.1.1"});
    CHECK(world.port.take() == Asked{"connect 2 10.0.1.1"});
    world.kernel_says(2, SMCFS_SESSION_LIVE);
    CHECK(world.port.take() == Asked{"grant 2 r"});
}

TEST_CASE("when all addresses failed the waiting name gets the kernel's errno", "[recovery]")
{
    World world;
    world.binder.bind_for_kernel("r");
    world.link_comes_up();
    world.offer(1);
    world.port.take();
    world.kernel_says(1, SMCFS_SESSION_DEAD, ECONNREFUSED);
    CHECK(world.port.asked_for(fmt::format("bind_fail r {}", ECONNREFUSED)));
    // Nobody needs it any more: what is left of it is cleared away, nothing is tried again.
    world.kernel_says(1, SMCFS_SESSION_DEAD);
    CHECK(world.port.asked_for("close 1"));
    world.keeper().on_closed(1, {});
    CHECK(world.keeper().phase() == SessionPhase::idle);
}

TEST_CASE("an unreachable node fails the name once and is not tried again by itself", "[recovery]")
{
    World world;
    world.binder.bind_for_kernel("r");
    world.port.take();
    world.keeper().on_link_failed({EHOSTUNREACH, "no route"});
    CHECK(world.port.take() == Asked{fmt::format("bind_fail r {}", EHOSTUNREACH)});
    CHECK(world.keeper().phase() == SessionPhase::idle);
    CHECK_FALSE(world.port.timers.contains(Timer::session));
}

TEST_CASE("an old session is destroyed on both sides before a new one is opened", "[recovery]")
{
    World world;
    world.bind_first();
    world.port.time += Milliseconds(10000);
    world.kernel_says(1, SMCFS_SESSION_DRAINING, ETIMEDOUT);
    CHECK(world.port.take() == Asked{"delete 1"});
    CHECK(world.keeper().phase() == SessionPhase::deleting);
    world.kernel_says(1, SMCFS_SESSION_DRAINING);
    CHECK(world.port.take().empty());
    world.kernel_says(1, SMCFS_SESSION_DEAD);
    CHECK(world.port.take() == Asked{"close 1"});
    CHECK(world.keeper().phase() == SessionPhase::closing);
    world.keeper().on_closed(1, {});
    CHECK(world.port.take() == Asked{"open 2"});
    world.offer(2);
    world.kernel_says(2, SMCFS_SESSION_LIVE);
    CHECK(world.port.asked_for("grant 2 r"));
}

TEST_CASE("no new session while the target has not confirmed the end of the old", "[recovery]")
{
    World world;
    world.bind_first();
    world.port.time += Milliseconds(10000);
    world.kernel_says(1, SMCFS_SESSION_DEAD, EIO);
    world.kernel_says(1, SMCFS_SESSION_DEAD);
    world.port.take();
    world.port.link = false; // the target vanished before it answered
    world.keeper().on_closed(1, fail(ECONNRESET, "gone"));
    CHECK(world.keeper().phase() == SessionPhase::waiting);
    world.keeper().on_timer();
    CHECK(world.port.take() == Asked{"link_open"});
    world.link_comes_up();
    CHECK(world.port.take() == Asked{"close 1"});
    // A target that was restarted does not know it: nothing of it is left.
    world.keeper().on_closed(1, fail(ESTALE, "unknown session"));
    CHECK(world.port.take() == Asked{"open 2"});
}

TEST_CASE("attempts back off, up to the cap, for as long as a region is attached", "[recovery]")
{
    World world;
    world.bind_first();
    world.link_is_lost();
    world.port.time += Milliseconds(10000);
    world.kernel_says(1, SMCFS_SESSION_DEAD, EIO);
    world.kernel_says(1, SMCFS_SESSION_DEAD);
    std::vector<long> delays;
    for (int i = 0; i < 8; ++i) {
        world.keeper().on_link_failed({ECONNREFUSED, "refused"});
        REQUIRE(world.keeper().phase() == SessionPhase::waiting);
        delays.push_back(world.port.timers.at(Timer::session).count());
        world.keeper().on_timer();
        REQUIRE(world.keeper().phase() == SessionPhase::linking);
    }
    CHECK(delays == std::vector<long>{50, 100, 200, 400, 800, 1000, 1000, 1000});
}

TEST_CASE("jitter takes away up to half of the delay", "[recovery]")
{
    Backoff backoff(Milliseconds(100), Milliseconds(1000));
    CHECK(backoff.next(0.0) == Milliseconds(50));
    CHECK(backoff.next(1.0) == Milliseconds(200));
    backoff.reset();
    CHECK(backoff.next(0.5) == Milliseconds(75));
}

TEST_CASE("a session that keeps dying young is not remade without pause", "[recovery]")
{
    World world;
    world.bind_first();
    world.port.time += Milliseconds(100);
    world.kernel_says(1, SMCFS_SESSION_DEAD, EIO);
    CHECK(world.keeper().phase() == SessionPhase::waiting);
    CHECK(world.port.timers.contains(Timer::session));
}

TEST_CASE("a lost control connection leaves the session and is made again", "[recovery]")
{
    World world;
    world.bind_first();
    world.link_is_lost();
    CHECK(world.keeper().live());
    CHECK(world.port.take().empty());
    world.keeper().on_timer();
    CHECK(world.port.take() == Asked{"link_open"});
    world.link_comes_up();
    CHECK(world.port.take() == Asked{"adopt 1"});
    SECTION("the target still has the session")
    {
        world.keeper().on_adopted(1, {});
        CHECK(world.keeper().live());
        CHECK(world.port.take().empty());
    }
    SECTION("the target was restarted")
    {
        world.port.time += Milliseconds(10000);
        world.keeper().on_adopted(1, fail(ESTALE, "unknown session"));
        CHECK(world.port.take() == Asked{"delete 1"});
        CHECK(world.keeper().phase() == SessionPhase::deleting);
    }
}

TEST_CASE("an unneeded session is closed after a moment, and kept when needed again", "[recovery]")
{
    World world;
    world.bind_first();
    world.region_fails("r");
    CHECK(world.port.take() == Asked{"release 1 r"});
    CHECK(world.keeper().live());
    SECTION("kept")
    {
        world.binder.bind_for_kernel("s");
        CHECK(world.port.take() == Asked{"grant 1 s"});
        world.keeper().on_timer();
        CHECK(world.keeper().live());
    }
    SECTION("closed")
    {
        world.keeper().on_timer();
        world.kernel_says(1, SMCFS_SESSION_DEAD);
        world.keeper().on_closed(1, {});
        CHECK(world.port.take() == Asked{"delete 1", "close 1"});
        CHECK(world.keeper().phase() == SessionPhase::idle);
    }
}

TEST_CASE("a restarted daemon takes over the session that lives and clears away others",
          "[recovery]")
{
    World world;
    world.port.kernel_sessions = {11, 12};
    world.keeper().adopt({{11, "gpu1", SMCFS_SESSION_DEAD}, {12, "gpu1", SMCFS_SESSION_LIVE}});
    world.binder.adopt({{100, "gpu1", "r", SMCFS_REGION_ACTIVE, 0, "", 7, 12}});
    CHECK(world.keeper().live());
    CHECK(world.keeper().session() == 12);
    CHECK(world.port.asked_for("delete 11"));
    CHECK(world.port.asked_for("link_open"));
    world.port.take();
    world.link_comes_up();
    CHECK(world.port.take() == Asked{"adopt 12"});
}

TEST_CASE("a restarted daemon rebinds regions whose session died meanwhile", "[recovery]")
{
    World world;
    world.port.kernel_sessions = {11};
    world.port.attached["r"] = 100;
    world.keeper().adopt({{11, "gpu1", SMCFS_SESSION_DEAD}});
    world.binder.adopt({{100, "gpu1", "r", SMCFS_REGION_DEGRADED, 0, "", 7, 11}});
    world.kernel_says(11, SMCFS_SESSION_DEAD);
    world.link_comes_up();
    world.keeper().on_closed(11, {});
    world.offer(1);
    world.kernel_says(1, SMCFS_SESSION_LIVE);
    world.port.take();
    world.granted(1, "r");
    CHECK(world.port.take() == Asked{"attach 1 r"});
}

TEST_CASE("events that were lost are made up for by what the kernel holds", "[recovery]")
{
    World world;
    world.bind_first();
    world.port.time += Milliseconds(10000);
    world.keeper().resync({});
    CHECK(world.port.asked_for("delete 1"));
}

TEST_CASE("when the module goes everything of the client side goes with it", "[recovery]")
{
    World world;
    world.bind_first();
    world.port.kernel_sessions.clear();
    world.binder.kernel_gone();
    CHECK_FALSE(world.binder.has_regions());
    CHECK(world.port.take() == Asked{"close 1"});
    world.keeper().on_closed(1, {});
    CHECK(world.keeper().phase() == SessionPhase::idle);
}

TEST_CASE("what waits to try again does so at once when the configuration has changed",
          "[recovery]")
{
    World world;
    world.bind_first();
    world.link_is_lost();
    world.kernel_says(1, SMCFS_SESSION_DEAD, EIO);
    REQUIRE(world.keeper().phase() == SessionPhase::waiting);
    REQUIRE(world.port.timers.at(Timer::session) > Milliseconds(0));
    world.binder.set_times({});
    CHECK(world.port.timers.at(Timer::session) == Milliseconds(0));
}
