// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
#include "client/link.hpp"

#include <netinet/in.h>
#include <sys/socket.h>

#include <catch2/catch.hpp>

using namespace smc;

namespace {

constexpr Milliseconds kConnectTimeout{5000};

// A node that says hello, or hangs up instead.
class Remote {
public:
    Remote(EventLoop& loop, bool friendly) : loop_(loop), friendly_(friendly)
    {
        // A port that is free: bound for a moment.
        Fd probe(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
        sockaddr_in address{};
        socklen_t length = sizeof address;
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        auto* generic = reinterpret_cast<sockaddr*>(&address);
        REQUIRE(::bind(probe.get(), generic, length) == 0);
        REQUIRE(::getsockname(probe.get(), generic, &length) == 0);
        port = ntohs(address.sin_port);
        probe.reset();
        listener_ = TcpListener::create(loop, {"127.0.0.1"}, port, [this](Fd socket, const auto&) {
                        accept(std::move(socket));
                    }).value();
    }

    std::uint16_t port = 0;
    int hellos = 0;
    std::vector<Channel::Responder> held; // of "hold"

private:
    void accept(Fd socket)
    {
        channels_.push_back(
            Channel::create(
                loop_, std::move(socket), make_seal({.auth = Auth::none}, SealSide::acceptor),
                {[this, at = channels_.size()](const auto& request) { serve(at, request); },
                 {},
                 [](const Error&) {}})
                .value());
    }
    void serve(std::size_t at, const Channel::Request& request)
    {
        if (request.type == "peer.hello") {
            ++hellos;
            if (friendly_)
                request.responder.ok({{"node", "remote"}});
            else
                channels_[at]->abort({EPROTO, "unfriendly"});
        } else {
            held.push_back(request.responder);
        }
    }

    EventLoop& loop_;
    bool friendly_;
    std::unique_ptr<TcpListener> listener_;
    std::vector<std::shared_ptr<Channel>> channels_;
};

struct World final : LinkEvents {
    std::unique_ptr<EventLoop> loop = EventLoop::create().value();
    Resolver resolver{*loop};
    ControlConfig control{.auth = Auth::none};
    std::vector<std::string> events;

    Link::Context context() { return {*loop, resolver, control, "here", kConnectTimeout}; }
    static PeerConfig peer(const Remote& remote)
    {
        PeerConfig config;
        config.name = "there";
        config.address = "127.0.0.1";
        config.port = remote.port;
        return config;
    }
    void on_link_up() override { events.emplace_back("up"); }
    void on_link_failed(const Error& error) override
    {
        events.emplace_back("failed");
        last = error;
    }
    void on_link_lost(const Error& error) override
    {
        events.emplace_back("lost");
        last = error;
    }
    void on_link_notice(const std::string&, const Json&) override {}

    void wait(std::size_t count)
    {
        while (events.size() < count)
            REQUIRE(loop->step());
    }
    // Until all that is on its way has come, which what is asked next may not overtake.
    void settle(int steps)
    {
        for (int i = 0; i < steps; ++i) {
            bool passed = false;
            loop->post([&] { passed = true; });
            while (!passed)
                REQUIRE(loop->step());
        }
    }
    Error last;
};

} // namespace

TEST_CASE("an end during hello is one failure, not a lost connection on top", "[link]")
{
    World world;
    Remote remote(*world.loop, false);
    Link link(world.context(), World::peer(remote), world);
    link.open();
    world.wait(1);
    world.settle(20);
    CHECK(world.events == std::vector<std::string>{"failed"});
    CHECK_THAT(world.last.what, Catch::Contains("there (127.0.0.1 port"));
    CHECK(link.state() == Link::State::failed);
}

TEST_CASE("another address of the node is used by the next connection", "[link]")
{
    World world;
    Remote before(*world.loop, true);
    Remote after(*world.loop, true);
    Link link(world.context(), World::peer(before), world);
    link.open();
    world.wait(1);
    REQUIRE(link.up());
    SECTION("at once, when the connection is of no use to anybody")
    {
        link.configure(World::peer(after), kConnectTimeout);
        CHECK(link.state() == Link::State::idle);
    }
    SECTION("when what waits for an answer has got it")
    {
        std::optional<Result<Json>> answer;
        link.call("hold", Json::object(), kConnectTimeout,
                  [&](const Result<Json>& result) { answer = result; });
        link.configure(World::peer(after), kConnectTimeout);
        CHECK(link.up());
        while (before.held.empty())
            REQUIRE(world.loop->step());
        before.held.front().ok();
        while (!answer || link.state() != Link::State::idle)
            REQUIRE(world.loop->step());
        CHECK(*answer);
    }
    SECTION("when a session that needs it does not any more")
    {
        link.set_wanted(true);
        link.configure(World::peer(after), kConnectTimeout);
        CHECK(link.up());
        link.set_wanted(false);
        while (link.state() != Link::State::idle)
            REQUIRE(world.loop->step());
    }
    link.open();
    world.wait(2);
    CHECK(before.hellos == 1);
    CHECK(after.hellos == 1);
}

TEST_CASE("an attempt under way turns to the new address", "[link]")
{
    World world;
    Remote before(*world.loop, true);
    Remote after(*world.loop, true);
    Link link(world.context(), World::peer(before), world);
    link.open();
    link.configure(World::peer(after), kConnectTimeout);
    world.wait(1);
    CHECK(world.events.front() == "up");
    CHECK(after.hellos == 1);
    CHECK(before.hellos == 0);
}
