// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
#include "daemon_client.hpp"

#include <catch2/catch.hpp>

#include "fake_daemon.hpp"

using smc::client::DaemonClient;
using smc::client::Json;
using smc::test::FakeConnection;
using smc::test::FakeDaemon;
using smc::test::frame;
using std::chrono::milliseconds;

namespace {

DaemonClient connected(const FakeDaemon& daemon)
{
    auto client = DaemonClient::connect(daemon.path());
    REQUIRE(client);
    return std::move(*client);
}

// What the client makes of these bytes as an answer.
smc::Result<Json> request_answered_by(const std::string& bytes,
                                      milliseconds timeout = milliseconds(5000))
{
    FakeDaemon daemon([&](FakeConnection& peer) {
        peer.receive();
        peer.send_bytes(bytes);
        peer.receive(); // until the client hangs up
    });
    DaemonClient client = connected(daemon);
    return client.request("status", Json::object(), timeout);
}

} // namespace

TEST_CASE("a request carries type, id and its arguments, and returns the answer", "[client]")
{
    Json seen;
    FakeDaemon daemon([&](FakeConnection& peer) {
        seen = peer.receive();
        peer.answer(seen, {{"region", 7}});
    });
    DaemonClient client = connected(daemon);
    auto answer = client.request("attach", {{"node", "gpu0"}}, milliseconds(5000));
    REQUIRE(answer);
    CHECK((*answer)["region"] == 7);
    CHECK(seen["type"] == "attach");
    CHECK(seen["node"] == "gpu0");
    CHECK(seen["id"].is_number_unsigned());
}

TEST_CASE("a refusal keeps the daemon's errno and sentence", "[client]")
{
    FakeDaemon daemon([](FakeConnection& peer) {
        Json request = peer.receive();
        peer.refuse(request, EHOSTUNREACH, "gpu0 cannot be reached: see smcctl peers");
    });
    auto answer = connected(daemon).request("attach", {}, milliseconds(5000));
    REQUIRE_FALSE(answer);
    CHECK(answer.error().code == EHOSTUNREACH);
    CHECK(answer.error().what == "gpu0 cannot be reached: see smcctl peers");
}

TEST_CASE("notices and answers to other requests are passed over", "[client]")
{
    FakeDaemon daemon([](FakeConnection& peer) {
        Json request = peer.receive();
        peer.send({{"type", "event"}, {"kind", "peer"}});
        peer.send({{"id", request["id"].get<uint64_t>() + 100}, {"ok", true}});
        peer.answer(request, {{"mine", true}});
    });
    auto answer = connected(daemon).request("status", {}, milliseconds(5000));
    REQUIRE(answer);
    CHECK((*answer)["mine"] == true);
}

TEST_CASE("an answer that arrives byte by byte is put together", "[client]")
{
    FakeDaemon daemon([](FakeConnection& peer) {
        Json request = peer.receive();
        Json answer = {{"id", request["id"]}, {"ok", true}};
        for (char c : frame(answer.dump()))
            peer.send_bytes({c});
    });
    CHECK(connected(daemon).request("status", {}, milliseconds(5000)));
}

TEST_CASE("no daemon is ENOTCONN with the way to start it", "[client]")
{
    auto client = DaemonClient::connect("/tmp/smc-test-nobody-here.sock");
    REQUIRE_FALSE(client);
    CHECK(client.error().code == ENOTCONN);
    CHECK(client.error().what.find("systemctl start smcfsd") != std::string::npos);
}

