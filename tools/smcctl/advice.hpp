// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// Owns: what is made of a region's trace events: which pages several threads or processes dirty in turns,
// and whether the page cache is of use.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/result.hpp"
#include "output.hpp"
#include "trace_events.hpp"

namespace smc::ctl {

// A part of a page, bytes [begin, end) in it.
struct Place {
    uint32_t begin = 0;
    uint32_t end = 0;
    bool operator==(const Place&) const = default;
};

// A thread that dirtied a page.
struct PageWriter {
    pid_t pid = 0;
    std::string command;
    uint64_t times = 0;
    std::vector<Place> places; // the first of them that were seen
};

struct WatchedPage {
    uint64_t epochs = 0; // times that it became dirty after it had been sent
    uint64_t turns = 0;  // times that it was another thread than before
    pid_t last = 0;
    std::set<pid_t> in_epoch;            // processes
    std::map<pid_t, PageWriter> writers; // by thread
};

// Positions that come one after the other, of up to so many streams at a time.
class Streams {
public:
    void add(uint64_t begin, uint64_t end);
    [[nodiscard]] double share() const; // of what continued something, 0 to 1

private:
    static constexpr size_t kStreams = 8;
    std::vector<uint64_t> ends_; // the last one that was used first
    uint64_t all_ = 0;
    uint64_t continued_ = 0;
};

// One region, as long as it is watched.
class RegionWatch {
public:
    void add(const TraceEvent& event);

    // {"stores": 12, "pages": 3, "fetched_bytes": ..., "contended": [...], "advice": [...],
    // "dirtied": [{"offset": 0, "length": 8192}, ...]}
    // amplification: of the same time, or null.
    [[nodiscard]] Json report(const Json& amplification) const;

private:
    void store(uint64_t page, Place place, const TraceEvent& event);
    [[nodiscard]] Json contended() const;
    [[nodiscard]] Json dirtied() const;
    [[nodiscard]] Json direct_read() const;
    [[nodiscard]] Json direct_write(const Json& amplification) const;

    std::map<uint64_t, WatchedPage> pages_; // by index
    bool pages_left_out_ = false;
    uint64_t stores_ = 0;
    uint64_t stored_pages_ = 0; // pages times epochs
    Streams stored_;
    std::set<uint64_t> fetched_pages_;
    uint64_t fetched_bytes_ = 0;
    Streams fetched_;
};

// Of two reports' "dirtied", what is in both, in the same form.
Json common_ranges(const Json& a, const Json& b);

// Adds to a region's report "shared": what others dirtied, too: [{"host": ..., "offset": ...,
// "length": ...}]. Each other is what advise -j wrote elsewhere; EINVAL: it is something else.
Result<void> add_shared(Json& region, const std::vector<Json>& others);

// Sentences for people, a line each; "nothing to advise" if there is nothing.
std::vector<std::string> advice_lines(const Json& region);

} // namespace smc::ctl
