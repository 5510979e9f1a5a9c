// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// inspect: which pages of an attached region are here, and in what state.
#include <algorithm>
#include <memory>

#include <sys/ioctl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>

#include "cli.hpp"
#include "model.hpp"
#include "page_map.hpp"
#include "units.hpp"

namespace smc::ctl {
namespace {

constexpr unsigned kColumnsMax = 64; // a power of two, so that rows begin at round offsets
constexpr unsigned kRows = 16;
constexpr uint64_t kPageBytes = 4096;

// As many as fit, in powers of two.
unsigned columns_of_terminal()
{
    winsize size{};
    unsigned columns = kColumnsMax;
    constexpr unsigned kOffsetWidth = 14;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        while (columns > 16 && columns + kOffsetWidth > size.ws_col)
            columns /= 2;
    return columns;
}

Json runs_of(const std::vector<client::PageRun>& runs)
{
    Json rows = Json::array();
    for (const auto& run : runs)
        rows.push_back({{"offset", run.first * kPageBytes},
                        {"length", run.pages * kPageBytes},
                        {"state", page_state_name(run.state)}});
    return rows;
}

std::string padded(const std::string& text, size_t width)
{
    return std::string(width - std::min(width, text.size()), ' ') + text;
}

Result<int> inspect(const Context& context, const RegionName& name)
{
    auto kernel = SMC_TRY(client::Kernel::open());
    auto region = SMC_TRY(Context::attached(kernel, name));
    const auto runs = SMC_TRY(kernel.pages(region.id));
    const unsigned columns = columns_of_terminal();
    const PageMap map = draw(runs, region.size_bytes, columns, kRows);
    Json totals = Json::object();
    std::string legend;
    for (uint32_t state = SMCFS_PAGE_STATE_UNSPEC + 1; state <= SMCFS_PAGE_STATE_MAX; state++) {
        const uint64_t bytes = map.totals[state] * kPageBytes;
        totals[std::string(page_state_name(state))] = bytes;
        if (bytes != 0)
            legend += std::string(legend.empty() ? "" : "   ") + page_state_mark(state) + " " +
                      std::string(page_state_name(state)) + " " + format_size(bytes);
    }
    Output out = context.output();
    out.model({{"node", region.node},
               {"name", region.name},
               {"size", region.size_bytes},
               {"totals", totals},
               {"runs", runs_of(runs)}});
    uint64_t offset = 0;
    for (const auto& row : map.rows) {
        out.line(padded(format_size(offset), 10) + "  " + row);
        offset += map.cell_bytes * columns;
    }
    out.line("");
    out.line("one character is " + format_size(map.cell_bytes) + "   " + legend);
    return 0;
}

} // namespace

void add_inspect(CLI::App& app, Context& context)
{
    auto name = std::make_shared<RegionName>();
    CLI::App* verb =
        add_verb(app, context, "inspect", "A map of an attached region's pages here (root)",
                 [&context, name] { return inspect(context, *name); });
    add_region(*verb, *name)->required();
}

} // namespace smc::ctl
