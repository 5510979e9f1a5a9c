// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// Reads one TOML table key by key and notes everything that is wrong with it: wrong types, values
// out of range, and, at the end, keys that nobody asked for.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <toml++/toml.h>

#include "config.hpp"

namespace smc {

// Collects what is wrong, with its place.
class IssueList {
public:
    explicit IssueList(std::string_view path) : path_(path) {}
    void add(const toml::source_position& position, std::string what);
    [[nodiscard]] const std::vector<ConfigIssue>& all() const { return issues_; }

private:
    std::string path_;
    std::vector<ConfigIssue> issues_;
};

class TableReader {
public:
    // title as in the file: "[control]", or "" for the top.
    TableReader(const toml::table& table, std::string title, IssueList& issues)
        : table_(table), title_(std::move(title)), issues_(issues)
    {}

    std::optional<std::string> string(std::string_view key);
    std::optional<bool> boolean(std::string_view key);
    std::optional<std::int64_t> integer(std::string_view key, std::int64_t min, std::int64_t max);
    // Bytes: an integer, or a string such as "512M" (K, M, G, T: powers of 1024).
    std::optional<std::uint64_t> size(std::string_view key, std::uint64_t min, std::uint64_t max);
    std::optional<std::vector<std::string>> strings(std::string_view key);
    // Permission bits: 0o640, or "0640" or "640".
    std::optional<std::uint32_t> mode(std::string_view key);
    std::optional<std::string> one_of(std::string_view key,
                                      const std::vector<std::string_view>& choices);
    const toml::table* table(std::string_view key);
    std::vector<const toml::table*> tables(std::string_view key);

    [[nodiscard]] bool has(std::string_view key) const { return table_.get(key) != nullptr; }

    // For checks that span keys. Without the key the table's own place is named.
    void issue(std::string_view key, std::string what);
    void require(std::string_view key, std::string_view example);
    // After the last key was read: reports the others.
    void finish();

    template <class T>
    void assign(T& target, std::optional<std::int64_t> value)
    {
        if (value)
            target = static_cast<T>(*value);
    }

private:
    const toml::node* find(std::string_view key);
    std::string name(std::string_view key) const;
    void wrong_type(const toml::node& node, std::string_view key, std::string_view wanted);

    const toml::table& table_;
    std::string title_;
    IssueList& issues_;
    std::set<std::string, std::less<>> known_;
};

// "1536", "512M", "1.5G" is not one; nullopt when it is no size or beyond 64 bits.
std::optional<std::uint64_t> parse_size(std::string_view text);

} // namespace smc
