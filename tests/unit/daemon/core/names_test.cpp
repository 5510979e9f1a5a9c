// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
#include "core/names.hpp"

#include <catch2/catch.hpp>

TEST_CASE("a node name is one harmless path component", "[names]")
{
    for (const auto* good : {"a", "gpu-001.rack_2", "9", "A.b"})
        CHECK(smc::check_node_name(good));
    for (const auto* bad : {"", ".", "..", ".git", "-x", "a/b", "a b", "a\n", "\xc3\xa9"})
        CHECK_FALSE(smc::check_node_name(bad));
    CHECK(smc::check_node_name(std::string(63, 'a')));
    CHECK(smc::check_node_name(std::string(64, 'a')).error().code == ENAMETOOLONG);
}

TEST_CASE("a region name is harmless components joined by single slashes", "[names]")
{
    for (const auto* good : {"a", "job/params", "job/1/x+y@2:3=4,5"})
        CHECK(smc::check_region_name(good));
    for (const auto* bad :
         {"", "/", "/a", "a/", "a//b", "a/../b", "./a", "a/.hidden", "a\\b", "a%", "a\x01"})
        CHECK_FALSE(smc::check_region_name(bad));
    CHECK(smc::check_region_name(std::string(191, 'a')));
    CHECK(smc::check_region_name(std::string(192, 'a')).error().code == ENAMETOOLONG);
    // A name may hold a NUL when it comes from JSON.
    CHECK_FALSE(smc::check_region_name(std::string_view("a\0b", 3)));
}

TEST_CASE("names clash when one is a directory above the other", "[names]")
{
    CHECK(smc::names_clash("job", "job/params"));
    CHECK(smc::names_clash("job/params", "job"));
    CHECK_FALSE(smc::names_clash("job", "jobs/params"));
    CHECK_FALSE(smc::names_clash("job", "job"));
}
