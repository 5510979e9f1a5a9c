// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
#include "advice.hpp"

#include <algorithm>
#include <array>
#include <cstdio>

#include "units.hpp"

namespace smc::ctl {
namespace {

constexpr uint64_t kPageBytes = 4096;
constexpr uint32_t kWordBytes = 8; // who writes to one of them writes to the same place

// A, then B, then A, then B: that one thread sets up what another one works on is no contention.
constexpr uint64_t kTurnsMin = 3;
constexpr size_t kContendedMax = 100; // entries of a report
constexpr uint64_t kEpochsMin = 2;    // what was dirty once is not kept dirtying
constexpr size_t kDirtiedMax = 10000; // ranges of a report
constexpr size_t kShownMax = 10;      // of them for people
constexpr size_t kPlacesMax = 16;     // of a thread in a page
constexpr size_t kWritersMax = 64;    // of a page
constexpr size_t kPagesMax = 1U << 18;

// What is called much, in order, and over and over.
constexpr uint64_t kBulkBytes = 8U << 20;
constexpr double kInOrderMin = 0.9;
constexpr double kRoundsMin = 2.0;
constexpr double kWholeMax = 1.25; // bytes sent per byte changed

bool overlap(const Place& a, const Place& b)
{
    return a.begin / kWordBytes <= (b.end - 1) / kWordBytes &&
           b.begin / kWordBytes <= (a.end - 1) / kWordBytes;
}

bool share_a_place(const PageWriter& a, const PageWriter& b)
{
    return std::any_of(a.places.begin(), a.places.end(), [&](const Place& place) {
        return std::any_of(b.places.begin(), b.places.end(),
                           [&](const Place& other) { return overlap(place, other); });
    });
}

bool same_place(const WatchedPage& page)
{
    for (auto a = page.writers.begin(); a != page.writers.end(); ++a)
        for (auto b = std::next(a); b != page.writers.end(); ++b)
            if (share_a_place(a->second, b->second))
                return true;
    return false;
}

Json places_model(const std::vector<Place>& places)
{
    Json out = Json::array();
    for (const auto& place : places)
        out.push_back({{"offset", place.begin}, {"length", place.end - place.begin}});
    return out;
}

// One entry, of a page; pages that are like it and follow it are added.
Json entry_of(uint64_t index, const WatchedPage& page)
{
    Json writers = Json::array();
    std::set<pid_t> processes;
    for (const auto& [tid, writer] : page.writers) {
        processes.insert(writer.pid);
        writers.push_back({{"pid", writer.pid},
                           {"tid", tid},
                           {"command", writer.command},
                           {"times", writer.times},
                           {"places", places_model(writer.places)}});
    }
    return {{"offset", index * kPageBytes},   {"length", kPageBytes},
            {"epochs", page.epochs},          {"turns", page.turns},
            {"threads", page.writers.size()}, {"processes", processes.size()},
            {"same_place", same_place(page)}, {"writers", writers}};
}

bool same_threads(const Json& a, const Json& b)
{
    return a["same_place"] == b["same_place"] && a["writers"].size() == b["writers"].size() &&
           std::equal(a["writers"].begin(), a["writers"].end(), b["writers"].begin(),
                      [](const Json& x, const Json& y) { return x["tid"] == y["tid"]; });
}

void join(Json& entry, const Json& next)
{
    entry["length"] = entry["length"].get<uint64_t>() + kPageBytes;
    for (const char* sum : {"epochs", "turns"})
        entry[sum] = entry[sum].get<uint64_t>() + next[sum].get<uint64_t>();
    for (size_t i = 0; i < next["writers"].size(); i++) {
        Json& times = entry["writers"][i]["times"];
        times = times.get<uint64_t>() + next["writers"][i]["times"].get<uint64_t>();
    }
}

std::string percent(double share)
{
    std::array<char, 16> text{};
    snprintf(text.data(), text.size(), "%.0f %%", share * 100);
    return text.data();
}

std::string plural(uint64_t count, const std::string& noun)
{
    return std::to_string(count) + " " + noun + (count == 1 ? "" : noun.back() == 's' ? "es" : "s");
}

std::string places_text(const Json& places)
{
    std::string text;
    for (const Json& place : places) {
        const auto begin = place["offset"].get<uint32_t>();
        const auto length = place["length"].get<uint32_t>();
        text += (text.empty() ? "" : ", ") + std::to_string(begin) +
                (length > 1 ? "-" + std::to_string(begin + length - 1) : "");
    }
    return text;
}

void contended_lines(const Json& entry, std::vector<std::string>& lines)
{
    const auto offset = entry["offset"].get<uint64_t>();
    const auto length = entry["length"].get<uint64_t>();
    const auto processes = entry["processes"].get<uint64_t>();
    const std::string who =
        processes > 1 ? plural(processes, "process")
                      : plural(entry["threads"].get<uint64_t>(), "thread") + " of a process";
    lines.push_back((length > kPageBytes ? "  pages at " + std::to_string(offset) + " to " +
                                               std::to_string(offset + length - 1)
                                         : "  page at " + std::to_string(offset)) +
                    ": " + plural(entry["epochs"].get<uint64_t>(), "time") + " dirtied by " + who +
                    ", in turns " + plural(entry["turns"].get<uint64_t>(), "time"));
    for (const Json& writer : entry["writers"]) {
        std::string line = "    " + cell(writer, {"command", ""}) + ", PID " +
                           std::to_string(writer["pid"].get<pid_t>());
        if (writer["tid"] != writer["pid"])
            line += ", thread " + std::to_string(writer["tid"].get<pid_t>());
        line += ": " + plural(writer["times"].get<uint64_t>(), "time");
        if (length == kPageBytes)
            line += ", at " + places_text(writer["places"]) + " in the page";
        lines.push_back(std::move(line));
    }
    lines.emplace_back(
        entry["same_place"] == true
            ? "    They write to the same place. A flag or a counter: smc_publish(3), "
              "smc_fetch_add(3), which leave the page clean. Else: let one of them write."
            : "    They write to different places: pages of their own (data padded to 4096 bytes) "
              "would not be sent and faulted for the others' changes.");
}

} // namespace

void Streams::add(uint64_t begin, uint64_t end)
{
    all_++;
    auto at = std::find(ends_.begin(), ends_.end(), begin);
    if (at != ends_.end()) {
        continued_++;
        ends_.erase(at);
    } else if (ends_.size() == kStreams) {
        ends_.pop_back();
    }
    ends_.insert(ends_.begin(), end);
}

double Streams::share() const
{
    return all_ == 0 ? 0 : static_cast<double>(continued_) / static_cast<double>(all_);
}

void RegionWatch::add(const TraceEvent& event)
{
    if (event.bytes == 0 || event.bytes > UINT64_MAX - event.pos)
        return;
    const uint64_t end = event.pos + event.bytes;
    const uint64_t first = event.pos / kPageBytes;
    const uint64_t last = (end - 1) / kPageBytes;
    if (event.kind == TraceEvent::Kind::fetch) {
        fetched_bytes_ += event.bytes;
        fetched_.add(event.pos, end);
        for (uint64_t page = first; page <= last && fetched_pages_.size() < kPagesMax; page++)
            fetched_pages_.insert(page);
        return;
    }
    stores_++;
    for (uint64_t page = first; page <= last; page++) {
        const uint64_t begin = page * kPageBytes;
        store(page,
              {static_cast<uint32_t>(std::max(event.pos, begin) - begin),
               static_cast<uint32_t>(std::min(end - begin, kPageBytes))},
              event);
    }
}

void RegionWatch::store(uint64_t index, Place place, const TraceEvent& event)
{
    if (pages_.size() >= kPagesMax && pages_.find(index) == pages_.end()) {
        pages_left_out_ = true;
        return;
    }
    WatchedPage& page = pages_[index];
    // A process faults once before the page is sent; so again means that it was. A large folio is
    // dirty already when its second page is stored to.
    if (page.epochs == 0 || event.first ||
        (event.mapped && page.in_epoch.find(event.pid) != page.in_epoch.end())) {
        page.epochs++;
        page.in_epoch.clear();
        stored_pages_++;
        stored_.add(index, index + 1);
    }
    page.in_epoch.insert(event.pid);
    if (page.writers.size() >= kWritersMax && page.writers.find(event.tid) == page.writers.end())
        return;
    if (page.last != 0 && page.last != event.tid)
        page.turns++;
    page.last = event.tid;
    PageWriter& writer = page.writers[event.tid];
    writer.pid = event.pid;
    writer.command = event.command;
    writer.times++;
    if (writer.places.size() < kPlacesMax &&
        std::find(writer.places.begin(), writer.places.end(), place) == writer.places.end())
        writer.places.push_back(place);
}

Json RegionWatch::contended() const
{
    std::vector<Json> entries;
    for (const auto& [index, page] : pages_) {
        if (page.writers.size() < 2 || page.turns < kTurnsMin || page.epochs < kEpochsMin)
            continue;
        Json entry = entry_of(index, page);
        if (!entries.empty()) {
            Json& before = entries.back();
            if (before["offset"].get<uint64_t>() + before["length"].get<uint64_t>() ==
                    index * kPageBytes &&
                same_threads(before, entry)) {
                join(before, entry);
                continue;
            }
        }
        entries.push_back(std::move(entry));
    }
    std::stable_sort(entries.begin(), entries.end(), [](const Json& a, const Json& b) {
        return a["turns"].get<uint64_t>() > b["turns"].get<uint64_t>();
    });
    if (entries.size() > kContendedMax)
        entries.resize(kContendedMax);
    return entries;
}

Json RegionWatch::dirtied() const
{
    Json ranges = Json::array();
    uint64_t next = 0; // page that the last range would go on with
    for (const auto& [index, page] : pages_) {
        if (page.epochs < kEpochsMin)
            continue;
        if (!ranges.empty() && index == next) {
            Json& length = ranges.back()["length"];
            length = length.get<uint64_t>() + kPageBytes;
        } else if (ranges.size() == kDirtiedMax) {
            break;
        } else {
            ranges.push_back({{"offset", index * kPageBytes}, {"length", kPageBytes}});
        }
        next = index + 1;
    }
    return ranges;
}

// The same bytes came again and again, in order: no page was used twice before it was dropped.
Json RegionWatch::direct_read() const
{
    const double rounds =
        fetched_pages_.empty()
            ? 0
            : static_cast<double>(fetched_bytes_) /
                  (static_cast<double>(fetched_pages_.size()) * static_cast<double>(kPageBytes));
    if (fetched_bytes_ < kBulkBytes || fetched_.share() < kInOrderMin || rounds < kRoundsMin)
        return {};
    return {{"kind", "direct_read"},
            {"fetched_bytes", fetched_bytes_},
            {"in_order", fetched_.share()},
            {"rounds", rounds}};
}

Json RegionWatch::direct_write(const Json& amplification) const
{
    const uint64_t bytes = stored_pages_ * kPageBytes;
    const double rounds =
        pages_.empty() ? 0
                       : static_cast<double>(stored_pages_) / static_cast<double>(pages_.size());
    if (bytes < kBulkBytes || stored_.share() < kInOrderMin || rounds < kRoundsMin ||
        !amplification.is_number() || amplification.get<double>() > kWholeMax)
        return {};
    return {{"kind", "direct_write"},
            {"dirtied_bytes", bytes},
            {"in_order", stored_.share()},
            {"rounds", rounds},
            {"amplification", amplification}};
}

Json RegionWatch::report(const Json& amplification) const
{
    Json advice = Json::array();
    for (Json each : {direct_read(), direct_write(amplification)})
        if (!each.is_null())
            advice.push_back(std::move(each));
    return {{"stores", stores_},
            {"pages", pages_.size()},
            {"all_pages", !pages_left_out_},
            {"fetched_bytes", fetched_bytes_},
            {"contended", contended()},
            {"dirtied", dirtied()},
            {"advice", advice}};
}

Json common_ranges(const Json& a, const Json& b)
{
    Json common = Json::array();
    for (size_t i = 0, j = 0; i < a.size() && j < b.size();) {
        const auto begin_a = a[i].at("offset").get<uint64_t>();
        const auto begin_b = b[j].at("offset").get<uint64_t>();
        const uint64_t end_a = begin_a + a[i].at("length").get<uint64_t>();
        const uint64_t end_b = begin_b + b[j].at("length").get<uint64_t>();
        const uint64_t begin = std::max(begin_a, begin_b);
        const uint64_t end = std::min(end_a, end_b);
        if (begin < end)
            common.push_back({{"offset", begin}, {"length", end - begin}});
        if (end_a < end_b)
            i++;
        else
            j++;
    }
    return common;
}

Result<void> add_shared(Json& region, const std::vector<Json>& others)
{
    Json shared = Json::array();
    try {
        for (const Json& other : others)
            for (const Json& theirs : other.at("regions")) {
                if (theirs.at("node") != region["node"] || theirs.at("name") != region["name"])
                    continue;
                for (Json range : common_ranges(region["dirtied"], theirs.at("dirtied"))) {
                    range["host"] = other.at("host").get<std::string>();
                    shared.push_back(std::move(range));
                }
            }
    } catch (const Json::exception&) {
        return fail(EINVAL, "this is not what smcctl -j advise wrote on another node");
    }
    region["shared"] = std::move(shared);
    return {};
}

std::vector<std::string> advice_lines(const Json& region)
{
    std::vector<std::string> lines;
    const Json& contended = region["contended"];
    for (size_t i = 0; i < std::min(contended.size(), kShownMax); i++)
        contended_lines(contended[i], lines);
    if (contended.size() > kShownMax)
        lines.push_back("  ... and " + std::to_string(contended.size() - kShownMax) +
                        " more, which -j tells");
    const Json shared = region.value("shared", Json::array());
    for (size_t i = 0; i < std::min(shared.size(), kShownMax); i++) {
        const auto offset = shared[i]["offset"].get<uint64_t>();
        const auto length = shared[i]["length"].get<uint64_t>();
        lines.push_back("  bytes " + std::to_string(offset) + " to " +
                        std::to_string(offset + length - 1) + ": pages that " +
                        cell(shared[i], {"host", ""}) + " dirties, too");
    }
    if (shared.size() > kShownMax)
        lines.push_back("  ... and " + std::to_string(shared.size() - kShownMax) +
                        " more, which -j tells");
    if (!shared.empty())
        lines.emplace_back(
            "    Two nodes must not write within one merge_unit: make it smaller, or "
            "pad to it. On pages of their own neither fetches for the other.");
    for (const Json& each : region["advice"]) {
        std::array<char, 32> rounds{};
        snprintf(rounds.data(), rounds.size(), "%.1f", each["rounds"].get<double>());
        const std::string in_order = percent(each["in_order"].get<double>());
        if (each["kind"] == "direct_read")
            lines.push_back("  " + format_size(each["fetched_bytes"].get<uint64_t>()) +
                            " were fetched, " + in_order + " of the requests in order, each page " +
                            rounds.data() +
                            " times: it was dropped before it was of use again. read(2) with "
                            "O_DIRECT moves the same bytes without the page cache.");
        else
            lines.push_back("  " + format_size(each["dirtied_bytes"].get<uint64_t>()) +
                            " of pages were dirtied, " + in_order + " in order, each page " +
                            rounds.data() + " times, and " + cell(each, {"amplification", ""}) +
                            " bytes sent per byte changed: as good as all of it. write(2) with "
                            "O_DIRECT spares the faults, the copies and the comparison.");
    }
    if (lines.empty())
        lines.emplace_back("  nothing to advise");
    if (region["all_pages"] == false)
        lines.emplace_back("  more pages were stored to than are watched: some are left out");
    return lines;
}

} // namespace smc::ctl