TEST_CASE("a socket that nobody listens on any more is ENOTCONN", "[client]")
{
    char directory[] = "/tmp/smc-test-XXXXXX";
    REQUIRE(mkdtemp(directory) != nullptr);
    const std::string path = std::string(directory) + "/left-behind.sock";
    sockaddr_un addr{};
    addr.sun_family = AF_UNIX;
    path.copy(addr.sun_path, sizeof(addr.sun_path) - 1);
    smc::Fd left(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    REQUIRE(bind(left.get(), reinterpret_cast<sockaddr*>(&addr), sizeof(addr)) == 0);
    left.reset();
    auto client = DaemonClient::connect(path);
    std::filesystem::remove_all(directory);
    REQUIRE_FALSE(client);
    CHECK(client.error().code == ENOTCONN);
}

TEST_CASE("a path that is too long for a socket is named", "[client]")
{
    auto client = DaemonClient::connect("/" + std::string(200, 'x'));
    REQUIRE_FALSE(client);
    CHECK(client.error().code == EINVAL);
}

TEST_CASE("a daemon that does not answer is given up after the timeout", "[client]")
{
    auto begun = std::chrono::steady_clock::now();
    auto answer = request_answered_by("", milliseconds(100));
    REQUIRE_FALSE(answer);
    CHECK(answer.error().code == ETIMEDOUT);
    CHECK(answer.error().what.find("status") != std::string::npos);
    CHECK(std::chrono::steady_clock::now() - begun >= milliseconds(100));
}

TEST_CASE("half a frame and then nothing is a timeout as well", "[client]")
{
    auto answer = request_answered_by(frame("{\"id\":1}").substr(0, 6), milliseconds(100));
    REQUIRE_FALSE(answer);
    CHECK(answer.error().code == ETIMEDOUT);
}

TEST_CASE("a daemon that hangs up is told from one that is slow", "[client]")
{
    FakeDaemon daemon([](FakeConnection& peer) { peer.receive(); });
    auto answer = connected(daemon).request("status", {}, milliseconds(5000));
    REQUIRE_FALSE(answer);
    CHECK(answer.error().code == ECONNRESET);
}

TEST_CASE("what is no frame of the protocol is EPROTO", "[client]")
{
    for (const std::string& bytes :
         {std::string("HTTP/1.1 400 Bad Request"), std::string(4, '\0'), frame("[1,2]"),
          frame("{\"id\""), frame("{\"id\":1,\"ok\":false}"),
          frame("{\"id\":1,\"ok\":\"yes\",\"errno\":-3}"),
          frame("{\"id\":1,\"ok\":false,\"errno\":99999999}")}) {
        CAPTURE(bytes);
        auto answer = request_answered_by(bytes);
        REQUIRE_FALSE(answer);
        CHECK(answer.error().code == EPROTO);
        CHECK_FALSE(answer.error().what.empty());
    }
}

TEST_CASE("an error frame without id is passed on", "[client]")
{
    auto answer = request_answered_by(frame(R"({"type":"error","error":"the frame is too long"})"));
    REQUIRE_FALSE(answer);
    CHECK(answer.error().code == EPROTO);
    CHECK(answer.error().what.find("the frame is too long") != std::string::npos);
}

TEST_CASE("a request longer than a frame is refused before it is sent", "[client]")
{
    FakeDaemon daemon([](FakeConnection& peer) { peer.receive(); });
    auto answer = connected(daemon).request("export", {{"name", std::string(70000, 'x')}},
                                            milliseconds(5000));
    REQUIRE_FALSE(answer);
    CHECK(answer.error().code == EMSGSIZE);
}

TEST_CASE("text that is no UTF-8 is refused, not thrown", "[client]")
{
    FakeDaemon daemon([](FakeConnection& peer) { peer.receive(); });
    auto answer = connected(daemon).request("export", {{"name", "\xff\xfe"}}, milliseconds(5000));
    REQUIRE_FALSE(answer);
    CHECK(answer.error().code == EILSEQ);
}

TEST_CASE("notices come one by one, and waiting for one has an end", "[client]")
{
    FakeDaemon daemon([](FakeConnection& peer) {
        peer.answer(peer.receive(), {});
        peer.send({{"type", "event"}, {"kind", "session"}});
        peer.send({{"type", "event"}, {"kind", "region"}});
        peer.receive();
    });
    DaemonClient client = connected(daemon);
    REQUIRE(client.request("events", {}, milliseconds(5000)));
    auto first = client.next_notice(milliseconds(5000));
    auto second = client.next_notice(milliseconds(5000));
    auto none = client.next_notice(milliseconds(50));
    REQUIRE((first && *first && second && *second && none));
    CHECK((**first)["kind"] == "session");
    CHECK((**second)["kind"] == "region");
    CHECK_FALSE(*none);
}
