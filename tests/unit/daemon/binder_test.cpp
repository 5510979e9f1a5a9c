// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
#include "binder.hpp"

#include <catch2/catch.hpp>

#include "daemon/client/fake_port.hpp"

using namespace smc;
using test::Asked;
using test::World;
using Timer = NodePort::Timer;

TEST_CASE("a name is bound once, whoever waits for it", "[binder]")
{
    World world;
    std::vector<RegionId> answers;
    const auto waiter = [&](const Result<RegionId>& region) { answers.push_back(*region); };
    world.binder.bind_for_kernel("r");
    world.binder.bind_for_kernel("r");
    world.binder.bind_for("r", waiter);
    world.binder.bind_for("r", waiter);
    world.link_comes_up();
    world.offer(1);
    world.port.take();
    world.kernel_says(1, SMCFS_SESSION_LIVE);
    CHECK(world.port.take() == Asked{"grant 1 r"});
    world.granted(1, "r");
    CHECK(world.port.take() == Asked{"attach 1 r"});
    CHECK(answers == std::vector<RegionId>{100, 100});
    world.binder.bind_for("r", waiter);
    CHECK(answers.size() == 3);
    CHECK(world.port.take().empty());
}

TEST_CASE("a name that the target does not grant gets the target's errno", "[binder]")
{
    for (const int code : {ENOENT, EISDIR, EACCES}) {
        World world;
        world.bind_first();
        world.binder.bind_for_kernel("s");
        CHECK(world.port.take() == Asked{"grant 1 s"});
        world.binder.on_grant(1, "s", fail(code, "no"));
        CHECK(world.port.take() == Asked{fmt::format("bind_fail s {}", code)});
    }
}

TEST_CASE("a name whose target does not answer fails at its deadline", "[binder]")
{
    World world;
    world.binder.bind_for_kernel("r");
    CHECK(world.port.timers.at(Timer::bind) == Milliseconds(10000));
    world.port.time += Milliseconds(10000);
    world.port.take();
    world.binder.on_bind_timer();
    CHECK(world.port.take() == Asked{fmt::format("bind_fail r {}", ETIMEDOUT)});
    CHECK_FALSE(world.binder.has_regions());
}

TEST_CASE("what an unreachable node was told is remembered for the kernel, not for people",
          "[binder]")
{
    World world;
    world.binder.bind_for_kernel("r");
    world.keeper().on_link_failed({ECONNREFUSED, "refused"});
    world.port.take();
    world.binder.bind_for_kernel("other");
    CHECK(world.port.take() == Asked{fmt::format("bind_fail other {}", ECONNREFUSED)});
    world.binder.bind_for("r", [](const Result<RegionId>&) {});
    CHECK(world.port.take() == Asked{"link_open"});
    world.keeper().on_link_failed({ECONNREFUSED, "refused"});
    world.port.time += Binder::kFailureKept;
    world.port.take();
    world.binder.bind_for_kernel("r");
    CHECK(world.port.take() == Asked{"link_open"});
}

TEST_CASE("what failed under a module that is gone is not told to the next one", "[binder]")
{
    World world;
    world.binder.bind_for_kernel("r");
    world.keeper().on_link_failed({ECONNREFUSED, "refused"});
    world.binder.kernel_gone();
    world.port.take();
    world.binder.bind_for_kernel("r");
    CHECK(world.port.take() == Asked{"link_open"});
}

TEST_CASE("a region of the same memory is bound to the new session", "[binder]")
{
    World world;
    world.bind_first();
    world.port.time += Milliseconds(10000);
    world.kernel_says(1, SMCFS_SESSION_DEAD, EIO);
    world.kernel_says(1, SMCFS_SESSION_DEAD);
    world.keeper().on_closed(1, {});
    world.offer(2);
    world.port.take();
    world.kernel_says(2, SMCFS_SESSION_LIVE);
    CHECK(world.port.take() == Asked{"grant 2 r"});

    SECTION("same generation: attached again")
    {
        world.granted(2, "r");
        CHECK(world.port.take() == Asked{"attach 2 r"});
    }
    SECTION("other generation: revoked, never re-pointed")
    {
        world.granted(2, "r", 8);
        CHECK(world.port.take() == Asked{"revoke 100"});
    }
    SECTION("not exported any more: revoked")
    {
        world.binder.on_grant(2, "r", fail(ENOENT, "no such export"));
        CHECK(world.port.take() == Asked{"revoke 100"});
    }
    SECTION("a passing error: tried again later, nothing is lost")
    {
        world.binder.on_grant(2, "r", fail(ENOMEM, "no memory"));
        CHECK(world.port.take().empty());
        REQUIRE(world.port.timers.contains(Timer::rebind));
        world.binder.on_rebind_timer();
        CHECK(world.port.take() == Asked{"grant 2 r"});
    }
}

