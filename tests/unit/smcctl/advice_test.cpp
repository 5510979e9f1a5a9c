// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
#include "advice.hpp"

#include <catch2/catch.hpp>

using namespace smc::ctl;

namespace {

constexpr uint64_t kPage = 4096;

struct Thread {
    pid_t pid;
    pid_t tid;
};

TraceEvent mapped(Thread thread, uint64_t pos, bool first = true)
{
    TraceEvent event;
    event.pos = pos;
    event.bytes = 1;
    event.pid = thread.pid;
    event.tid = thread.tid;
    event.command = "app" + std::to_string(thread.tid);
    event.mapped = true;
    event.first = first;
    return event;
}

TraceEvent written(Thread thread, uint64_t pos, uint64_t bytes, bool first = true)
{
    TraceEvent event = mapped(thread, pos, first);
    event.bytes = bytes;
    event.mapped = false;
    return event;
}

TraceEvent fetched(uint64_t pos, uint64_t bytes)
{
    TraceEvent event;
    event.kind = TraceEvent::Kind::fetch;
    event.pos = pos;
    event.bytes = bytes;
    return event;
}

Json contended(const RegionWatch& watch)
{
    return watch.report(nullptr)["contended"];
}

std::string text_of(const Json& report)
{
    std::string text;
    for (const auto& line : advice_lines(report))
        text += line + "\n";
    return text;
}

} // namespace

TEST_CASE("two threads that dirty a page in turns are found, with where they write", "[advice]")
{
    RegionWatch watch;
    for (int i = 0; i < 5; i++) {
        watch.add(mapped({10, 11}, 3 * kPage + 8));
        watch.add(mapped({10, 12}, 3 * kPage + 2048));
    }
    const Json found = contended(watch);
    REQUIRE(found.size() == 1);
    CHECK(found[0]["offset"] == 3 * kPage);
    CHECK(found[0]["length"] == kPage);
    CHECK(found[0]["epochs"] == 10);
    CHECK(found[0]["turns"] == 9);
    CHECK(found[0]["threads"] == 2);
    CHECK(found[0]["processes"] == 1);
    CHECK(found[0]["same_place"] == false);
    REQUIRE(found[0]["writers"].size() == 2);
    CHECK(found[0]["writers"][0]["pid"] == 10);
    CHECK(found[0]["writers"][0]["tid"] == 11);
    CHECK(found[0]["writers"][0]["command"] == "app11");
    CHECK(found[0]["writers"][0]["times"] == 5);
    CHECK(found[0]["writers"][1]["places"] == Json::array({{{"offset", 2048}, {"length", 1}}}));
    const std::string text = text_of(watch.report(nullptr));
    CHECK(
        text.find("page at 12288: 10 times dirtied by 2 threads of a process, in turns 9 times") !=
        std::string::npos);
    CHECK(text.find("app12, PID 10, thread 12: 5 times, at 2048 in the page") != std::string::npos);
    CHECK(text.find("padded to 4096") != std::string::npos);
    CHECK(text.find("smc_publish") == std::string::npos);
}

TEST_CASE("processes that write to the same word are told of flags and counters", "[advice]")
{
    RegionWatch watch;
    for (int i = 0; i < 3; i++) {
        // In one epoch: the second finds the page dirty, but not writable for itself.
        watch.add(mapped({10, 10}, 100, true));
        watch.add(mapped({20, 20}, 103, false));
    }
    const Json found = contended(watch);
    REQUIRE(found.size() == 1);
    CHECK(found[0]["epochs"] == 3);
    CHECK(found[0]["processes"] == 2);
    CHECK(found[0]["same_place"] == true);
    const std::string text = text_of(watch.report(nullptr));
    CHECK(text.find("3 times dirtied by 2 processes") != std::string::npos);
    CHECK(text.find("app20, PID 20: 3 times, at 103") != std::string::npos);
    CHECK(text.find("smc_publish") != std::string::npos);
}

TEST_CASE("a page that changes hands once is no contention, nor is one writer", "[advice]")
{
    RegionWatch watch;
    for (int i = 0; i < 20; i++)
        watch.add(mapped({10, 10}, 0)); // sets it up
    for (int i = 0; i < 20; i++)
        watch.add(mapped({10, 11}, 0)); // works on it from then on
    for (int i = 0; i < 20; i++)
        watch.add(mapped({10, 12}, kPage));
    // Two pages, each with a writer of its own.
    for (int i = 0; i < 20; i++)
        watch.add(mapped({10, 10 + i % 2}, (4 + static_cast<uint64_t>(i % 2)) * kPage));
    CHECK(contended(watch).empty());
    CHECK(text_of(watch.report(nullptr)) == "  nothing to advise\n");
    CHECK(text_of(RegionWatch().report(nullptr)) == "  nothing to advise\n");
}

