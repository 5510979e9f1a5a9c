// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
#include "top_view.hpp"

#include <catch2/catch.hpp>

using namespace smc::ctl;
using Lines = std::vector<std::string>;

namespace {

Json row(const std::string& name, uint64_t fetched, uint64_t flushed, Json fetch_p99 = nullptr)
{
    return {{"node", "gpu3"},
            {"name", name},
            {"state", "active"},
            {"dirty_bytes", flushed},
            {"per_second",
             {{"fetch_bytes", fetched},
              {"flush_bytes", flushed},
              {"direct_bytes", 0U},
              {"fetch_faults", 3U},
              {"write_faults", 2U},
              {"barriers", 1U},
              {"errors", 0U}}},
            {"amplification", flushed == 0 ? Json() : Json(64.0)},
            {"latency_ns",
             {{"fetch", {{"count", 1U}, {"p50", fetch_p99}, {"p99", fetch_p99}}},
              {"write", {{"count", 0U}, {"p50", nullptr}, {"p99", nullptr}}}}}};
}

std::string order_of(Json rows, const std::string& key)
{
    sort_rows(rows, key);
    std::string names;
    for (const Json& each : rows)
        names += each["name"].get<std::string>();
    return names;
}

} // namespace

TEST_CASE("rows come with the largest first, names from a to z", "[top]")
{
    const Json rows = {row("c", 10, 0, 900U), row("a", 5, 20, 100U), row("b", 10, 0)};
    CHECK(order_of(rows, "traffic") == "abc");
    CHECK(order_of(rows, "name") == "abc");
    CHECK(order_of(rows, "fetch") == "bca"); // equals by name
    CHECK(order_of(rows, "flush") == "abc");
    CHECK(order_of(rows, "amplification") == "abc");
    CHECK(order_of(rows, "fetch_latency") == "cab"); // what is not known is last
    for (const auto& key : top_sort_keys())
        CHECK(order_of(rows, key).size() == 3);
}

TEST_CASE("a table shows rates, amplification and both percentiles", "[top]")
{
    const auto lines = top_table(Json::array({row("a", 2048, 1024, 23000U)}), 0);
    REQUIRE(lines.size() == 2);
    CHECK(lines[0] == "REGION  FETCH/s  FLUSH/s  DIRECT/s  FAULT/s  WFAULT/s  AMP  FETCH p50/p99  "
                      "WRITE p50/p99  FAULT p50/p99  BARRIER/s  BARRIER p50/p99  DIRTY  ERROR/s");
    CHECK(lines[1] == "gpu3:a       2K       1K         0        3         2   64  23us/23us      "
                      "-              -                      1  -                   1K        0");
}

TEST_CASE("a narrow table leaves columns out until it fits", "[top]")
{
    const Json rows = Json::array({row("a", 2048, 1024, 23000U)});
    for (const size_t width : {200U, 132U, 80U, 60U, 40U, 10U}) {
        CAPTURE(width);
        const auto lines = top_table(rows, width);
        for (const auto& line : lines)
            CHECK(line.size() <= width);
        CHECK(lines[1].find("gpu3:a") == 0);
    }
    const auto lines = top_table(rows, 80);
    CHECK(lines[0] == "REGION  FETCH/s  FLUSH/s  FAULT/s  WFAULT/s  AMP  FETCH p50/p99  "
                      "WRITE p50/p99");
    // Not even the names fit: they are cut by the screen.
    CHECK(top_table(rows, 3)[1] == "gpu3:a");
}

TEST_CASE("a screen has the window's size, and tells how much it hides", "[top]")
{
    Json rows = Json::array();
    for (int i = 0; i < 30; i++)
        rows.push_back(row("r" + std::to_string(i), 1024, 0));
    const TopFrame frame{"12:00:00", 1.0, "traffic", rows};
    const auto lines = top_screen(frame, 10, 60);
    REQUIRE(lines.size() == 10);
    for (const auto& line : lines)
        CHECK(line.size() <= 60);
    CHECK(lines[0].find("smcctl top  12:00:00  every 1.0 s  30 regions by traffic") == 0);
    CHECK(lines[1] == "all: fetch 30K/s  flush 0/s  faults 90/s  write faults 60/s ");
    CHECK(lines[3].find("REGION") == 0);
    CHECK(lines[9] == "... and 25 more"); // 5 are shown
    CHECK(top_screen(frame, 100, 60).size() == 34);
    CHECK(top_screen(frame, 1, 60) == Lines{"... and 34 more"});
}

TEST_CASE("a screen without regions says so", "[top]")
{
    const auto lines = top_screen({"12:00:00", 1.0, "name", Json::array()}, 24, 80);
    CHECK(lines.back() == "no region is attached");
}

TEST_CASE("a region that is not active says so, and commands no terminal", "[top]")
{
    Json one = row("x\x1b[2J", 0, 0);
    one["state"] = "degraded";
    const auto lines = top_table(Json::array({one}), 0);
    CHECK(lines[1].find("gpu3:x?[2J (degraded)") == 0);
}

TEST_CASE("lines are cut by characters, not by bytes", "[top]")
{
    const auto lines =
        top_screen({"", 1, "name", Json::array({row("\u00fc\u00fc\u00fc", 0, 0)})}, 24, 7);
    CHECK(lines[4] == "gpu3:\u00fc\u00fc");
}