TEST_CASE("the writing right is asked for, answered and given back", "[binder]")
{
    World world;
    world.bind_first();
    world.binder.on_writer_wanted(100, "r");
    CHECK(world.port.take() == Asked{"acquire 1 r"});
    SECTION("granted")
    {
        world.binder.on_writer(1, "r", {});
        CHECK(world.port.take() == Asked{"writer_result 100 0"});
        CHECK(world.binder.written_names() == std::vector<std::string>{"r"});
        world.binder.on_writer_unwanted(100, "r");
        CHECK(world.port.take() == Asked{"writer_release 1 r"});
        CHECK(world.binder.written_names().empty());
    }
    SECTION("held by another node")
    {
        world.binder.on_writer(1, "r", fail(EBUSY, "held by node2"));
        CHECK(world.port.take() == Asked{fmt::format("writer_result 100 {}", EBUSY)});
        CHECK(world.binder.written_names().empty());
    }
}

TEST_CASE("pages are sent again only when the writing right is back", "[binder]")
{
    World world;
    world.bind_first();
    world.binder.on_writer_wanted(100, "r");
    world.binder.on_writer(1, "r", {});
    world.port.time += Milliseconds(10000);
    world.kernel_says(1, SMCFS_SESSION_DEAD, EIO);
    world.kernel_says(1, SMCFS_SESSION_DEAD);
    world.keeper().on_closed(1, {});
    world.offer(2);
    world.kernel_says(2, SMCFS_SESSION_LIVE);
    world.port.take();
    world.granted(2, "r");
    CHECK(world.port.take() == Asked{"acquire 2 r"});
    SECTION("it is")
    {
        world.binder.on_writer(2, "r", {});
        CHECK(world.port.take() == Asked{"attach 2 r"});
    }
    SECTION("another node got it meanwhile: the region stays as it is and asks again")
    {
        world.binder.on_writer(2, "r", fail(EBUSY, "held by node2"));
        CHECK(world.port.take().empty());
        REQUIRE(world.port.timers.contains(Timer::rebind));
        world.binder.on_rebind_timer();
        CHECK(world.port.take() == Asked{"grant 2 r"});
    }
}

TEST_CASE("a revocation reaches the kernel for the memory that it names", "[binder]")
{
    World world;
    world.bind_first();
    world.binder.on_revoked(1, "r", 8); // an older generation
    world.binder.on_revoked(9, "r", 7); // another session
    world.binder.on_revoked(1, "s", 7); // another region
    CHECK(world.port.take().empty());
    world.binder.on_revoked(1, "r", 7);
    CHECK(world.port.take() == Asked{"revoke 100"});
    world.region_fails("r");
    CHECK(world.port.take() == Asked{"release 1 r"});
}

TEST_CASE("a name is granted again only after its release was answered", "[binder]")
{
    World world;
    world.bind_first();
    world.region_fails("r");
    world.port.take();
    world.binder.bind_for_kernel("r");
    CHECK(world.port.take().empty());
    world.binder.on_released("r");
    CHECK(world.port.take() == Asked{"grant 1 r"});
}

TEST_CASE("what could not be released without a control connection is released later", "[binder]")
{
    World world;
    world.bind_first();
    world.binder.bind_for_kernel("s");
    world.granted(1, "s");
    world.link_is_lost();
    world.port.take();
    world.region_fails("r");
    CHECK(world.port.take().empty());
    world.link_comes_up();
    world.keeper().on_adopted(1, {});
    CHECK(world.port.take() == Asked{"adopt 1", "release 1 r"});
}

TEST_CASE("a control connection that breaks during a grant does not end the session", "[binder]")
{
    World world;
    world.bind_first();
    world.binder.bind_for_kernel("s");
    world.port.take();
    world.port.link = false;
    world.binder.on_grant(1, "s", fail(ECONNRESET, "broken"));
    world.keeper().on_link_lost({ECONNRESET, "broken"});
    CHECK(world.keeper().live());
    world.link_comes_up();
    world.keeper().on_adopted(1, {});
    CHECK(world.port.take() == Asked{"adopt 1", "grant 1 s"});
}

TEST_CASE("a target that lost the session gets a new one", "[binder]")
{
    World world;
    world.bind_first();
    world.port.time += Milliseconds(10000);
    world.binder.bind_for_kernel("s");
    world.port.take();
    world.binder.on_grant(1, "s", fail(ENOTCONN, "its queue pairs are gone"));
    CHECK(world.port.take() == Asked{"delete 1"});
    world.kernel_says(1, SMCFS_SESSION_DEAD);
    world.keeper().on_closed(1, {});
    world.offer(2);
    world.port.take();
    world.kernel_says(2, SMCFS_SESSION_LIVE);
    CHECK(world.port.take() == Asked{"grant 2 r", "grant 2 s"});
}

TEST_CASE("more first uses than are allowed at a time are refused", "[binder]")
{
    World world;
    for (std::size_t i = 0; i < Binder::kPendingMax; ++i)
        world.binder.bind_for_kernel(fmt::format("r{}", i));
    world.port.take();
    world.binder.bind_for_kernel("one-more");
    CHECK(world.port.take() == Asked{fmt::format("bind_fail one-more {}", EBUSY)});
}
