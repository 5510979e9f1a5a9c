// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// What a change of the configuration does to the nodes, without the module.
#include "client/nodes.hpp"

#include <catch2/catch.hpp>

using namespace smc;

namespace {

constexpr std::uint16_t kNobody = 1; // refuses

struct World {
    std::unique_ptr<EventLoop> loop = EventLoop::create().value();
    Config config;
    std::unique_ptr<Nodes> nodes;

    World()
    {
        config.node = "here";
        config.control.auth = Auth::none;
        add("there", kNobody);
        nodes = Nodes::create(*loop, config, [](const Json&) {}).value();
    }
    void add(const std::string& name, std::uint16_t port)
    {
        auto& peer = config.peers[name];
        peer.name = name;
        peer.address = "127.0.0.1";
        peer.port = port;
    }
    // errno of an attempt to reach the node.
    int reach(const std::string& name)
    {
        std::optional<int> code;
        nodes->get(name)->with_link(Node::Memory::used, [&](const Result<void>& result) {
            code = result ? 0 : result.error().code;
        });
        while (!code)
            REQUIRE(loop->step());
        return *code;
    }
};

} // namespace

TEST_CASE("a node that leaves the configuration is not contacted any more", "[nodes]")
{
    World world;
    REQUIRE(world.nodes->get("there") != nullptr);
    CHECK(world.reach("there") == ECONNREFUSED);
    world.config.peers.clear();
    world.nodes->apply();
    CHECK(world.nodes->get("there") == nullptr);
    CHECK(world.nodes->peers_json().empty());
}

TEST_CASE("a node that leaves while somebody waits for it goes when that has ended", "[nodes]")
{
    World world;
    std::optional<Result<void>> answer;
    world.nodes->get("there")->with_link(Node::Memory::used,
                                         [&](const Result<void>& result) { answer = result; });
    world.config.peers.clear();
    world.nodes->apply();
    CHECK(world.nodes->peers_json().size() == 1);
    while (!answer)
        REQUIRE(world.loop->step());
    CHECK_FALSE(*answer);
    CHECK(world.nodes->get("there") == nullptr);
    while (!world.nodes->peers_json().empty())
        REQUIRE(world.loop->step());
}

TEST_CASE("another address of a node counts from the reload on, whatever failed before", "[nodes]")
{
    World world;
    CHECK(world.reach("there") == ECONNREFUSED);
    bool asked = false;
    std::unique_ptr<TcpListener> listener;
    std::uint16_t port = 20000;
    while (!listener && port < 30000)
        if (auto made = TcpListener::create(*world.loop, {"127.0.0.1"}, ++port,
                                            [&](const Fd&, const auto&) { asked = true; }))
            listener = std::move(*made);
    REQUIRE(listener);
    world.add("there", port);
    world.nodes->apply();
    CHECK(world.nodes->peers_json().at(0)["address"] == "127.0.0.1");
    CHECK(world.reach("there") == ECONNRESET); // it hangs up, but it is there
    CHECK(asked);
}
