// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
#include "config/hostlist.hpp"

#include <catch2/catch.hpp>

using Names = std::vector<std::string>;

TEST_CASE("ranges expand in the order written, leading zeros set the width", "[hostlist]")
{
    CHECK(*smc::expand_hostlist("gpu[008-011]") == Names{"gpu008", "gpu009", "gpu010", "gpu011"});
    CHECK(*smc::expand_hostlist("n[9-10]") == Names{"n9", "n10"});
    CHECK(*smc::expand_hostlist("n[1,3-4]x,other") == Names{"n1x", "n3x", "n4x", "other"});
    CHECK(*smc::expand_hostlist("r[1-2]n[1-2]") == Names{"r1n1", "r1n2", "r2n1", "r2n2"});
    CHECK(smc::expand_hostlist("gpu[001-512]")->size() == 512);
}

TEST_CASE("a malformed host list is an error that says why", "[hostlist]")
{
    for (const auto* bad :
         {"", ",", "a,", "[", "a[", "a]", "a[]", "a[1-]", "a[-1]", "a[2-1]", "a[1,]", "a[x]",
          "a[[1]]", "a[1234567890]", "a b", "../x", ".git", "a/b"}) {
        INFO(bad);
        const auto names = smc::expand_hostlist(bad);
        REQUIRE_FALSE(names);
        CHECK(names.error().code == EINVAL);
    }
}

TEST_CASE("a host list is bounded", "[hostlist]")
{
    CHECK(smc::expand_hostlist("n[1-65536]")->size() == smc::kHostlistMax);
    CHECK_FALSE(smc::expand_hostlist("n[0-65536]"));
    CHECK_FALSE(smc::expand_hostlist("n[0-999999999]"));
    CHECK_FALSE(smc::expand_hostlist("n[1-99999]m[1-99999]"));
}
