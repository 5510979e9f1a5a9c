// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
#include "trace_events.hpp"

#include <catch2/catch.hpp>

using namespace smc::ctl;

TEST_CASE("a store is read from its line, with thread and process", "[trace]")
{
    const auto event = parse_trace_line("           probe-1234    [001] d..2.   66.296396: "
                                        "smcfs_store: region 4294967304 pos 0x2801 "
                                        "bytes 1 tgid 1200 mapped 1 first 0");
    REQUIRE(event);
    CHECK(event->kind == TraceEvent::Kind::store);
    CHECK(event->region_id == 4294967304U);
    CHECK(event->pos == 0x2801);
    CHECK(event->bytes == 1);
    CHECK(event->tid == 1234);
    CHECK(event->pid == 1200);
    CHECK(event->command == "probe");
    CHECK(event->mapped);
    CHECK_FALSE(event->first);
}

TEST_CASE("a fetch is read from its line", "[trace]")
{
    const auto event = parse_trace_line("              dd-77      [000] .....   1.000001: "
                                        "smcfs_fetch: region 7 pos 0x0 bytes 131072");
    REQUIRE(event);
    CHECK(event->kind == TraceEvent::Kind::fetch);
    CHECK(event->region_id == 7);
    CHECK(event->bytes == 131072);
    CHECK(event->tid == 77);
}

TEST_CASE("the name of a program may look like anything", "[trace]")
{
    const std::string tail =
        "-55     [003] .....  12.5: smcfs_store: region 7 pos 0x10 bytes 8 tgid "
        "55 mapped 0 first 1";
    for (const std::string name :
         {"a-b", "a [001] b", "kworker/u8:1-ev", "x: smcfs_fetch:", "<...>", "-", "7-8"}) {
        CAPTURE(name);
        std::string line = "   ";
        line += name;
        line += tail;
        const auto event = parse_trace_line(line);
        REQUIRE(event);
        CHECK(event->command == name);
        CHECK(event->tid == 55);
        CHECK(event->first);
        CHECK_FALSE(event->mapped);
    }
}

TEST_CASE("lines that are no such events are passed over", "[trace]")
{
    for (const char* line :
         {"", "# tracer: nop", "CPU:1 [LOST 12 EVENTS]", "smcfs_store: region 7",
          "  x-1 [000] ..... 1.0: smcfs_acquire: region 7 start 0x0 end 0xfff err 0",
          "  x-1 [000] ..... 1.0: smcfs_store: region 7 pos 0x0 bytes 1 tgid 1",
          "  x-1 [000] ..... 1.0: smcfs_store: region ? pos 0x0 bytes 1 tgid 1 mapped 1 first 1",
          "  x-y [000] ..... 1.0: smcfs_fetch: region 7 pos 0x0 bytes 1",
          "  x-1 000 ..... 1.0: smcfs_fetch: region 7 pos 0x0 bytes 1"}) {
        CAPTURE(line);
        CHECK_FALSE(parse_trace_line(line));
    }
}

TEST_CASE("lost events are counted", "[trace]")
{
    CHECK(parse_lost_line("CPU:1 [LOST 12 EVENTS]") == 12U);
    CHECK_FALSE(parse_lost_line("CPU:1 [LOST many EVENTS]"));
    CHECK_FALSE(parse_lost_line("  x-1 [000] ..... 1.0: x: [LOST 12 EVENTS]"));
}

TEST_CASE("without tracefs, or the right to it, it is said what to do", "[trace]")
{
    const auto none = TraceInstance::create(0, "/nonexistent");
    REQUIRE_FALSE(none);
    CHECK(none.error().code == ENOENT);
    CHECK(none.error().what.find("mount -t tracefs") != std::string::npos);
}
