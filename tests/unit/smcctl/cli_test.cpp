// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// The whole program, from its arguments to its output, against a daemon that is played here.
#include "cli.hpp"

#include <sstream>

#include <catch2/catch.hpp>

#include "fake_daemon.hpp"

using smc::ctl::Json;
using smc::test::FakeConnection;
using smc::test::FakeDaemon;

namespace {

struct Ran {
    int exit = -1;
    std::string out;
    std::string err;
};

Ran run(const std::vector<std::string>& args)
{
    std::ostringstream out;
    std::ostringstream err;
    int exit = smc::ctl::run(args, out, err);
    return {exit, out.str(), err.str()};
}

struct Talk {
    Ran ran;
    Json request;
};

// Runs the arguments against a daemon that gives this answer to every request; tells the last request.
Talk run_answered(std::vector<std::string> args, const Json& result)
{
    Json request;
    FakeDaemon daemon([&](FakeConnection& peer) {
        for (Json next = peer.receive(); !next.empty(); next = peer.receive()) {
            request = next;
            peer.answer(next, result);
        }
    });
    args.insert(args.begin(), {"--socket", daemon.path()});
    Ran ran = run(args);
    return {ran, request};
}

} // namespace

TEST_CASE("usage errors exit with 2, name the argument, and ask nobody", "[cli]")
{
    const std::vector<std::vector<std::string>> wrong = {
        {},
        {"bogus"},
        {"attach"},
        {"attach", "gpu3"},
        {"attach", "/etc/passwd"},
        {"attach", "gpu3:a", "--wait", "0"},
        {"export", "a"},
        {"export", "a", "--host", "1X"},
        {"export", "a", "--host", "0"},
        {"export", "a", "--host", "1G", "--file", "/dev/shm/x"},
        {"export", "a", "--file", "/dev/shm/x", "--hugepages"},
        {"export", "a", "--host", "1G", "--offset", "4K"},
        {"export", "a", "--host", "1G", "--mode", "4755"},
        {"export", "a", "--host", "1G", "--writers", "all"},
        {"export", "a", "--host", "1G", "--merge-unit", "48"},
        {"export", "../a", "--host", "1G"},
        {"set", "gpu3:a"},
        {"set", "gpu3:a", "cto"},
        {"set", "gpu3:a", "cto=maybe"},
        {"set", "gpu3:a", "flush_after_ms=0"},
        {"set", "gpu3:a", "flush_after_ms=3600001"},
        {"set", "gpu3:a", "merge_unit=2"},
        {"set", "gpu3:a", "merge_unit=65"},
        {"set", "gpu3:a", "writers=nobody"},
        {"set", "gpu3:a", "size=5"},
        {"set", "gpu3:a", "mode=often"},
        {"set", "gpu3:a", "push_delay_us=1000001"},
        {"set", "gpu3:a", "max_stale_us=never"},
        {"set", "gpu3:a", "hot=warm"},
        {"set", "gpu3:a", "max_stale_us=3600000001"},
        {"set", "gpu3:a", "granule=2K"},
        {"set", "gpu3:a", "granule=2M"},
        {"set", "gpu3:a", "granule=48K"},
        {"set", "gpu3:a", "granule=large"},
        {"export", "a", "--host", "1G", "--sync-mode", "often"},
        {"export", "a", "--host", "1G", "--push-delay-us", "1000001"},
        {"export", "a", "--host", "1G", "--granule", "12K"},
        {"export", "a", "--host", "1G", "--granule", "1K"},
        {"inspect"},
        {"get", "gpu3:a", "nothing"},
        {"ping", "a:b"},
        {"ping", "gpu3", "--seconds", "61"},
        {"stats", "--interval", "1"},
        {"advise", "gpu3"},
        {"advise", "--time", "0"},
        {"top", "gpu3"},
        {"top", "--interval", "0"},
        {"top", "--count", "some"},
        {"top", "--sort", "size"},
        {"status", "--timeout", "0"},
    };
    for (const auto& args : wrong) {
        CAPTURE(args);
        Ran ran = run(args);
        CHECK(ran.exit == 2);
        CHECK(ran.out.empty());
        CHECK_FALSE(ran.err.empty());
    }
    CHECK(run({"bogus"}).err.find("\"bogus\"") != std::string::npos);
}

TEST_CASE("help and version exit with 0", "[cli]")
{
    CHECK(run({"--help"}).exit == 0);
    CHECK(run({"export", "--help"}).out.find("--hugepages") != std::string::npos);
    CHECK(run({"--version"}).out.find("smcctl 0.") == 0);
}

