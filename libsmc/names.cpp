// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// Failure: every refusal is EINVAL (ENAMETOOLONG for length) and quotes what was given.
#include "names.hpp"

#include <algorithm>

#include <linux/smcfs.h>

namespace smc::client {
namespace {

bool has_control(std::string_view text)
{
    return std::any_of(text.begin(), text.end(),
                       [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
}

// Control characters must not reach the user's terminal by way of the message.
std::string quoted(std::string_view text)
{
    std::string out = "\"";
    for (char c : text)
        out += has_control({&c, 1}) ? '?' : c;
    return out + '"';
}

std::string squeeze_slashes(std::string_view path)
{
    std::string out;
    for (char c : path) {
        if (c != '/' || out.empty() || out.back() != '/')
            out += c;
    }
    if (out.size() > 1 && out.back() == '/')
        out.pop_back();
    return out;
}

Result<RegionName> checked(std::string_view node, std::string_view name)
{
    SMC_TRY(check_node_name(node));
    SMC_TRY(check_region_name(name));
    return RegionName{std::string(node), std::string(name)};
}

} // namespace

std::string RegionName::path() const
{
    return std::string(kMountPoint) + "/" + node + "/" + name;
}

Result<void> check_node_name(std::string_view node)
{
    if (node.empty())
        return fail(EINVAL, "a node's name is missing");
    if (node.size() > SMCFS_NODE_NAME_MAX)
        return fail(ENAMETOOLONG, "node name " + quoted(node) + " is longer than " +
                                      std::to_string(SMCFS_NODE_NAME_MAX) + " bytes");
    if (node == "." || node == ".." || has_control(node) ||
        node.find_first_of("/:") != std::string_view::npos)
        return fail(EINVAL, quoted(node) + " is no node name: it must be one path component " +
                                "without ':' and control characters");
    return {};
}

Result<void> check_region_name(std::string_view name)
{
    if (name.empty())
        return fail(EINVAL, "a region's name is missing");
    if (name.size() > SMCFS_REGION_NAME_MAX)
        return fail(ENAMETOOLONG, "region name " + quoted(name) + " is longer than " +
                                      std::to_string(SMCFS_REGION_NAME_MAX) + " bytes");
    if (has_control(name))
        return fail(EINVAL, "region name " + quoted(name) + " has control characters");
    size_t begin = 0;
    while (begin <= name.size()) {
        size_t end = std::min(name.find('/', begin), name.size());
        std::string_view part = name.substr(begin, end - begin);
        if (part.empty() || part == "." || part == "..")
            return fail(EINVAL, "region name " + quoted(name) + " has a component that is empty, " +
                                    "\".\" or \"..\"");
        begin = end + 1;
    }
    return {};
}

Result<RegionName> parse_region_name(std::string_view text)
{
    if (!text.empty() && text.front() == '/') {
        std::string path = squeeze_slashes(text);
        std::string prefix = std::string(kMountPoint) + "/";
        if (path.compare(0, prefix.size(), prefix) != 0)
            return fail(EINVAL, quoted(text) + " is not below " + std::string(kMountPoint) +
                                    ": give NODE:NAME or /smc/NODE/NAME");
        std::string_view rest = std::string_view(path).substr(prefix.size());
        size_t slash = rest.find('/');
        if (slash == std::string_view::npos)
            return fail(EINVAL, quoted(text) + " names a node, not a region: give NODE:NAME or " +
                                    "/smc/NODE/NAME");
        return checked(rest.substr(0, slash), rest.substr(slash + 1));
    }
    size_t colon = text.find(':');
    if (colon == std::string_view::npos)
        return fail(EINVAL, quoted(text) + " is no region: give NODE:NAME or /smc/NODE/NAME");
    return checked(text.substr(0, colon), text.substr(colon + 1));
}

} // namespace smc::client
