// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
#include "config/reader.hpp"

#include <algorithm>
#include <charconv>
#include <numeric>

#include <fmt/format.h>

namespace smc {
namespace {

constexpr std::size_t kIssuesMax = 200; // a file that is no configuration at all need not list more
constexpr std::uint32_t kModeMax = 0777;

std::size_t edit_distance(std::string_view a, std::string_view b)
{
    std::vector<std::size_t> row(b.size() + 1);
    std::iota(row.begin(), row.end(), 0);
    for (std::size_t i = 0; i < a.size(); ++i) {
        std::size_t diagonal = row[0];
        row[0] = i + 1;
        for (std::size_t j = 0; j < b.size(); ++j) {
            const std::size_t substituted = diagonal + (a[i] == b[j] ? 0 : 1);
            diagonal = row[j + 1];
            row[j + 1] = std::min({substituted, diagonal + 1, row[j] + 1});
        }
    }
    return row.back();
}

std::string suggestion(std::string_view key, const std::set<std::string, std::less<>>& known)
{
    const std::string* best = nullptr;
    std::size_t best_distance = 4; // further away is another word
    for (const auto& candidate : known) {
        const auto distance = edit_distance(key.substr(0, 64), candidate);
        if (distance < best_distance && distance < candidate.size()) {
            best = &candidate;
            best_distance = distance;
        }
    }
    if (best != nullptr)
        return fmt::format("did you mean \"{}\"?", *best);
    return fmt::format("the keys here are {}", fmt::join(known, ", "));
}

std::string_view type_name(toml::node_type type)
{
    switch (type) {
    case toml::node_type::table:
        return "a table";
    case toml::node_type::array:
        return "an array";
    case toml::node_type::string:
        return "a string";
    case toml::node_type::integer:
        return "an integer";
    case toml::node_type::floating_point:
        return "a float";
    case toml::node_type::boolean:
        return "a boolean";
    default:
        return "a date or time";
    }
}

} // namespace

void IssueList::add(const toml::source_position& position, std::string what)
{
    if (issues_.size() < kIssuesMax)
        issues_.push_back(
            {fmt::format("{}:{}:{}", path_, position.line, position.column), std::move(what)});
}

const toml::node* TableReader::find(std::string_view key)
{
    known_.emplace(key);
    return table_.get(key);
}

std::string TableReader::name(std::string_view key) const
{
    return title_.empty() ? std::string(key) : fmt::format("{} {}", title_, key);
}

void TableReader::wrong_type(const toml::node& node, std::string_view key, std::string_view wanted)
{
    issues_.add(node.source().begin,
                fmt::format("{}: is {}, must be {}", name(key), type_name(node.type()), wanted));
}

std::optional<std::string> TableReader::string(std::string_view key)
{
    const auto* node = find(key);
    if (node == nullptr)
        return {};
    if (!node->is_string()) {
        wrong_type(*node, key, "a string: write it in quotes");
        return {};
    }
    return node->as_string()->get();
}

std::optional<bool> TableReader::boolean(std::string_view key)
{
    const auto* node = find(key);
    if (node == nullptr)
        return {};
    if (!node->is_boolean()) {
        wrong_type(*node, key, "true or false, without quotes");
        return {};
    }
    return node->as_boolean()->get();
}

std::optional<std::int64_t> TableReader::integer(std::string_view key, std::int64_t min,
                                                 std::int64_t max)
{
    const auto* node = find(key);
    if (node == nullptr)
        return {};
    if (!node->is_integer()) {
        wrong_type(*node, key, fmt::format("an integer from {} to {}, without quotes", min, max));
        return {};
    }
    const auto value = node->as_integer()->get();
    if (value < min || value > max) {
        issue(key, fmt::format("{} is out of range: use {} to {}", value, min, max));
        return {};
    }
    return value;
}

std::optional<std::uint64_t> TableReader::size(std::string_view key, std::uint64_t min,
                                               std::uint64_t max)
{
    const auto* node = find(key);
    if (node == nullptr)
        return {};
    std::optional<std::uint64_t> value;
    if (node->is_integer() && node->as_integer()->get() >= 0)
        value = static_cast<std::uint64_t>(node->as_integer()->get());
    else if (node->is_string())
        value = parse_size(node->as_string()->get());
    else if (!node->is_integer()) {
        wrong_type(*node, key, "a size, such as 4096 or \"512M\"");
        return {};
    }
    if (!value)
        issue(key, "is no size: use bytes as an integer, or a string such as \"512M\" "
                   "(K, M, G, T)");
    else if (*value < min || *value > max)
        issue(key, fmt::format("{} bytes is out of range: use {} to {}", *value, min, max));
    else
        return value;
    return {};
}

std::optional<std::vector<std::string>> TableReader::strings(std::string_view key)
{
    const auto* node = find(key);
    if (node == nullptr)
        return {};
    if (!node->is_array()) {
        wrong_type(*node, key, "an array of strings, such as [\"one\", \"two\"]");
        return {};
    }
    std::vector<std::string> out;
    for (const auto& element : *node->as_array()) {
        if (!element.is_string()) {
            wrong_type(element, key, "a string: write each element in quotes");
            return {};
        }
        out.push_back(element.as_string()->get());
    }
    return out;
}

std::optional<std::uint32_t> TableReader::mode(std::string_view key)
{
    const auto* node = find(key);
    if (node == nullptr)
        return {};
    std::int64_t value = -1;
    if (node->is_integer()) {
        value = node->as_integer()->get();
    } else if (node->is_string()) {
        const auto& text = node->as_string()->get();
        const auto* end = text.data() + text.size();
        if (text.empty() || std::from_chars(text.data(), end, value, 8).ptr != end)
            value = -1;
    } else {
        wrong_type(*node, key, "permission bits such as 0o640 or \"0640\"");
        return {};
    }
    if (value < 0 || value > kModeMax) {
        issue(key, "are no permission bits: use 0 to 0o777, in octal as 0o640 or \"0640\"");
        return {};
    }
    return static_cast<std::uint32_t>(value);
}

std::optional<std::string> TableReader::one_of(std::string_view key,
                                               const std::vector<std::string_view>& choices)
{
    auto value = string(key);
    if (value && std::find(choices.begin(), choices.end(), *value) == choices.end()) {
        issue(key, fmt::format("\"{}\" is not one of: {}", *value, fmt::join(choices, ", ")));
        return {};
    }
    return value;
}

const toml::table* TableReader::table(std::string_view key)
{
    const auto* node = find(key);
    if (node == nullptr)
        return nullptr;
    if (!node->is_table())
        wrong_type(*node, key, fmt::format("a table: write [{}]", key));
    return node->as_table();
}

std::vector<const toml::table*> TableReader::tables(std::string_view key)
{
    const auto* node = find(key);
    if (node == nullptr)
        return {};
    std::vector<const toml::table*> out;
    const auto wanted = fmt::format("an array of tables: write [[{}]]", key);
    if (!node->is_array()) {
        wrong_type(*node, key, wanted);
        return out;
    }
    for (const auto& element : *node->as_array()) {
        if (element.is_table())
            out.push_back(element.as_table());
        else
            wrong_type(element, key, wanted);
    }
    return out;
}

void TableReader::issue(std::string_view key, std::string what)
{
    const auto* node = table_.get(key);
    issues_.add(node != nullptr ? node->source().begin : table_.source().begin,
                fmt::format("{}: {}", name(key), what));
}

void TableReader::require(std::string_view key, std::string_view example)
{
    known_.emplace(key);
    if (table_.get(key) == nullptr)
        issue(key, fmt::format("is missing: add {}", example));
}

void TableReader::finish()
{
    for (const auto& [key, node] : table_)
        if (!known_.contains(key.str()))
            issues_.add(key.source().begin, fmt::format("{}: unknown key; {}", name(key.str()),
                                                        suggestion(key.str(), known_)));
}

std::optional<std::uint64_t> parse_size(std::string_view text)
{
    std::uint64_t value = 0;
    const auto* end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data(), end, value);
    if (error != std::errc{} || end - rest > 1)
        return {};
    if (rest == end)
        return value;
    constexpr std::string_view kUnits = "KMGT";
    const auto unit = kUnits.find(*rest);
    if (unit == kUnits.npos)
        return {};
    const auto shift = 10 * (unit + 1);
    if (value > (~std::uint64_t{0} >> shift))
        return {};
    return value << shift;
}

} // namespace smc
