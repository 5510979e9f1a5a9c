// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
#include "output.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "units.hpp"

namespace smc::ctl {
namespace {

const Json* find(const Json& row, const std::string& key)
{
    const Json* at = &row;
    for (size_t begin = 0; begin <= key.size();) {
        size_t end = std::min(key.find('.', begin), key.size());
        if (!at->is_object())
            return nullptr;
        auto member = at->find(key.substr(begin, end - begin));
        if (member == at->end())
            return nullptr;
        at = &*member;
        begin = end + 1;
    }
    return at;
}

std::string plain(const Json& value)
{
    if (value.is_null())
        return {};
    if (value.is_boolean())
        return value.get<bool>() ? "yes" : "no";
    if (value.is_number_float()) {
        const auto number = value.get<double>();
        std::array<char, 352> text{}; // room for the largest double in full
        snprintf(text.data(), text.size(), std::fabs(number) < 1000 ? "%.3g" : "%.0f", number);
        return text.data();
    }
    if (!value.is_string())
        return value.dump(-1, ' ', false, Json::error_handler_t::replace);
    auto text = value.get<std::string>();
    // Names and reasons come from other machines; the terminal must not obey them.
    std::replace_if(
        text.begin(), text.end(),
        [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }, '?');
    return text;
}

std::string as_octal(uint64_t value)
{
    std::array<char, 32> text{};
    snprintf(text.data(), text.size(), "%04llo", static_cast<unsigned long long>(value));
    return text.data();
}

std::string joined(const Json& values)
{
    std::string text;
    for (const Json& value : values)
        text += (text.empty() ? "" : ",") + plain(value);
    return text;
}

std::string format(const Json& value, As as)
{
    if (as == As::list && value.is_array())
        return joined(value);
    if (!value.is_number_unsigned())
        return plain(value);
    auto number = value.get<uint64_t>();
    switch (as) {
    case As::size:
        return format_size(number);
    case As::ms:
        return format_ms(number);
    case As::s:
        return format_ms(number > UINT64_MAX / 1000 ? UINT64_MAX : number * 1000);
    case As::ns:
        return format_ns(number);
    case As::octal:
        return as_octal(number);
    default:
        return plain(value);
    }
}

// Code points, so that names in UTF-8 do not shift the columns to their right.
size_t width(const std::string& text)
{
    return static_cast<size_t>(
        std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

bool is_number(const Json& rows, const Column& column)
{
    return column.as != As::octal && std::any_of(rows.begin(), rows.end(), [&](const Json& row) {
               const Json* value = find(row, column.key);
               return value && value->is_number();
           });
}

} // namespace

std::string cell(const Json& row, const Column& column)
{
    const Json* value = find(row, column.key);
    std::string text = value ? format(*value, column.as) : std::string();
    return text.empty() ? "-" : text;
}

std::vector<std::string> table_lines(const Json& rows, const Columns& columns)
{
    std::vector<std::vector<std::string>> lines(1);
    for (const Column& column : columns)
        lines[0].push_back(column.title);
    for (const Json& row : rows) {
        auto& line = lines.emplace_back();
        for (const Column& column : columns)
            line.push_back(cell(row, column));
    }
    std::vector<size_t> widths(columns.size());
    for (const auto& line : lines) {
        for (size_t i = 0; i < line.size(); i++)
            widths[i] = std::max(widths[i], width(line[i]));
    }
    std::vector<bool> right(columns.size());
    for (size_t i = 0; i < columns.size(); i++)
        right[i] = is_number(rows, columns[i]);
    std::vector<std::string> out;
    for (const auto& line : lines) {
        std::string text;
        for (size_t i = 0; i < line.size(); i++) {
            std::string pad(widths[i] - width(line[i]), ' ');
            text += (i ? "  " : "") + (right[i] ? pad + line[i] : line[i] + pad);
        }
        text.erase(text.find_last_not_of(' ') + 1);
        out.push_back(std::move(text));
    }
    return out;
}

void Output::model(const Json& model)
{
    if (json_)
        out_ << model.dump(2, ' ', false, Json::error_handler_t::replace) << '\n';
}

void Output::model_line(const Json& model)
{
    if (json_)
        out_ << model.dump(-1, ' ', false, Json::error_handler_t::replace) << std::endl;
}

void Output::table(const Json& rows, const Columns& columns)
{
    if (json_)
        return;
    if (!rows.is_array() || rows.empty()) {
        out_ << "(none)\n";
        return;
    }
    for (const auto& line : table_lines(rows, columns))
        out_ << line << '\n';
}

void Output::record(const Json& object, const Columns& columns)
{
    if (json_)
        return;
    size_t widest = 0;
    for (const Column& column : columns)
        widest = std::max(widest, width(column.title));
    for (const Column& column : columns) {
        std::string text = cell(object, column);
        if (text != "-")
            out_ << column.title << ':' << std::string(widest - width(column.title) + 2, ' ')
                 << text << '\n';
    }
}

void Output::line(const std::string& text)
{
    if (!json_)
        out_ << text << '\n';
}

} // namespace smc::ctl
