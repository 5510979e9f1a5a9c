// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// Who gets in, who holds the writing right, and what is left of a session that ended.
#include <cstdlib>
#include <fstream>

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "node.hpp"
#include "verbs/probe.hpp"

namespace smc::test {
namespace {

constexpr std::uint64_t kLength = 8192;

SessionOffer open_session(Node& node, SessionId id, const std::string& name = "client")
{
    auto offer = node.call([&](Target& target) { return target.session_open(id, name); });
    if (!offer)
        FAIL(offer.error().what);
    return *offer;
}

int connect_error(const SessionOffer& offer, const ConnectRequest& request)
{
    const auto result = Initiator::connect(offer.addresses.front(), offer.port, request);
    return result ? 0 : result.error().code;
}

std::vector<SessionInfo> sessions(Node& node)
{
    return node.call([](Target& target) { return target.sessions(); });
}

} // namespace

TEST_CASE("only the right token gets in, and only once", "[sessions]")
{
    Node node;
    const auto offer = open_session(node, 7);
    auto wrong = offer.token_read;
    wrong.back() ^= 1;
    CHECK(connect_error(offer, {QpRole::read, 7, wrong}) == ECONNREFUSED);
    CHECK(connect_error(offer, {QpRole::read, 7, Token{}}) == ECONNREFUSED);
    CHECK(connect_error(offer, {QpRole::read, 8, offer.token_read}) == ECONNREFUSED);
    CHECK(connect_error(offer, {QpRole::bulk, 7, offer.token_read}) == ECONNREFUSED);
    // Wrong attempts do not spoil the right one.
    auto first = Initiator::connect(offer.addresses.front(), offer.port,
                                    {QpRole::read, 7, offer.token_read});
    REQUIRE(first);
    CHECK(connect_error(offer, {QpRole::read, 7, offer.token_read}) == ECONNREFUSED);
    CHECK(sessions(node).front().state == SessionState::connecting);
    CHECK(node.grant(7, "r").error().code == ENOENT);
    node.export_host("r", kLength);
    CHECK(node.grant(7, "r").error().code == ENOTCONN);
    auto second = Initiator::connect(offer.addresses.front(), offer.port,
                                     {QpRole::bulk, 7, offer.token_bulk});
    REQUIRE(second);
    CHECK(sessions(node).front().state == SessionState::live);
    CHECK(node.grant(7, "r"));
    CHECK(connect_error(offer, {QpRole::bulk, 7, offer.token_bulk}) == ECONNREFUSED);
}

TEST_CASE("private data that is not ours is refused", "[sessions]")
{
    Node node;
    const auto offer = open_session(node, 7);
    const auto good = encode(ConnectRequest{QpRole::read, 7, offer.token_read});
    const auto refused = [&](std::vector<std::uint8_t> data) {
        const auto result = Initiator::connect_raw(offer.addresses.front(), offer.port, data);
        return !result && result.error().code == ECONNREFUSED;
    };
    CHECK(refused({}));
    CHECK(refused({good.begin(), good.end() - 1})); // padded with zeros on the way: another token
    for (const std::size_t at : {0U, 4U, 6U, 8U}) { // magic, version, role, session
        std::vector<std::uint8_t> bad(good.begin(), good.end());
        bad[at] ^= 0x80;
        CAPTURE(at);
        CHECK(refused(bad));
    }
    CHECK(Initiator::connect_raw(offer.addresses.front(), offer.port, good));
}

TEST_CASE("a session id is used once at a time", "[sessions]")
{
    Node node;
    open_session(node, 7);
    CHECK(node.call([](Target& target) { return target.session_open(7, "x"); }).error().code ==
          EEXIST);
    CHECK(node.call([](Target& target) { return target.session_open(0, "x"); }).error().code ==
          EINVAL);
    REQUIRE(node.close(7));
    REQUIRE(node.close(7));
    open_session(node, 7);
}

TEST_CASE("when close answers the QPs are gone, and a new session may come", "[sessions]")
{
    Node node;
    node.export_host("r", kLength);
    auto old = connect(node, 1);
    const auto extent = node.grant(1, "r").value().extents.front();
    REQUIRE(node.call([](Target& target) { return target.writer_acquire(1, "r"); }));
    REQUIRE(node.close(1));
    CHECK(old.read->disconnected());
    CHECK(old.bulk->disconnected());
    // This side of it lives still, and sends to nobody.
    REQUIRE(old.bulk->start_write(extent.addr, extent.rkey_bulk, 64));

    CHECK(node.grant(1, "r").error().code == ESTALE);
    auto next = connect(node, 1);
    CHECK(node.call([](Target& target) { return target.writer_acquire(1, "r"); }));
    const auto again = node.grant(1, "r").value().extents.front();
    const auto seen = next.read->read(again.addr, again.rkey_read, 64).value();
    CHECK(seen == std::vector<std::uint8_t>(64, 0));
    // Unlike the new one's.
    REQUIRE(next.bulk->write(again.addr, again.rkey_bulk, pattern(64, 2)));
    CHECK(next.read->read(again.addr, again.rkey_read, 64).value() == pattern(64, 2));
}

TEST_CASE("a client that leaves without a word loses its session, not its writing right",
          "[sessions]")
// What it wrote last may not have arrived; until it was closed nobody else writes.
{
    Node node;
    node.export_host("r", kLength);
    {
        auto client = connect(node, 1);
        REQUIRE(node.grant(1, "r"));
        REQUIRE(node.call([](Target& target) { return target.writer_acquire(1, "r"); }));
        const bool one_qp_only = GENERATE(true, false);
        CAPTURE(one_qp_only);
        client.bulk.reset();
        if (!one_qp_only)
            client.read.reset();
        CHECK(node.saw_lost(1));
        if (one_qp_only)
            CHECK(client.read->disconnected());
    }
    REQUIRE(sessions(node).size() == 1);
    CHECK(sessions(node).front().state == SessionState::lost);
    CHECK(sessions(node).front().regions.empty());
    CHECK(node.call([](Target& target) { return target.session_adopt(1); }).error().code == ESTALE);
    CHECK(node.grant(1, "r").error().code == ESTALE);

    auto other = connect(node, 2);
    const auto busy = node.call([](Target& target) { return target.writer_acquire(2, "r"); });
    REQUIRE_FALSE(busy);
    CHECK(busy.error().code == EBUSY);
    CHECK(busy.error().what.find("client") != std::string::npos);
    REQUIRE(node.close(1));
    CHECK(node.call([](Target& target) { return target.writer_acquire(2, "r"); }));
}

TEST_CASE("one session at a time holds the writing right", "[sessions]")
{
    Node node;
    node.export_host("r", kLength);
    auto a = connect(node, 1);
    auto b = connect(node, 2);
    const auto acquire = [&](SessionId id) {
        const auto result = node.call([&](Target& t) { return t.writer_acquire(id, "r"); });
        return result ? 0 : result.error().code;
    };
    CHECK(acquire(1) == 0);
    CHECK(acquire(1) == 0);
    CHECK(acquire(2) == EBUSY);
    CHECK(sessions(node).front().writes == std::vector<std::string>{"r"});
    CHECK(node.call([](Target& t) { return t.exports(); }).front().writer == "client");
    // Who does not hold it cannot give it away.
    REQUIRE(node.call([](Target& t) { return t.writer_release(2, "r"); }));
    CHECK(acquire(2) == EBUSY);
    REQUIRE(node.call([](Target& t) { return t.writer_release(1, "r"); }));
    CHECK(acquire(2) == 0);
    REQUIRE(node.release(2, "r"));
    CHECK(acquire(1) == 0);
    CHECK(node.call([](Target& t) { return t.writer_acquire(1, "nothing"); }).error().code ==
          ENOENT);
    CHECK(acquire(99) == ESTALE);
}

TEST_CASE("sessions connect by every offered address", "[sessions]")
{
    Node node;
    node.export_host("r", kLength);
    SessionId id = 1;
    bool v4 = false;
    bool v6 = false;
    for (const auto& address : open_session(node, 100).addresses) {
        CAPTURE(address);
        auto client = connect(node, ++id, address);
        const auto extent = node.grant(id, "r").value().extents.front();
        CHECK(client.bulk->write(extent.addr, extent.rkey_bulk, pattern(8, 1)));
        (address.find(':') == std::string::npos ? v4 : v6) = true;
    }
    CHECK(v4);
    CHECK(v6);
}

TEST_CASE("a session that nobody speaks for lives as long as its client answers", "[sessions]")
{
    Node node;
    node.export_host("r", kLength);
    auto client = connect(node, 1);
    node.call([](Target& target) { target.session_disown(1); });
    // Longer than two rounds of asking.
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(12);
    while (std::chrono::steady_clock::now() < end) {
        REQUIRE(sessions(node).front().state == SessionState::live);
        std::this_thread::sleep_for(std::chrono::milliseconds(200));
    }
    CHECK(node.call([](Target& target) { return target.session_adopt(1); }));
    CHECK(node.grant(1, "r"));
}

TEST_CASE("tokens expire, and lost sessions are forgotten when nobody claims them", "[slow]")
{
    Node node;
    const auto offer = open_session(node, 7);
    const auto start = std::chrono::steady_clock::now();
    REQUIRE(node.saw_lost(7));
    const auto took = std::chrono::steady_clock::now() - start;
    CHECK(took > std::chrono::seconds(25));
    CHECK(connect_error(offer, {QpRole::read, 7, offer.token_read}) == ECONNREFUSED);
    CHECK(sessions(node).size() == 1);
    node.call([](Target& target) { target.session_disown(7); });
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(90);
    while (!sessions(node).empty() && std::chrono::steady_clock::now() < deadline)
        std::this_thread::sleep_for(std::chrono::milliseconds(500));
    CHECK(sessions(node).empty());
}

TEST_CASE("a probe measures the path and leaves nothing behind", "[sessions]")
{
    Node node;
    const auto offer = node.call([](Target& target) { return target.probe_open("client"); });
    REQUIRE(offer);
    verbs::ProbeParams params;
    params.address = offer->addresses.front();
    params.port = offer->port;
    params.session = offer->session;
    params.token = offer->token;
    params.seconds = 1;
    const std::atomic<bool> cancelled = false;
    const auto result = verbs::probe(params, cancelled);
    if (!result)
        FAIL(result.error().what);
    WARN(result->device << " to " << result->remote_address << ", mtu " << result->mtu_bytes << ": "
                        << result->reads << " reads, " << result->min_us << "/" << result->avg_us
                        << "/" << result->max_us << " us, " << result->bandwidth_mbps << " Mb/s");
    CHECK(result->reads > 0);
    CHECK(result->min_us <= result->avg_us);
    CHECK(result->avg_us <= result->max_us);
    CHECK(result->mtu_bytes >= 1024);
    CHECK(result->bandwidth_mbps > 0);
    CHECK(sessions(node).empty()); // probes are no sessions to people
    CHECK(verbs::probe(params, cancelled).error().code == ECONNREFUSED); // the token is used
}

TEST_CASE("a probe answers through the loop, and can be given up", "[sessions]")
{
    auto loop = EventLoop::create().value();
    verbs::ProbeParams params;
    params.address = "192.0.2.1"; // of documentation: nobody
    params.port = 7451;
    SECTION("an unreachable node is an error")
    {
        int code = 0;
        verbs::Probe probe(*loop, params, [&](Result<verbs::ProbeResult> result) {
            code = result ? 0 : result.error().code;
            loop->exit(0);
        });
        REQUIRE(loop->run());
        CHECK(code != 0);
    }
    SECTION("giving up does not wait for it")
    {
        const auto start = std::chrono::steady_clock::now();
        {
            verbs::Probe probe(*loop, params, [](const auto&) { FAIL("it was given up"); });
        }
        CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(2));
    }
}

