// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
#include "page_map.hpp"

#include <algorithm>
#include <array>

namespace smc::ctl {
namespace {

constexpr uint64_t kPageBytes = 4096;

struct StateText {
    std::string_view name;
    char mark;
    int rank; // of what is in one cell the highest is shown
};

constexpr std::array<StateText, SMCFS_PAGE_STATE_MAX + 1> kStates{{
    {"unknown", '?', 0},
    {"absent", '.', 0},
    {"fetching", '<', 3},
    {"clean", '-', 1},
    {"dirty", '#', 4},
    {"in_flight", '>', 5},
    {"hot", '*', 2},
}};

const StateText& text_of(uint32_t state)
{
    return kStates[state <= SMCFS_PAGE_STATE_MAX ? state : 0U];
}

} // namespace

std::string_view page_state_name(uint32_t state)
{
    return text_of(state).name;
}

char page_state_mark(uint32_t state)
{
    return text_of(state).mark;
}

PageMap draw(const std::vector<client::PageRun>& runs, uint64_t region_bytes, unsigned columns,
             unsigned rows)
{
    const uint64_t pages = (region_bytes + kPageBytes - 1) / kPageBytes;
    const uint64_t cells_max = std::max<uint64_t>(uint64_t{columns} * rows, 1);
    const uint64_t cell_pages = std::max<uint64_t>((pages + cells_max - 1) / cells_max, 1);
    const uint64_t cells = (pages + cell_pages - 1) / cell_pages;

    PageMap map;
    map.cell_bytes = cell_pages * kPageBytes;
    map.totals.assign(SMCFS_PAGE_STATE_MAX + 1, 0);
    map.totals[SMCFS_PAGE_ABSENT] = pages;
    std::vector<uint32_t> shown(cells, SMCFS_PAGE_ABSENT);
    for (const auto& run : runs) {
        if (run.first >= pages || run.pages == 0)
            continue;
        const uint64_t length = std::min<uint64_t>(run.pages, pages - run.first);
        const uint32_t state = run.state <= SMCFS_PAGE_STATE_MAX ? run.state : 0U;
        map.totals[state] += length;
        map.totals[SMCFS_PAGE_ABSENT] -= std::min(length, map.totals[SMCFS_PAGE_ABSENT]);
        for (uint64_t cell = run.first / cell_pages; cell <= (run.first + length - 1) / cell_pages;
             cell++)
            if (text_of(state).rank > text_of(shown[cell]).rank)
                shown[cell] = state;
    }
    for (uint64_t cell = 0; cell < cells; cell++) {
        if (cell % std::max(columns, 1U) == 0)
            map.rows.emplace_back();
        map.rows.back() += page_state_mark(shown[cell]);
    }
    return map;
}

} // namespace smc::ctl
