// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
#include "top_view.hpp"

#include <algorithm>
#include <cstdio>

#include <array>

#include "units.hpp"

namespace smc::ctl {
namespace {

struct SortKey {
    std::string name;
    std::string pointer; // of the number in a row; empty: computed
};

// A member of "latency_ns" sorts by what is slow.
const std::vector<SortKey>& sort_keys()
{
    static const std::vector<SortKey> keys{
        {"traffic", ""},
        {"name", ""},
        {"fetch", "/per_second/fetch_bytes"},
        {"flush", "/per_second/flush_bytes"},
        {"faults", "/per_second/fetch_faults"},
        {"write_faults", "/per_second/write_faults"},
        {"amplification", "/amplification"},
        {"barriers", "/per_second/barriers"},
        {"fetch_latency", "/latency_ns/fetch/p99"},
        {"write_latency", "/latency_ns/write/p99"},
        {"fault_latency", "/latency_ns/fault/p99"},
        {"barrier_latency", "/latency_ns/barrier/p99"},
        {"dirty", "/dirty_bytes"},
    };
    return keys;
}

double number_at(const Json& row, const std::string& pointer)
{
    const Json::json_pointer path(pointer);
    if (!row.contains(path))
        return -1;
    const Json& value = row.at(path);
    return value.is_number() ? value.get<double>() : -1; // what is unknown comes last
}

double sort_value(const Json& row, const SortKey& key)
{
    if (key.name == "traffic")
        return number_at(row, "/per_second/fetch_bytes") +
               number_at(row, "/per_second/flush_bytes") +
               number_at(row, "/per_second/direct_bytes");
    return number_at(row, key.pointer);
}

std::pair<std::string, std::string> name_of(const Json& row)
{
    return {row.value("node", ""), row.value("name", "")};
}

struct TopColumn {
    Column column;
    unsigned keep; // the highest goes first when there is no room
};

const std::vector<TopColumn>& top_columns()
{
    static const std::vector<TopColumn> columns{
        {{"title", "REGION"}, 0},
        {{"per_second.fetch_bytes", "FETCH/s", As::size}, 1},
        {{"per_second.flush_bytes", "FLUSH/s", As::size}, 2},
        {{"per_second.direct_bytes", "DIRECT/s", As::size}, 12},
        {{"per_second.fetch_faults", "FAULT/s"}, 4},
        {{"per_second.write_faults", "WFAULT/s"}, 7},
        {{"amplification", "AMP"}, 5},
        {{"latency.fetch", "FETCH p50/p99"}, 3},
        {{"latency.write", "WRITE p50/p99"}, 6},
        {{"latency.fault", "FAULT p50/p99"}, 9},
        {{"per_second.barriers", "BARRIER/s"}, 10},
        {{"latency.barrier", "BARRIER p50/p99"}, 8},
        {{"dirty_bytes", "DIRTY", As::size}, 11},
        {{"per_second.errors", "ERROR/s"}, 13},
    };
    return columns;
}

std::string latency_text(const Json& latency)
{
    const auto text = [&](const char* key) {
        const Json value = latency.value(key, Json());
        return value.is_number_unsigned() ? format_ns(value.get<uint64_t>()) : "";
    };
    const std::string p50 = text("p50");
    return p50.empty() ? "" : p50 + "/" + text("p99");
}

// A region that is not as it should be says so beside its name.
std::string title_of(const Json& row)
{
    const std::string state = row.value("state", "active");
    return row.value("node", "") + ":" + row.value("name", "") +
           (state == "active" ? "" : " (" + state + ")");
}

// The first so many characters, which may be of several bytes each.
std::string cut(const std::string& text, size_t width)
{
    size_t at = 0;
    for (size_t used = 0; at < text.size(); used++) {
        if (used == width)
            break;
        for (at++; at < text.size() && (text[at] & 0xc0) == 0x80; at++) {}
    }
    return text.substr(0, at);
}

std::string sum_text(const Json& rows, const char* counter, As as)
{
    uint64_t sum = 0;
    for (const Json& row : rows)
        sum += row.value("per_second", Json::object()).value(counter, uint64_t{0});
    return cell({{"sum", sum}}, {"sum", "", as});
}

std::string status_line(const TopFrame& frame)
{
    std::array<char, 96> text{};
    snprintf(text.data(), text.size(), "smcctl top  %s  every %.1f s  %zu region%s by ",
             frame.time.c_str(), frame.interval_s, frame.rows.size(),
             frame.rows.size() == 1 ? "" : "s");
    return text.data() + frame.sort + "  (s sort, q quit)";
}

} // namespace

const std::vector<std::string>& top_sort_keys()
{
    static const std::vector<std::string> names = [] {
        std::vector<std::string> all;
        for (const auto& key : sort_keys())
            all.push_back(key.name);
        return all;
    }();
    return names;
}

void sort_rows(Json& rows, const std::string& key)
{
    const auto found = std::find_if(sort_keys().begin(), sort_keys().end(),
                                    [&](const SortKey& each) { return each.name == key; });
    const SortKey& by = found == sort_keys().end() ? sort_keys().front() : *found;
    std::stable_sort(rows.begin(), rows.end(), [&](const Json& a, const Json& b) {
        if (by.name != "name") {
            const double first = sort_value(a, by);
            const double second = sort_value(b, by);
            if (first != second)
                return first > second;
        }
        return name_of(a) < name_of(b);
    });
}

Json with_latency_texts(Json row)
{
    const Json latencies = row.value("latency_ns", Json::object());
    Json texts = Json::object();
    for (const auto& [name, latency] : latencies.items())
        texts[name] = latency_text(latency);
    row["latency"] = std::move(texts);
    row["title"] = title_of(row);
    return row;
}

std::vector<std::string> top_table(const Json& rows, size_t width)
{
    Json shown = Json::array();
    for (const Json& row : rows)
        shown.push_back(with_latency_texts(row));
    std::vector<TopColumn> columns = top_columns();
    while (true) {
        Columns plain;
        for (const auto& each : columns)
            plain.push_back(each.column);
        auto lines = table_lines(shown, plain);
        const bool fits = std::all_of(lines.begin(), lines.end(), [&](const std::string& line) {
            return cut(line, width).size() == line.size();
        });
        if (width == 0 || fits || columns.size() == 1)
            return lines;
        columns.erase(std::max_element(
            columns.begin(), columns.end(),
            [](const TopColumn& a, const TopColumn& b) { return a.keep < b.keep; }));
    }
}

std::vector<std::string> top_screen(const TopFrame& frame, size_t height, size_t width)
{
    std::vector<std::string> lines{
        status_line(frame),
        "all: fetch " + sum_text(frame.rows, "fetch_bytes", As::size) + "/s  flush " +
            sum_text(frame.rows, "flush_bytes", As::size) + "/s  faults " +
            sum_text(frame.rows, "fetch_faults", As::text) + "/s  write faults " +
            sum_text(frame.rows, "write_faults", As::text) + "/s  errors " +
            sum_text(frame.rows, "errors", As::text) + "/s",
        ""};
    // Those that have room decide which columns do.
    Json visible = frame.rows;
    if (visible.size() > height)
        visible.erase(visible.begin() + static_cast<std::ptrdiff_t>(height), visible.end());
    const auto table = top_table(visible, width);
    lines.insert(lines.end(), table.begin(), table.end());
    if (frame.rows.empty())
        lines.emplace_back("no region is attached");
    const size_t all = lines.size() + frame.rows.size() - visible.size();
    if (all > height && height > 0) {
        lines.resize(height - 1);
        lines.push_back("... and " + std::to_string(all - height + 1) + " more");
    }
    for (auto& line : lines)
        line = cut(line, width);
    return lines;
}

} // namespace smc::ctl
