// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
#include "config/hostlist.hpp"

#include <charconv>
#include <cstdint>

#include <fmt/format.h>

#include "core/names.hpp"

namespace smc {
namespace {

constexpr std::size_t kDigitsMax = 9; // of a number in brackets: fits into 32 bits

tl::unexpected<Error> malformed(std::string_view text, std::string_view why)
{
    return fail(EINVAL, fmt::format("host list \"{}\": {}", text.substr(0, 80), why));
}

Result<std::uint32_t> number(std::string_view digits, std::string_view text)
{
    std::uint32_t value = 0;
    const auto* end = digits.data() + digits.size();
    if (digits.empty() || digits.size() > kDigitsMax ||
        std::from_chars(digits.data(), end, value).ptr != end)
        return malformed(text, fmt::format("\"{}\" is no number of at most {} digits",
                                           digits.substr(0, 20), kDigitsMax));
    return value;
}

// "3" or "001-512", appended to each prefix.
Result<void> expand_range(std::string_view range, std::string_view text,
                          const std::vector<std::string>& prefixes, std::vector<std::string>& out)
{
    const auto dash = range.find('-');
    const auto first_digits = range.substr(0, dash);
    const auto first = SMC_TRY(number(first_digits, text));
    const auto last = dash == range.npos ? first : SMC_TRY(number(range.substr(dash + 1), text));
    if (last < first)
        return malformed(text, fmt::format("the range \"{}\" runs backwards", range));
    for (const auto& prefix : prefixes) {
        for (std::uint64_t n = first; n <= last; ++n) {
            if (out.size() >= kHostlistMax)
                return malformed(text, fmt::format("more than {} names", kHostlistMax));
            out.push_back(fmt::format("{}{:0{}}", prefix, n, first_digits.size()));
        }
    }
    return {};
}

// "1-3,7" applied to all prefixes: prefix by prefix, so that the order is the one written.
Result<std::vector<std::string>> expand_brackets(std::string_view inside, std::string_view text,
                                                 const std::vector<std::string>& prefixes)
{
    std::vector<std::string> out;
    for (const auto& prefix : prefixes) {
        std::size_t start = 0;
        while (true) {
            const auto comma = inside.find(',', start);
            const auto range =
                inside.substr(start, comma == inside.npos ? inside.npos : comma - start);
            SMC_TRY(expand_range(range, text, {prefix}, out));
            if (comma == inside.npos)
                break;
            start = comma + 1;
        }
    }
    return out;
}

// One element of the list: no comma outside of brackets.
Result<std::vector<std::string>> expand_pattern(std::string_view pattern, std::string_view text)
{
    std::vector<std::string> names{""};
    while (!pattern.empty()) {
        const auto open = pattern.find('[');
        const auto literal = pattern.substr(0, open);
        if (literal.find(']') != literal.npos)
            return malformed(text, "a ']' without '['");
        for (auto& name : names)
            name += literal;
        if (open == pattern.npos)
            break;
        const auto close = pattern.find(']', open);
        if (close == pattern.npos)
            return malformed(text, "a '[' without ']'");
        names = SMC_TRY(expand_brackets(pattern.substr(open + 1, close - open - 1), text, names));
        pattern.remove_prefix(close + 1);
    }
    return names;
}

std::size_t element_length(std::string_view text)
{
    int depth = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] == '[')
            ++depth;
        else if (text[i] == ']')
            --depth;
        else if (text[i] == ',' && depth == 0)
            return i;
    }
    return text.size();
}

} // namespace

Result<std::vector<std::string>> expand_hostlist(std::string_view text)
{
    std::vector<std::string> out;
    std::string_view rest = text;
    while (true) {
        const auto length = element_length(rest);
        for (auto& name : SMC_TRY(expand_pattern(rest.substr(0, length), text))) {
            if (auto valid = check_node_name(name); !valid)
                return malformed(text, valid.error().what);
            if (out.size() >= kHostlistMax)
                return malformed(text, fmt::format("more than {} names", kHostlistMax));
            out.push_back(std::move(name));
        }
        if (length == rest.size())
            return out;
        rest.remove_prefix(length + 1);
    }
}

} // namespace smc
