// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
#include "control/channel.hpp"

#include <sys/socket.h>

#include <catch2/catch.hpp>

#include "daemon/control/munged.hpp"

using smc::Json;

namespace {

// Two channels that talk to each other over a socket pair, or one and a raw socket.
struct Pair {
    std::unique_ptr<smc::EventLoop> loop = *smc::EventLoop::create();
    smc::Fd ends[2];
    std::shared_ptr<smc::Channel> client;
    std::shared_ptr<smc::Channel> server;
    std::optional<smc::Error> client_end;
    std::optional<smc::Error> server_end;
    std::vector<smc::Channel::Request> held;
    std::vector<std::string> notices;

    Pair()
    {
        int fds[2] = {-1, -1};
        REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds) == 0);
        ends[0] = smc::Fd(fds[0]);
        ends[1] = smc::Fd(fds[1]);
    }

    void open_server(const smc::ControlConfig& config = {.auth = smc::Auth::none})
    {
        server = *smc::Channel::create(
            *loop, std::move(ends[1]), smc::make_seal(config, smc::SealSide::acceptor),
            {[this](smc::Channel::Request request) {
                 if (request.type == "echo")
                     request.responder.ok(request.body);
                 else if (request.type == "hold")
                     held.push_back(std::move(request));
                 else if (request.type == "drop")
                     return;
                 else if (request.type == "long")
                     request.responder.ok({{"text", std::string(70000, 'x')}});
                 else
                     request.responder.error({EOPNOTSUPP, "unknown"});
             },
             {},
             [this](const smc::Error& error) {
                 server_end = error;
                 stop();
             }});
    }

    void open_client(const smc::ControlConfig& config = {.auth = smc::Auth::none})
    {
        client = *smc::Channel::create(*loop, std::move(ends[0]),
                                       smc::make_seal(config, smc::SealSide::initiator),
                                       {{},
                                        [this](const std::string& type, const Json&) {
                                            notices.push_back(type);
                                            stop();
                                        },
                                        [this](const smc::Error& error) {
                                            client_end = error;
                                            stop();
                                        }});
    }

    bool steps = false; // the test asks for each
    void stop()
    {
        if (!steps)
            loop->exit(0);
    }
    void run() { REQUIRE(loop->run()); }
};

} // namespace

TEST_CASE("a call gets the answer of its own request", "[channel]")
{
    Pair pair;
    pair.open_server();
    pair.open_client();
    int answers = 0;
    for (int i = 0; i < 200; ++i)
        pair.client->call("echo", {{"n", i}}, smc::Milliseconds(5000),
                          [&, i](const smc::Result<Json>& result) {
                              REQUIRE(result);
                              CHECK((*result)["n"] == i);
                              if (++answers == 200)
                                  pair.stop();
                          });
    pair.run();
    CHECK(answers == 200);
}

TEST_CASE("errors and dropped requests are answered", "[channel]")
{
    Pair pair;
    pair.open_server();
    pair.open_client();
    std::vector<int> codes;
    for (const auto* type : {"nonsense", "drop"})
        pair.client->call(type, {}, smc::Milliseconds(5000), [&](const smc::Result<Json>& result) {
            codes.push_back(result ? 0 : result.error().code);
            if (codes.size() == 2)
                pair.stop();
        });
    pair.run();
    CHECK(codes == std::vector{EOPNOTSUPP, EIO});
}

TEST_CASE("a call that is not answered times out and the channel lives on", "[channel]")
{
    Pair pair;
    pair.open_server();
    pair.open_client();
    smc::Result<Json> answer;
    pair.client->call("hold", {}, smc::Milliseconds(20), [&](smc::Result<Json> result) {
        answer = std::move(result);
        pair.held.clear(); // a late answer is dropped
        pair.client->call("echo", {}, smc::Milliseconds(5000),
                          [&](const smc::Result<Json>& second) {
                              CHECK(second);
                              pair.stop();
                          });
    });
    pair.run();
    REQUIRE_FALSE(answer);
    CHECK(answer.error().code == ETIMEDOUT);
}

TEST_CASE("when the other side goes, calls fail first and the end is reported once", "[channel]")
{
    Pair pair;
    pair.open_server();
    pair.open_client();
    std::vector<std::string> order;
    pair.client->call("hold", {}, smc::Milliseconds(5000), [&](const smc::Result<Json>& result) {
        CHECK(result.error().code == ECONNRESET);
        CHECK_FALSE(pair.client_end);
        order.emplace_back("call");
    });
    pair.loop->defer([&] { pair.server.reset(); });
    pair.run();
    CHECK(pair.client_end);
    CHECK(order.size() == 1);
}

TEST_CASE("a channel may be released from within its own callbacks", "[channel]")
{
    Pair pair;
    pair.open_server();
    pair.open_client();
    pair.client->call("echo", {}, smc::Milliseconds(5000), [&](const smc::Result<Json>&) {
        pair.client.reset();
        pair.server.reset();
        pair.stop();
    });
    pair.run();
    CHECK_FALSE(pair.client);
}

TEST_CASE("only so many requests are served at a time, the rest wait unread", "[channel]")
{
    Pair pair;
    pair.open_server();
    pair.open_client();
    int answers = 0;
    for (int i = 0; i < 500; ++i)
        pair.client->call("hold", {}, smc::Milliseconds(5000), [&](const smc::Result<Json>&) {
            if (++answers == 500)
                pair.stop();
        });
    std::size_t most = 0;
    smc::EventLoop::Source release = pair.loop->add_timer(smc::Milliseconds(1), [&] {
        most = std::max(most, pair.held.size());
        auto now = std::move(pair.held);
        pair.held.clear();
        for (auto& request : now)
            request.responder.ok();
        release.rearm(smc::Milliseconds(1));
    });
    pair.run();
    CHECK(answers == 500);
    CHECK(most == smc::Channel::kServingMax);
}

