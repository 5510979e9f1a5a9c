// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
#include "page_map.hpp"

#include <catch2/catch.hpp>

using smc::ctl::draw;
using Rows = std::vector<std::string>;

TEST_CASE("a small region is drawn page by page", "[page_map]")
{
    const auto map = draw({{0, 1, SMCFS_PAGE_CLEAN},
                           {1, 2, SMCFS_PAGE_DIRTY},
                           {4, 1, SMCFS_PAGE_INFLIGHT},
                           {7, 1, SMCFS_PAGE_FETCHING}},
                          9 * 4096 - 1, 4, 4);
    CHECK(map.cell_bytes == 4096);
    CHECK(map.rows == Rows{"-##.", ">..<", "."});
    CHECK(map.totals[SMCFS_PAGE_ABSENT] == 4);
    CHECK(map.totals[SMCFS_PAGE_DIRTY] == 2);
}

TEST_CASE("a cell of many pages shows what is least at rest", "[page_map]")
{
    const auto map = draw({{0, 16, SMCFS_PAGE_CLEAN},
                           {16, 1, SMCFS_PAGE_DIRTY},
                           {17, 1, SMCFS_PAGE_INFLIGHT},
                           {20, 44, SMCFS_PAGE_CLEAN},
                           {63, 1, SMCFS_PAGE_DIRTY}},
                          64UL * 4096, 2, 2);
    CHECK(map.cell_bytes == 16UL * 4096);
    CHECK(map.rows == Rows{"->", "-#"});
}

TEST_CASE("the largest region fits, and what lies outside of it is passed over", "[page_map]")
{
    const auto map = draw({{UINT64_MAX, 5, SMCFS_PAGE_DIRTY}, {1ULL << 32, 1, SMCFS_PAGE_DIRTY}},
                          SMCFS_REGION_SIZE_MAX, 64, 16);
    CHECK(map.rows.size() == 16);
    CHECK(map.rows[0] == std::string(64, '.'));
    CHECK(map.totals[SMCFS_PAGE_DIRTY] == 0);
    CHECK(draw({}, 1, 64, 16).rows == Rows{"."});
}
