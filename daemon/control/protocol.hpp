// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// Offers and grants as they travel between nodes (docs/protocol.md). What comes from the other side
// is checked here, so that the rest of the daemon sees well-formed values only.
#pragma once

#include "control/message.hpp"
#include "target/types.hpp"

namespace smc {

inline constexpr std::uint64_t kProtocolVersion = 1;

Json to_json(const SessionOffer& offer);
Result<SessionOffer> offer_from_json(const Json& json);

Json to_json(const ProbeOffer& offer);
Result<ProbeOffer> probe_from_json(const Json& json);

Json to_json(const RegionParams& params);
// An object of known keys; others are ignored.
Result<RegionParams> params_from_json(const Json& json);
// The same of a target that may be newer than this node: what is not understood is left out, and told in
// the log, as hints bind nobody.
RegionParams hints_from_json(const Json& json);

// "merge_unit" of a request or a grant; absent: the default.
Result<std::uint32_t> get_merge_unit(const Json& json);

// With the extents from `first` on, as many as fit into a frame, and `more`.
Json to_json(const Grant& grant, std::size_t first);

// Puts a grant together from its pages, in order.
class GrantReader {
public:
    // Whether there are more. EAGAIN: the pages are of different grants.
    Result<bool> add(const Json& page);
    // The extent to ask for next.
    [[nodiscard]] std::size_t next() const { return grant_.extents.size(); }
    // After the last page.
    Grant take() { return std::move(grant_); }

private:
    Result<void> add_extents(const Json& page);

    Grant grant_;
    std::uint64_t end_ = 0; // of the extents so far
};

// The first of the names; what is left out is counted.
void put_names(Json& element, const char* key, const std::vector<std::string>& names);

Json to_json(const ExportInfo& info);
Json to_json(const SessionInfo& info);
Json to_json(const RdmaPortInfo& info);

// One page of the names in order, those behind after, as many as fit into a frame.
Json names_page(const std::vector<std::string>& sorted, const std::string& after);

// The elements of the arrays of an object from `first` on, counted through all arrays in the order
// of their keys, as many as fit into a frame, and `more`.
Json list_page(const Json& lists, std::uint64_t first);

} // namespace smc