TEST_CASE("a violation is answered with an error notice, then the channel ends", "[channel]")
{
    const std::string deep = "{\"a\":" + std::string(20, '[') + std::string(20, ']') + "}";
    for (const std::string& bad : {std::string("no json"), std::string("{}"), deep}) {
        Pair pair;
        pair.open_server();
        const auto frame = *smc::encode_frame(bad);
        REQUIRE(::write(pair.ends[0].get(), frame.data(), frame.size()) ==
                static_cast<ssize_t>(frame.size()));
        pair.run();
        REQUIRE(pair.server_end);
        CHECK(pair.server_end->code == EPROTO);
        char buffer[4096];
        const auto got = ::read(pair.ends[0].get(), buffer, sizeof buffer);
        REQUIRE(got > 4);
        const auto notice = smc::parse_object(std::string_view(buffer + 4, got - 4));
        REQUIRE(notice);
        CHECK((*notice)["type"] == "error");
        CHECK(::read(pair.ends[0].get(), buffer, sizeof buffer) == 0);
    }
}

TEST_CASE("nodes whose auth differs say so on both sides, with the remedy", "[channel]")
{
    const smc::test::Munged munged;
    REQUIRE(munged.wait());
    const smc::ControlConfig with{.munge_socket = munged.socket()};
    const smc::ControlConfig without{.auth = smc::Auth::none};
    const bool client_has_munge = GENERATE(true, false);
    CAPTURE(client_has_munge);
    Pair pair;
    pair.steps = true;
    pair.open_server(client_has_munge ? without : with);
    pair.open_client(client_has_munge ? with : without);
    std::optional<smc::Error> answer;
    pair.client->call("echo", {}, smc::Milliseconds(5000), [&](const smc::Result<Json>& result) {
        REQUIRE_FALSE(result);
        answer = result.error();
    });
    while (!pair.client_end || !pair.server_end)
        REQUIRE(pair.loop->step());
    const std::string munge_here = "asks for auth = \"none\", this node has \"munge\"";
    const std::string none_here = "asks for auth = \"munge\", this node has \"none\"";
    for (const auto* end : {&pair.client_end, &pair.server_end, &answer}) {
        REQUIRE(*end);
        CHECK((*end)->code == EACCES);
        CHECK_THAT((*end)->what, Catch::Contains("smcfsd.toml to the same on both"));
        const bool has_munge = (end == &pair.server_end) != client_has_munge;
        CHECK_THAT((*end)->what, Catch::Contains(has_munge ? munge_here : none_here));
    }
}

TEST_CASE("an answer that is too long is an error, and the channel lives on", "[channel]")
{
    const smc::test::Munged munged;
    REQUIRE(munged.wait());
    const smc::ControlConfig sealed{.munge_socket = munged.socket()};
    const smc::ControlConfig plain{.auth = smc::Auth::none};
    const bool is_sealed = GENERATE(true, false);
    CAPTURE(is_sealed);
    Pair pair;
    pair.open_server(is_sealed ? sealed : plain);
    pair.open_client(is_sealed ? sealed : plain);
    std::vector<int> codes;
    for (const auto* type : {"long", "echo"})
        pair.client->call(type, {}, smc::Milliseconds(5000), [&](const smc::Result<Json>& result) {
            codes.push_back(result ? 0 : result.error().code);
        });
    while (codes.size() < 2)
        REQUIRE(pair.loop->step());
    CHECK(codes == std::vector{EMSGSIZE, 0});
    CHECK_FALSE(pair.client_end);
}

TEST_CASE("a reader that never reads cannot make the channel grow without bound", "[channel]")
{
    Pair pair;
    pair.open_server();
    const Json big{{"text", std::string(60000, 'x')}};
    for (int i = 0; i < 200 && !pair.server_end; ++i)
        pair.server->notify("event", big);
    pair.run();
    REQUIRE(pair.server_end);
    CHECK(pair.server_end->code == ENOBUFS);
}

namespace {

void send_with_fds(int socket, const std::string& frame, int count)
{
    iovec vector{const_cast<char*>(frame.data()), frame.size()};
    alignas(cmsghdr) char control[CMSG_SPACE(16 * sizeof(int))] = {};
    msghdr message{};
    message.msg_iov = &vector;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(count * sizeof(int));
    auto* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(count * sizeof(int));
    const std::vector<int> fds(count, STDERR_FILENO);
    std::memcpy(CMSG_DATA(header), fds.data(), count * sizeof(int));
    REQUIRE(::sendmsg(socket, &message, 0) > 0);
}

} // namespace

TEST_CASE("a descriptor arrives with its request", "[channel]")
{
    Pair pair;
    pair.open_server();
    send_with_fds(pair.ends[0].get(), *smc::encode_frame(R"({"id":1,"type":"hold"})"), 1);
    smc::EventLoop::Source poll = pair.loop->add_timer(smc::Milliseconds(1), [&] {
        if (!pair.held.empty())
            pair.stop();
        poll.rearm(smc::Milliseconds(1));
    });
    pair.run();
    CHECK(pair.server->take_fd());
    CHECK_FALSE(pair.server->take_fd());
}

TEST_CASE("more descriptors than a connection may hold end it", "[channel]")
{
    Pair pair;
    pair.open_server();
    send_with_fds(pair.ends[0].get(), *smc::encode_frame(R"({"id":2,"type":"hold"})"), 5);
    pair.run();
    REQUIRE(pair.server_end);
    CHECK(pair.server_end->code == EPROTO);
}
