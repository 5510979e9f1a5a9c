// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// Devices that are excluded, absent, or go away. These run alone, since they change the machine.
#include <cstdio>
#include <cstdlib>

#include <catch2/catch.hpp>

#include "node.hpp"

namespace smc::test {
namespace {

constexpr std::uint64_t kLength = 8192;

} // namespace

TEST_CASE("devices that the configuration excludes are neither offered nor served", "[devices]")
{
    TargetOptions options;
    options.devices = {"nosuch0"};
    Node node(options);
    const auto refused = node.call([](Target& target) { return target.session_open(1, "client"); });
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == ENODEV);
    const auto ports = node.call([](Target& target) { return target.rdma_ports(); });
    REQUIRE_FALSE(ports.empty());
    CHECK(ports.front().windows);

    // A client that knows the address anyhow.
    TargetOptions forced = options;
    forced.port = 7461;
    forced.addresses = {ports.front().addresses.front()};
    Node other(forced);
    const auto offer = other.call([](Target& target) { return target.session_open(1, "client"); });
    REQUIRE(offer);
    CHECK(offer->addresses == forced.addresses);
    const auto result = Initiator::connect(offer->addresses.front(), offer->port,
                                           {QpRole::read, 1, offer->token_read});
    REQUIRE_FALSE(result);
    CHECK(result.error().code == ECONNREFUSED);
}

TEST_CASE("a port that is taken is named", "[devices]")
{
    Node node;
    Node second; // lives, without RDMA
    const auto refused = second.call([](Target& t) { return t.session_open(1, "client"); });
    REQUIRE_FALSE(refused);
    CHECK(refused.error().what.find("7451") != std::string::npos);
}

// With DELETE_DEVICE and ADD_DEVICE, commands that do so.
TEST_CASE("a device that goes takes its sessions along, and serves again when it is back",
          "[.removal]")
{
    const char* remove = std::getenv("DELETE_DEVICE");
    const char* add = std::getenv("ADD_DEVICE");
    REQUIRE(remove != nullptr);
    REQUIRE(add != nullptr);
    Node node;
    node.export_host("r", kLength);
    {
        auto client = connect(node, 1);
        REQUIRE(node.grant(1, "r"));
        auto deleting = std::async(std::launch::async, [&] { return std::system(remove); });
        CHECK(node.saw_lost(1));
        client = {}; // the client's side of the device is in this process too
        REQUIRE(deleting.wait_for(kPatience) == std::future_status::ready);
        CHECK(deleting.get() == 0);
    }
    CHECK(node.call([](Target& t) { return t.session_open(2, "client"); }).error().code == ENODEV);
    REQUIRE(std::system(add) == 0);
    auto client = connect(node, 3);
    const auto extent = node.grant(3, "r").value().extents.front();
    CHECK(client.bulk->write(extent.addr, extent.rkey_bulk, pattern(8, 1)));
}

// Holds everything that a target can hold until it is killed.
TEST_CASE("hold sessions and keys for ever", "[.hold]")
{
    TargetOptions options;
    options.windows = std::getenv("WITHOUT_WINDOWS") == nullptr;
    Node node(options);
    node.export_host("r", kLength);
    auto client = connect(node, 1);
    REQUIRE(node.grant(1, "r"));
    std::puts("holding");
    std::fflush(stdout);
    std::promise<void>().get_future().wait();
}

} // namespace smc::test
