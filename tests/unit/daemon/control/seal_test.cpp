// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
#include "control/seal.hpp"

#include <catch2/catch.hpp>

#include "daemon/control/munged.hpp"

using smc::make_seal;
using smc::SealSide;

TEST_CASE("munge seals messages for one reader, one connection, one direction, once", "[seal]")
{
    const smc::test::Munged munged;
    const auto ready = munged.wait();
    INFO((ready ? "" : ready.error().what));
    REQUIRE(ready);
    const smc::ControlConfig config{.munge_socket = munged.socket()};
    auto client = make_seal(config, SealSide::initiator);
    auto server = make_seal(config, SealSide::acceptor);

    SECTION("messages arrive, sealed, and cannot be replayed")
    {
        const auto one = *client->wrap("one");
        CHECK(one.starts_with("MUNGE:"));
        CHECK(*server->unwrap(one) == "one");
        CHECK(server->unwrap(one).error().code == EACCES);
        CHECK(*client->unwrap(*server->wrap("two")) == "two");
    }
    SECTION("a message that overtakes another is refused")
    {
        const auto held_back = *client->wrap("one");
        CHECK(server->unwrap(*client->wrap("two")).error().code == EACCES);
        CHECK(*server->unwrap(held_back) == "one");
    }
    SECTION("a message of another connection is refused")
    {
        auto other = make_seal(config, SealSide::initiator);
        REQUIRE(server->unwrap(*client->wrap("hello")));
        CHECK(server->unwrap(*other->wrap("moved")).error().code == EACCES);
    }
    SECTION("a message that comes back is refused")
    {
        CHECK(client->unwrap(*client->wrap("reflected")).error().code == EACCES);
    }
    SECTION("a message sealed with another key is refused, and the remedy is named")
    {
        const smc::test::Munged stranger;
        REQUIRE(stranger.wait());
        auto other = make_seal({.munge_socket = stranger.socket()}, SealSide::initiator);
        const auto result = server->unwrap(*other->wrap("hello"));
        REQUIRE_FALSE(result);
        CHECK(result.error().code == EACCES);
        CHECK_THAT(result.error().what, Catch::Contains("munge.key"));
    }
    SECTION("a message that was not sealed is refused")
    {
        CHECK(server->unwrap("{\"type\":\"peer.hello\"}").error().code == EACCES);
        CHECK(server->unwrap("MUNGE:AAAA:").error().code == EACCES);
    }
}

TEST_CASE("without munged the error says how to start it", "[seal]")
{
    const auto result =
        make_seal({.munge_socket = "/nonexistent/socket"}, SealSide::initiator)->wrap("x");
    REQUIRE_FALSE(result);
    CHECK_THAT(result.error().what, Catch::Contains("systemctl start munge"));
}

TEST_CASE("a node without munge says so to one with", "[seal]")
{
    const auto result =
        make_seal({.auth = smc::Auth::none}, SealSide::acceptor)->unwrap("MUNGE:AAAA:");
    CHECK(result.error().code == EACCES);
}