TEST_CASE("pages of a large folio have epochs of their own", "[advice]")
{
    RegionWatch watch;
    // Only the first page finds the folio clean; what shows the next flush is another fault.
    for (int i = 0; i < 4; i++) {
        watch.add(mapped({10, 10}, 0, true));
        watch.add(mapped({10, i % 2 == 0 ? 10 : 11}, kPage, false));
    }
    const Json found = contended(watch);
    REQUIRE(found.size() == 1);
    CHECK(found[0]["offset"] == kPage);
    CHECK(found[0]["epochs"] == 4);
}

TEST_CASE("one write(2) after the other is one epoch, until the page was sent", "[advice]")
{
    RegionWatch watch;
    for (int i = 0; i < 8; i++)
        watch.add(written({10, 10 + i % 2}, 0, 16, i == 0));
    CHECK(contended(watch).empty()); // all in one
    for (int i = 0; i < 8; i++)
        watch.add(written({10, 10 + i % 2}, 0, 16, true));
    CHECK(contended(watch)[0]["epochs"] == 9);
}

TEST_CASE("a write(2) over several pages is in each of them, at its place there", "[advice]")
{
    RegionWatch watch;
    for (int i = 0; i < 4; i++) {
        watch.add(written({10, 10}, kPage - 16, kPage + 32));
        watch.add(written({20, 20}, 2 * kPage + 16, 16));
    }
    const Json found = contended(watch);
    REQUIRE(found.size() == 1); // not the first two pages, which one process writes
    CHECK(found[0]["offset"] == 2 * kPage);
    CHECK(found[0]["same_place"] == false);
    CHECK(found[0]["writers"][0]["places"] == Json::array({{{"offset", 0}, {"length", 16}}}));
}

TEST_CASE("neighbours with the same writers are one entry, the most contended is first", "[advice]")
{
    RegionWatch watch;
    for (int i = 0; i < 4; i++)
        for (uint64_t page : {7, 8, 9})
            watch.add(mapped({10, 10 + i % 2}, page * kPage + 64 * static_cast<uint64_t>(i % 2)));
    for (int i = 0; i < 20; i++)
        watch.add(mapped({20, 20 + i % 2}, 100 * kPage + 64 * static_cast<uint64_t>(i % 2)));
    const Json found = contended(watch);
    REQUIRE(found.size() == 2);
    CHECK(found[0]["offset"] == 100 * kPage);
    CHECK(found[1]["offset"] == 7 * kPage);
    CHECK(found[1]["length"] == 3 * kPage);
    CHECK(found[1]["epochs"] == 12);
    CHECK(found[1]["writers"][0]["times"] == 6);
    CHECK(text_of(watch.report(nullptr)).find("pages at 28672 to 40959") != std::string::npos);
}

TEST_CASE("a long list is cut for people, and says so", "[advice]")
{
    RegionWatch watch;
    for (int i = 0; i < 4; i++)
        for (uint64_t page = 0; page < 30; page += 2)
            watch.add(mapped({10, 10 + i % 2}, page * kPage));
    CHECK(contended(watch).size() == 15);
    CHECK(text_of(watch.report(nullptr)).find("... and 5 more") != std::string::npos);
}

TEST_CASE("what is fetched in order over and over is better read directly", "[advice]")
{
    const auto streamed = [](unsigned rounds, uint64_t step, uint64_t bytes) {
        RegionWatch watch;
        for (unsigned round = 0; round < rounds; round++)
            for (uint64_t pos = 0; pos < bytes; pos += step)
                watch.add(fetched(pos, 128U << 10));
        return watch.report(nullptr)["advice"];
    };
    const Json advice = streamed(3, 128U << 10, 4U << 20);
    REQUIRE(advice.size() == 1);
    CHECK(advice[0]["kind"] == "direct_read");
    CHECK(advice[0]["fetched_bytes"] == 12U << 20);
    CHECK(advice[0]["rounds"] == 3.0);
    CHECK(advice[0]["in_order"] > 0.95);
    CHECK(streamed(1, 128U << 10, 32U << 20).empty()); // once: the cache may be of use yet
    CHECK(streamed(3, 256U << 10, 16U << 20).empty()); // not in order
    CHECK(streamed(3, 128U << 10, 1U << 20).empty());  // too little to matter
}