TEST_CASE("without a daemon, what needs one fails with 1 and the way to start it", "[cli]")
{
    for (const auto& verb : std::vector<std::vector<std::string>>{{"attach", "gpu3:a"},
                                                                  {"export", "a", "--host", "1M"},
                                                                  {"unexport", "a"},
                                                                  {"ping", "gpu3"}}) {
        std::vector<std::string> args = verb;
        args.insert(args.end(), {"--socket", "/tmp/smc-test-nobody-here.sock"});
        CAPTURE(args);
        Ran ran = run(args);
        CHECK(ran.exit == 1);
        CHECK(ran.err.find("systemctl start smcfsd") != std::string::npos);
    }
}

TEST_CASE("in JSON a failure is an object on standard output, and still a sentence for people",
          "[cli]")
{
    Ran ran = run({"-j", "attach", "gpu3:a", "--socket", "/tmp/smc-test-nobody-here.sock"});
    CHECK(ran.exit == 1);
    Json error = Json::parse(ran.out)["error"];
    CHECK(error["errno"] == ENOTCONN);
    CHECK(ran.err.find(error["what"].get<std::string>()) != std::string::npos);
}

TEST_CASE("export sends what was asked for, in bytes and numbers", "[cli]")
{
    Talk talk =
        run_answered({"export", "job/params", "--host", "1.5G", "--hugepages", "--mode", "0640"},
                     {{"generation", "8a1c0f33b7e26d54"}, {"size", 1610612736U}});
    CHECK(talk.ran.exit == 0);
    CHECK(talk.request["type"] == "export");
    CHECK(talk.request["name"] == "job/params");
    CHECK(talk.request["host"] == 1610612736U);
    CHECK(talk.request["hugepages"] == true);
    CHECK(talk.request["mode"] == 0640);
    CHECK(talk.request["writers"] == "merge");
    CHECK(talk.request["merge_unit"] == 64);
    CHECK(talk.request["readonly"] == false);
    CHECK_FALSE(talk.request.contains("file"));
    CHECK(talk.ran.out.find("8a1c0f33b7e26d54") != std::string::npos);
}

TEST_CASE("an export carries the hints that were given, and no others", "[cli]")
{
    const Json answer = {{"generation", "8a1c0f33b7e26d54"}, {"size", 4096U}};
    Talk none = run_answered({"export", "a", "--host", "4K"}, answer);
    CHECK(none.request["hints"] == Json::object());
    Talk some = run_answered({"export", "a", "--host", "4K", "--sync-mode", "push",
                              "--push-delay-us", "0", "--max-stale-us", "5000", "--granule", "64K"},
                             answer);
    CHECK(
        some.request["hints"] ==
        Json({{"mode", "push"}, {"push_delay_us", 0}, {"max_stale_us", 5000}, {"granule", 65536}}));
}

TEST_CASE("a file is exported by its absolute path", "[cli]")
{
    Talk talk =
        run_answered({"export", "a", "--file", "here", "--offset", "4K", "--length", "1M", "-j"},
                     {{"generation", "1"}, {"size", 1048576U}});
    CHECK(talk.ran.exit == 0);
    CHECK(talk.request["file"].get<std::string>().front() == '/');
    CHECK(talk.request["offset"] == 4096U);
    CHECK(talk.request["length"] == 1048576U);
    CHECK_FALSE(talk.request.contains("host"));
    CHECK(Json::parse(talk.ran.out)["size"] == 1048576U);
}

TEST_CASE("attach takes both forms of a name and says where the file is", "[cli]")
{
    for (const char* name : {"gpu3:job/params", "/smc/gpu3/job/params"}) {
        Talk talk = run_answered({"attach", name, "--wait", "3"}, {{"region", 7}});
        CHECK(talk.ran.exit == 0);
        CHECK(talk.request["node"] == "gpu3");
        CHECK(talk.request["name"] == "job/params");
        CHECK(talk.request["timeout_ms"] == 3000);
        CHECK(talk.ran.out.find("/smc/gpu3/job/params") != std::string::npos);
    }
}

TEST_CASE("a refusal is reported in the daemon's words", "[cli]")
{
    FakeDaemon daemon([](FakeConnection& peer) {
        Json request = peer.receive();
        peer.refuse(request, EBUSY, "gpu7 holds the writing right of a");
    });
    Ran ran = run({"--socket", daemon.path(), "unexport", "a"});
    CHECK(ran.exit == 1);
    CHECK(ran.out.empty());
    CHECK(ran.err == "smcctl unexport: gpu7 holds the writing right of a\n");
}

