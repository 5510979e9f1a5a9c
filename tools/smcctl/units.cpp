// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
#include "units.hpp"

#include <array>
#include <charconv>
#include <cstdio>

namespace smc::ctl {
namespace {

// So that "16777216T" is seen to be too much, instead of wrapping.
__extension__ using Wide = unsigned __int128;

constexpr std::string_view kPrefixes = "KMGTPE";

bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

tl::unexpected<Error> no_size(std::string_view text)
{
    return fail(EINVAL, "\"" + std::string(text) +
                            "\" is no size: write bytes, or a number with K, " +
                            "M, G or T (powers of 1024), as 64M or 1G");
}

} // namespace

Result<uint64_t> parse_size(std::string_view text)
{
    // [digits][.digits][prefix][iB|B]; the fraction is scaled in integers, to be exact.
    size_t i = 0;
    Wide whole = 0;
    Wide fraction = 0;
    Wide divisor = 1;
    bool digits = false;
    for (; i < text.size() && is_digit(text[i]); i++, digits = true) {
        whole = whole * 10 + static_cast<unsigned>(text[i] - '0');
        if (whole > UINT64_MAX)
            return no_size(text);
    }
    if (i < text.size() && text[i] == '.') {
        for (i++; i < text.size() && is_digit(text[i]); i++, digits = true) {
            if (divisor > UINT64_MAX / 10)
                return no_size(text);
            fraction = fraction * 10 + static_cast<unsigned>(text[i] - '0');
            divisor *= 10;
        }
    }
    if (!digits)
        return no_size(text);
    unsigned shift = 0;
    if (i < text.size()) {
        size_t prefix = kPrefixes.find(static_cast<char>(text[i] & ~0x20));
        if (prefix != std::string_view::npos) {
            shift = 10 * (static_cast<unsigned>(prefix) + 1);
            i++;
        }
    }
    std::string_view unit = text.substr(i);
    if (!(unit.empty() || unit == "B" || (shift > 0 && unit == "iB")))
        return no_size(text);
    Wide scaled = fraction << shift;
    if (scaled % divisor != 0)
        return fail(EINVAL, "\"" + std::string(text) + "\" is no whole number of bytes");
    Wide bytes = (whole << shift) + scaled / divisor;
    if (bytes > UINT64_MAX)
        return no_size(text);
    return static_cast<uint64_t>(bytes);
}

Result<uint32_t> parse_mode(std::string_view text)
{
    std::string_view digits = text.starts_with("0o") ? text.substr(2) : text;
    uint32_t mode = 0;
    auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), mode, 8);
    if (error != std::errc() || end != digits.data() + digits.size() || mode > 0777)
        return fail(EINVAL, "\"" + std::string(text) +
                                "\" is no mode: write octal permission bits, " +
                                "0 to 0777, as 0640");
    return mode;
}

Result<bool> parse_switch(std::string_view text)
{
    for (std::string_view yes : {"on", "yes", "true", "1"}) {
        if (text == yes)
            return true;
    }
    for (std::string_view no : {"off", "no", "false", "0"}) {
        if (text == no)
            return false;
    }
    return fail(EINVAL, "\"" + std::string(text) + "\" is neither on nor off");
}

Result<uint64_t> parse_count(std::string_view text, uint64_t max)
{
    uint64_t value = 0;
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || value > max)
        return fail(EINVAL,
                    "\"" + std::string(text) + "\" is no number from 0 to " + std::to_string(max));
    return value;
}

std::string format_size(uint64_t bytes)
{
    if (bytes < 1024)
        return std::to_string(bytes);
    double value = static_cast<double>(bytes);
    size_t prefix = 0;
    for (value /= 1024; value >= 999.5 && prefix + 1 < kPrefixes.size(); value /= 1024)
        prefix++;
    std::array<char, 32> text{};
    snprintf(text.data(), text.size(), "%.3g%c", value, kPrefixes[prefix]);
    return text.data();
}

std::string format_ms(uint64_t ms)
{
    std::array<char, 64> text{};
    uint64_t s = ms / 1000;
    if (ms < 1000)
        snprintf(text.data(), text.size(), "%u ms", static_cast<unsigned>(ms));
    else if (s < 60)
        snprintf(text.data(), text.size(), "%.1f s", static_cast<double>(ms - ms % 100) / 1000);
    else if (s < 3600)
        snprintf(text.data(), text.size(), "%u min %u s", static_cast<unsigned>(s / 60),
                 static_cast<unsigned>(s % 60));
    else if (s < 86400)
        snprintf(text.data(), text.size(), "%u h %u min", static_cast<unsigned>(s / 3600),
                 static_cast<unsigned>(s / 60 % 60));
    else
        snprintf(text.data(), text.size(), "%llu d %u h",
                 static_cast<unsigned long long>(s / 86400), static_cast<unsigned>(s / 3600 % 24));
    return text.data();
}

std::string format_ns(uint64_t ns)
{
    constexpr std::array<const char*, 4> kUnits{"ns", "us", "ms", "s"};
    auto value = static_cast<double>(ns);
    size_t unit = 0;
    for (; value >= 999.5 && unit + 1 < kUnits.size(); value /= 1000)
        unit++;
    std::array<char, 40> text{};
    snprintf(text.data(), text.size(), unit > 0 && value < 9.95 ? "%.1f%s" : "%.0f%s", value,
             kUnits[unit]);
    return text.data();
}

std::string hex16(uint64_t value)
{
    std::array<char, 17> text{};
    snprintf(text.data(), text.size(), "%016llx", static_cast<unsigned long long>(value));
    return text.data();
}

} // namespace smc::ctl