TEST_CASE("several streams at a time are still in order", "[advice]")
{
    Streams streams;
    for (uint64_t i = 0; i < 100; i++)
        for (uint64_t stream = 0; stream < 4; stream++)
            streams.add((stream << 40) + i, (stream << 40) + i + 1);
    CHECK(streams.share() == Approx(0.99));
    Streams scattered;
    for (uint64_t i = 0; i < 100; i++)
        scattered.add(i * 1000, i * 1000 + 1);
    CHECK(scattered.share() == 0);
    CHECK(Streams().share() == 0);
}

TEST_CASE("what is rewritten as a whole in order is better written directly", "[advice]")
{
    RegionWatch watch;
    for (int round = 0; round < 3; round++)
        for (uint64_t page = 0; page < 1024; page++)
            watch.add(mapped({10, 10}, page * kPage));
    const Json advice = watch.report(1.02)["advice"];
    REQUIRE(advice.size() == 1);
    CHECK(advice[0]["kind"] == "direct_write");
    CHECK(advice[0]["dirtied_bytes"] == 12U << 20);
    CHECK(advice[0]["amplification"] == 1.02);
    CHECK(text_of(watch.report(1.02)).find("O_DIRECT") != std::string::npos);
    CHECK(watch.report(16.0)["advice"].empty()); // sparse: the comparison is what helps
    CHECK(watch.report(nullptr)["advice"].empty());
}

TEST_CASE("positions at the end of all numbers do no harm", "[advice]")
{
    RegionWatch watch;
    watch.add(written({10, 10}, UINT64_MAX - 3, 100));
    watch.add(written({10, 10}, UINT64_MAX - 3, 0));
    watch.add(mapped({10, 10}, UINT64_MAX - 1));
    CHECK(watch.report(nullptr)["pages"] == 1);
}

TEST_CASE("pages that became dirty again are ranges, those that did once are not", "[advice]")
{
    RegionWatch watch;
    for (int i = 0; i < 2; i++)
        for (uint64_t page : {1, 2, 3, 5})
            watch.add(mapped({10, 10}, page * kPage));
    watch.add(mapped({10, 10}, 4 * kPage));
    CHECK(watch.report(nullptr)["dirtied"] ==
          Json::array({{{"offset", kPage}, {"length", 3 * kPage}},
                       {{"offset", 5 * kPage}, {"length", kPage}}}));
}

TEST_CASE("common ranges are those of both, cut to what both have", "[advice]")
{
    const auto range = [](uint64_t offset, uint64_t length) {
        return Json{{"offset", offset}, {"length", length}};
    };
    const Json a = Json::array({range(0, 10), range(20, 10), range(40, 5)});
    const Json b = Json::array({range(5, 20), range(29, 1), range(40, 5), range(50, 1)});
    const Json wanted = Json::array({range(5, 5), range(20, 5), range(29, 1), range(40, 5)});
    CHECK(common_ranges(a, b) == wanted);
    CHECK(common_ranges(b, a) == wanted);
    CHECK(common_ranges(a, Json::array()).empty());
}

TEST_CASE("what another node dirties, too, is told by its name", "[advice]")
{
    const auto report = [](const std::string& name, uint64_t page) {
        RegionWatch watch;
        for (int i = 0; i < 3; i++)
            watch.add(mapped({10, 10}, page * kPage));
        Json row = watch.report(nullptr);
        row["node"] = "gpu3";
        row["name"] = name;
        return row;
    };
    Json mine = report("a", 7);
    const Json other = {{"host", "node2"},
                        {"regions", Json::array({report("b", 7), report("a", 7), report("a", 8)})}};
    REQUIRE(add_shared(mine, {other}));
    CHECK(mine["shared"] ==
          Json::array({{{"host", "node2"}, {"offset", 7 * kPage}, {"length", kPage}}}));
    CHECK(text_of(mine).find("bytes 28672 to 32767: pages that node2 dirties, too") !=
          std::string::npos);
    CHECK(text_of(mine).find("merge_unit") != std::string::npos);
    REQUIRE(add_shared(mine, {}));
    CHECK(mine["shared"].empty());
    CHECK(text_of(mine) == "  nothing to advise\n");
    for (const Json& wrong : {Json{{"regions", 5}}, Json{{"error", "none"}}, Json::array(),
                              Json{{"regions", Json::array({report("a", 7)})}}})
        CHECK_FALSE(add_shared(mine, {wrong}));
}
