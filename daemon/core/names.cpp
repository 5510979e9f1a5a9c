// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
#include "core/names.hpp"

#include <fmt/format.h>
#include <linux/smcfs.h>

namespace smc {
namespace {

constexpr std::string_view kNodeExtra = "._-";
constexpr std::string_view kRegionExtra = "._-+@:=,";

// Not isalnum(): that one depends on the locale.
bool is_alphanumeric(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

bool is_component(std::string_view part, std::string_view extra)
{
    if (part.empty() || !is_alphanumeric(part.front()))
        return false;
    for (const char c : part)
        if (!is_alphanumeric(c) && extra.find(c) == std::string_view::npos)
            return false;
    return true;
}

// What came from outside, cut to a length that fits into a log line, odd bytes replaced.
std::string printable(std::string_view text)
{
    constexpr std::size_t kShown = 80;
    std::string shown(text.substr(0, kShown));
    for (char& c : shown)
        if (c < 0x20 || c > 0x7e)
            c = '?';
    return text.size() > kShown ? shown + "..." : shown;
}

} // namespace

Result<void> check_node_name(std::string_view name)
{
    if (name.size() > SMCFS_NODE_NAME_MAX)
        return fail(ENAMETOOLONG, fmt::format("node name \"{}\" is longer than {} bytes",
                                              printable(name), SMCFS_NODE_NAME_MAX));
    if (!is_component(name, kNodeExtra))
        return fail(EINVAL, fmt::format("\"{}\" is no node name: use letters, digits, '.', '_', "
                                        "'-', and start with a letter or digit",
                                        printable(name)));
    return {};
}

Result<void> check_region_name(std::string_view name)
{
    if (name.size() > SMCFS_REGION_NAME_MAX)
        return fail(ENAMETOOLONG, fmt::format("region name \"{}\" is longer than {} bytes",
                                              printable(name), SMCFS_REGION_NAME_MAX));
    std::size_t start = 0;
    while (true) {
        const auto slash = name.find('/', start);
        const auto part = name.substr(start, slash == name.npos ? name.npos : slash - start);
        if (!is_component(part, kRegionExtra))
            return fail(EINVAL,
                        fmt::format("\"{}\" is no region name: use components of letters, digits "
                                    "and any of {} that start with a letter or digit, joined by "
                                    "single '/'",
                                    printable(name), kRegionExtra));
        if (slash == name.npos)
            return {};
        start = slash + 1;
    }
}

bool names_clash(std::string_view a, std::string_view b)
{
    const auto [shorter, longer] = a.size() < b.size() ? std::pair{a, b} : std::pair{b, a};
    return longer.size() > shorter.size() && longer.starts_with(shorter) &&
           longer[shorter.size()] == '/';
}

} // namespace smc
