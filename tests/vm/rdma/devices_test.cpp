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

// DELETE_DEVICE starts to delete the device. Soft-RoCE's ends only when this process has closed it,
// which librdmacm does when the process ends.
TEST_CASE("a device that goes takes its sessions along", "[.removal]")
{
    const char* remove = std::getenv("DELETE_DEVICE");
    REQUIRE(remove != nullptr);
    Node node;
    node.export_host("r", kLength);
    auto client = connect(node, 1);
    REQUIRE(node.grant(1, "r"));
    REQUIRE(std::system(remove) == 0);
    CHECK(node.saw_lost(1));
    CHECK(node.unexport("r"));
    const auto refused = node.call([](Target& t) { return t.session_open(2, "client"); });
    CHECK(refused.error().code == ENODEV);
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
