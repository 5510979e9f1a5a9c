// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
#include "units.hpp"

#include <catch2/catch.hpp>

using namespace smc::ctl;

TEST_CASE("sizes are powers of 1024, exact, in any usual spelling", "[units]")
{
    CHECK(parse_size("0") == 0U);
    CHECK(parse_size("4096") == 4096U);
    CHECK(parse_size("4096B") == 4096U);
    CHECK(parse_size("64K") == 64U << 10);
    CHECK(parse_size("64k") == 64U << 10);
    CHECK(parse_size("64M") == 64U << 20);
    CHECK(parse_size("1G") == 1U << 30);
    CHECK(parse_size("1GiB") == 1U << 30);
    CHECK(parse_size("1.5G") == 3U << 29);
    CHECK(parse_size("16T") == uint64_t{16} << 40);
    CHECK(parse_size("18446744073709551615") == UINT64_MAX);
}

TEST_CASE("what is no size is refused, nothing wraps", "[units]")
{
    for (const char* text : {"", "G", "-1", "+1", "1X", "1 G", "1GB1", "0x10", "1e3", ".", "1..5",
                             "18446744073709551616", "16777216T", "99999999999999999999999999G",
                             "0.3K", "1.5", "1iB"}) {
        CAPTURE(text);
        auto parsed = parse_size(text);
        REQUIRE_FALSE(parsed);
        CHECK(parsed.error().code == EINVAL);
        CHECK(parsed.error().what.find('"' + std::string(text) + '"') != std::string::npos);
    }
}

TEST_CASE("modes are octal permission bits", "[units]")
{
    CHECK(parse_mode("0600") == 0600U);
    CHECK(parse_mode("600") == 0600U);
    CHECK(parse_mode("0o644") == 0644U);
    CHECK(parse_mode("0") == 0U);
    for (const char* text : {"", "0o", "1000", "04755", "8", "-1", "rw", "0600 "}) {
        CAPTURE(text);
        CHECK_FALSE(parse_mode(text));
    }
}

TEST_CASE("switches and counts", "[units]")
{
    CHECK(parse_switch("on") == true);
    CHECK(parse_switch("0") == false);
    CHECK_FALSE(parse_switch("On"));
    CHECK_FALSE(parse_switch(""));
    CHECK(parse_count("100", 100) == 100U);
    CHECK_FALSE(parse_count("101", 100));
    CHECK_FALSE(parse_count("", 100));
    CHECK_FALSE(parse_count("-1"));
    CHECK_FALSE(parse_count("1.0"));
}

TEST_CASE("sizes and times are written for people", "[units]")
{
    CHECK(format_size(0) == "0");
    CHECK(format_size(1023) == "1023");
    CHECK(format_size(1024) == "1K");
    CHECK(format_size((1U << 20) - 1) == "1M");
    CHECK(format_size(uint64_t{3} << 29) == "1.5G");
    CHECK(format_size(UINT64_MAX) == "16E");
    CHECK(format_ms(0) == "0 ms");
    CHECK(format_ms(999) == "999 ms");
    CHECK(format_ms(3449) == "3.4 s");
    CHECK(format_ms(125000) == "2 min 5 s");
    CHECK(format_ms(uint64_t{11520} * 1000) == "3 h 12 min");
    CHECK(format_ms(uint64_t{26} * 3600 * 1000) == "1 d 2 h");
    CHECK(hex16(0x8a1c) == "0000000000008a1c");
}

TEST_CASE("a size that was written is read as what it was, up to 1023 units", "[units]")
{
    for (uint64_t bytes : {uint64_t{1}, uint64_t{512}, uint64_t{4096}, uint64_t{1} << 20,
                           uint64_t{3} << 30, uint64_t{16} << 40, uint64_t{1} << 63}) {
        CAPTURE(bytes);
        CHECK(parse_size(format_size(bytes)) == bytes);
    }
}

TEST_CASE("times below a second have the unit that suits them", "[units]")
{
    CHECK(format_ns(0) == "0ns");
    CHECK(format_ns(840) == "840ns");
    CHECK(format_ns(999) == "999ns");
    CHECK(format_ns(1000) == "1.0us");
    CHECK(format_ns(9949) == "9.9us");
    CHECK(format_ns(9950) == "10us");
    CHECK(format_ns(23400) == "23us");
    CHECK(format_ns(999499) == "999us");
    CHECK(format_ns(999500) == "1.0ms");
    CHECK(format_ns(1200000) == "1.2ms");
    CHECK(format_ns(uint64_t{60129542144}) == "60s");
}