TEST_CASE("peers come as a table and, the same, as JSON", "[cli]")
{
    Json peers = {{{"node", "gpu3"},
                   {"address", "10.0.0.3"},
                   {"state", "up"},
                   {"since_s", 125U},
                   {"error", nullptr}},
                  {{"node", "gpu4"},
                   {"address", "10.0.0.4"},
                   {"state", "failed"},
                   {"since_s", 3U},
                   {"error", "no route to host"}}};
    Ran text = run_answered({"peers"}, {{"peers", peers}}).ran;
    CHECK(text.exit == 0);
    CHECK(text.out == "NODE  ADDRESS   STATE       SINCE  ERROR\n"
                      "gpu3  10.0.0.3  up      2 min 5 s  -\n"
                      "gpu4  10.0.0.4  failed      3.0 s  no route to host\n");
    Ran json = run_answered({"peers", "-j"}, {{"peers", peers}}).ran;
    CHECK(Json::parse(json.out)["peers"] == peers);
}

TEST_CASE("a listing of several pages is shown as one", "[cli]")
{
    std::vector<Json> asked;
    FakeDaemon daemon([&](FakeConnection& peer) {
        for (Json next = peer.receive(); !next.empty(); next = peer.receive()) {
            asked.push_back(next.value("first", Json()));
            const auto row = Json{{"node", "gpu" + std::to_string(asked.size())}};
            peer.answer(next, {{"peers", Json::array({row})}, {"more", asked.size() < 3}});
        }
    });
    Ran json = run({"--socket", daemon.path(), "peers", "-j"});
    CHECK(json.exit == 0);
    const Json peers = Json::parse(json.out)["peers"];
    REQUIRE(peers.size() == 3);
    CHECK(peers[2]["node"] == "gpu3");
    CHECK(asked == std::vector<Json>{nullptr, 1, 2});
}

TEST_CASE("a listing that promises more and gives nothing ends", "[cli]")
{
    CHECK(run_answered({"peers"}, {{"peers", Json::array()}, {"more", true}}).ran.exit == 1);
}

TEST_CASE("an answer of the wrong shape does not crash anything", "[cli]")
{
    for (const Json& answer :
         {Json{{"peers", 5}}, Json{{"peers", {1, "x", nullptr, Json::array()}}},
          Json{{"peers", {{{"node", {{"a", 1}}}, {"since_s", "soon"}}}}}, Json::object()}) {
        CAPTURE(answer.dump());
        CHECK(run_answered({"peers"}, answer).ran.exit == 0);
    }
    CHECK(run_answered({"export", "a", "--host", "1M"}, {{"size", "big"}}).ran.exit == 0);
    CHECK(run_answered({"ping", "gpu3"}, {{"control_us", 3}}).ran.exit == 0);
}

TEST_CASE("events are written as they come, a line each, until the limit", "[cli]")
{
    FakeDaemon daemon([](FakeConnection& peer) {
        peer.answer(peer.receive(), Json::object());
        peer.send({{"type", "event"},
                   {"time", "2026-01-01T00:00:00Z"},
                   {"kind", "region"},
                   {"node", "gpu3"},
                   {"name", "a"},
                   {"state", "degraded"},
                   {"reason", "session lost"}});
        peer.send({{"type", "event"},
                   {"time", "2026-01-01T00:00:01Z"},
                   {"kind", "peer"},
                   {"node", "gpu3"},
                   {"state", "failed"}});
        peer.receive();
    });
    Ran text = run({"--socket", daemon.path(), "events", "--count", "2"});
    CHECK(text.exit == 0);
    CHECK(text.out == "2026-01-01T00:00:00Z  region  gpu3:a  degraded  session lost\n"
                      "2026-01-01T00:00:01Z  peer  gpu3  failed\n");
    Ran json = run({"--socket", daemon.path(), "events", "-n", "1", "-j"});
    CHECK(json.exit == 0);
    CHECK(Json::parse(json.out)["state"] == "degraded");
}

TEST_CASE("events end with a failure when the daemon goes away", "[cli]")
{
    FakeDaemon daemon([](FakeConnection& peer) { peer.answer(peer.receive(), Json::object()); });
    Ran ran = run({"--socket", daemon.path(), "events", "--seconds", "30"});
    CHECK(ran.exit == 1);
    CHECK(ran.err.find("closed the connection") != std::string::npos);
}

TEST_CASE("a daemon that hangs is given up", "[cli]")
{
    FakeDaemon daemon([](FakeConnection& peer) {
        while (!peer.receive().empty()) {}
    });
    Ran ran = run({"--socket", daemon.path(), "--timeout", "1", "peers"});
    CHECK(ran.err.find("did not answer") != std::string::npos);
}