// The two halves of one case, on two nodes. OFFER is a file that the script carries over.
TEST_CASE("a client that loses power is noticed when nobody speaks for it", "[.vanish]")
{
    const char* path = std::getenv("OFFER");
    REQUIRE(path != nullptr);
    Node node;
    node.export_host("r", kLength);
    const auto offer = open_session(node, 1);
    {
        std::ofstream file(path);
        file << offer.addresses.front() << ' ' << offer.port;
        for (const auto* token : {&offer.token_read, &offer.token_bulk}) {
            file << ' ';
            for (const unsigned byte : *token)
                file << fmt::format("{:02x}", byte);
        }
        file << '\n';
    }
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (sessions(node).front().state != SessionState::live) {
        REQUIRE(std::chrono::steady_clock::now() < deadline);
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    REQUIRE(node.grant(1, "r"));
    std::puts("live"); // the script cuts the power now
    std::fflush(stdout);
    const auto start = std::chrono::steady_clock::now();
    node.call([](Target& target) { target.session_disown(1); });
    CHECK(node.saw_lost(1));
    WARN("noticed after "
         << std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count()
         << " s");
    CHECK(node.unexport("r"));
}

TEST_CASE("join the offered session and stay", "[.join]")
{
    std::ifstream file(std::getenv("OFFER"));
    std::string address;
    std::uint16_t port = 0;
    std::vector<std::unique_ptr<Initiator>> qps;
    file >> address >> port;
    for (const auto role : {QpRole::read, QpRole::bulk}) {
        ConnectRequest request{role, 1, {}};
        std::string text;
        file >> text;
        REQUIRE(text.size() == 2 * request.token.size());
        for (std::size_t i = 0; i < request.token.size(); i++)
            request.token[i] =
                static_cast<std::uint8_t>(std::stoul(text.substr(2 * i, 2), nullptr, 16));
        auto connected = Initiator::connect(address, port, request);
        if (!connected)
            FAIL(connected.error().what);
        qps.push_back(std::move(*connected));
    }
    std::promise<void>().get_future().wait();
}

} // namespace smc::test
