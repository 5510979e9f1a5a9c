// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// Owns: the picture of a region's shadow pages.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kernel_model.hpp"

namespace smc::ctl {

struct PageMap {
    uint64_t cell_bytes = 0;       // what one character stands for
    std::vector<std::string> rows; // one character a cell
    std::vector<uint64_t> totals;  // pages, by enum smcfs_page_state
};

// A region of so many bytes in at most rows * columns cells of whole pages. A cell shows the state that
// is least at rest of all that are in it.
PageMap draw(const std::vector<client::PageRun>& runs, uint64_t region_bytes, unsigned columns,
             unsigned rows);

// By enum smcfs_page_state: "clean"; '-'.
std::string_view page_state_name(uint32_t state);
char page_state_mark(uint32_t state);

} // namespace smc::ctl
