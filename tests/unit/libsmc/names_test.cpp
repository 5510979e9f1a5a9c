// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
#include "names.hpp"

#include <catch2/catch.hpp>

using smc::client::parse_region_name;
using smc::client::RegionName;

TEST_CASE("a region is named NODE:NAME or by its path, which mean the same", "[names]")
{
    RegionName expected{"gpu3", "job/params"};
    for (const char* text :
         {"gpu3:job/params", "/smc/gpu3/job/params", "//smc//gpu3///job/params/"}) {
        CAPTURE(text);
        auto parsed = parse_region_name(text);
        REQUIRE(parsed);
        CHECK(*parsed == expected);
    }
    CHECK(expected.text() == "gpu3:job/params");
    CHECK(expected.path() == "/smc/gpu3/job/params");
}

TEST_CASE("only the first colon divides", "[names]")
{
    auto parsed = parse_region_name("gpu3:a:b");
    REQUIRE(parsed);
    CHECK(parsed->name == "a:b");
}

TEST_CASE("names that could leave the mount or mean nothing are refused", "[names]")
{
    for (const char* text : {"",
                             "gpu3",
                             ":",
                             "gpu3:",
                             ":params",
                             "gpu3:/params",
                             "gpu3:a//b",
                             "gpu3:a/",
                             "gpu3:..",
                             "gpu3:a/../b",
                             "gpu3:a/./b",
                             "..:a",
                             ".:a",
                             "a/b:c",
                             "/",
                             "/smc",
                             "/smc/",
                             "/smc/gpu3",
                             "/smc/gpu3/",
                             "/smc/gpu3/../x",
                             "/smc/../etc/passwd",
                             "/etc/passwd",
                             "/smcx/gpu3/a",
                             "gpu3:a\nb",
                             "gpu\x1b[2J:a"}) {
        CAPTURE(text);
        auto parsed = parse_region_name(text);
        REQUIRE_FALSE(parsed);
        CHECK(parsed.error().code == EINVAL);
        CHECK_FALSE(parsed.error().what.empty());
    }
}

TEST_CASE("names are as long as the kernel takes them, and no longer", "[names]")
{
    std::string node(63, 'n');
    std::string name(191, 'r');
    CHECK(parse_region_name(node + ":" + name));
    auto long_node = parse_region_name(node + "n:" + name);
    REQUIRE_FALSE(long_node);
    CHECK(long_node.error().code == ENAMETOOLONG);
    auto long_name = parse_region_name(node + ":" + name + "r");
    REQUIRE_FALSE(long_name);
    CHECK(long_name.error().code == ENAMETOOLONG);
}

TEST_CASE("a refusal does not carry control characters to the terminal", "[names]")
{
    auto parsed = parse_region_name("gpu\x1b[2J:a");
    REQUIRE_FALSE(parsed);
    CHECK(parsed.error().what.find('\x1b') == std::string::npos);
}
