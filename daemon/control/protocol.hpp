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

// "merge_unit" of a request or a grant; absent: the default.
Result<std::uint32_t> get_merge_unit(const Json& json);
Json to_json(const Grant& grant);
Result<Grant> grant_from_json(const Json& json);

Json to_json(const ExportInfo& info);
Json to_json(const SessionInfo& info);
Json to_json(const RdmaPortInfo& info);

// One page of the names in order, those behind after, as many as fit into a frame.
Json names_page(const std::vector<std::string>& sorted, const std::string& after);

} // namespace smc
