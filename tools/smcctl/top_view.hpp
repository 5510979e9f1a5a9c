// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// Owns: what top shows: the order of regions, the columns that fit, the lines of a screen. Rows are those
// of interval_row().
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "output.hpp"

namespace smc::ctl {

// What --sort takes, the first by default.
const std::vector<std::string>& top_sort_keys();

// The largest first, but names from a to z; equals by node and name.
void sort_rows(Json& rows, const std::string& key);

struct TopFrame {
    std::string time; // of day
    double interval_s = 0;
    std::string sort;
    Json rows; // sorted
};

// {"latency": {"fetch": "23us/140us", ...}} more, for tables.
Json with_latency_texts(Json row);

// The table, with as many columns as fit into so many characters; all of them for 0.
std::vector<std::string> top_table(const Json& rows, size_t width);

// A screen of at most so many lines and columns. What there is no room for is counted in its last line.
std::vector<std::string> top_screen(const TopFrame& frame, size_t height, size_t width);

} // namespace smc::ctl
