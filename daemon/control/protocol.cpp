// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
#include "control/protocol.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "control/tcp.hpp"
#include "core/log.hpp"
#include "core/merge_unit.hpp"

namespace smc {
namespace {

constexpr std::size_t kAddressesMax = 16;    // of one offer
constexpr std::size_t kPageBytesMax = 32768; // of names: sealed it still fits into a frame
constexpr std::size_t kNamesShownMax = 64;   // in one element of a listing
constexpr std::uint64_t kModeMax = 0777;

tl::unexpected<Error> bad(std::string_view what)
{
    return fail(EPROTO, fmt::format("the target sent {}", what));
}

Result<std::vector<std::string>> read_addresses(const Json& json)
{
    const auto found = json.find("addresses");
    if (found == json.end() || !found->is_array() || found->size() > kAddressesMax)
        return bad(fmt::format("no array of at most {} addresses", kAddressesMax));
    std::vector<std::string> addresses;
    for (const auto& element : *found) {
        if (!element.is_string() || !parse_address(element.get<std::string>(), 0))
            return bad("an address that is neither IPv4 nor IPv6");
        addresses.push_back(element.get<std::string>());
    }
    return addresses;
}

Result<std::uint16_t> read_port(const Json& json)
{
    const auto port = SMC_TRY(get_unsigned(json, "port", 65535));
    if (port == 0)
        return bad("port 0");
    return static_cast<std::uint16_t>(port);
}

Result<Token> read_token(const Json& json, std::string_view key)
{
    Token token{};
    const auto text = SMC_TRY(get_string(json, key));
    SMC_TRY(parse_hex(text, token.data(), token.size()));
    return token;
}

Result<smcfs_extent> read_extent(const Json& json)
{
    if (!json.is_object())
        return bad("an extent that is no object");
    smcfs_extent extent{};
    extent.offset = SMC_TRY(get_unsigned(json, "offset", SMCFS_REGION_SIZE_MAX));
    extent.length = SMC_TRY(get_unsigned(json, "length", SMCFS_REGION_SIZE_MAX));
    extent.addr = SMC_TRY(get_unsigned(json, "addr", UINT64_MAX));
    extent.rkey_read =
        static_cast<std::uint32_t>(SMC_TRY(get_unsigned(json, "rkey_read", UINT32_MAX)));
    extent.rkey_bulk =
        static_cast<std::uint32_t>(SMC_TRY(get_unsigned(json, "rkey_bulk", UINT32_MAX)));
    return extent;
}

Json to_json(const smcfs_extent& extent)
{
    return {{"offset", std::uint64_t{extent.offset}},
            {"length", std::uint64_t{extent.length}},
            {"addr", std::uint64_t{extent.addr}},
            {"rkey_read", extent.rkey_read},
            {"rkey_bulk", extent.rkey_bulk}};
}

Result<Grant> read_grant_head(const Json& json)
{
    Grant grant;
    grant.generation = SMC_TRY(get_identity(json, "generation"));
    grant.size = SMC_TRY(get_unsigned(json, "size", SMCFS_REGION_SIZE_MAX));
    if (grant.size == 0)
        return bad("a region of 0 bytes");
    grant.mode = static_cast<std::uint32_t>(SMC_TRY(get_unsigned(json, "mode", kModeMax)));
    // (uid_t)-1 is no user.
    grant.uid = static_cast<uid_t>(SMC_TRY(get_unsigned(json, "uid", UINT32_MAX - 1)));
    grant.gid = static_cast<gid_t>(SMC_TRY(get_unsigned(json, "gid", UINT32_MAX - 1)));
    const auto text = SMC_TRY(get_string(json, "writers"));
    const auto writers = parse_writers(text);
    if (!writers)
        return fail(EOPNOTSUPP, fmt::format("writers \"{}\" is not supported by this node: update "
                                            "its smcfsd",
                                            printable(text)));
    grant.writers = *writers;
    grant.merge_unit = SMC_TRY(get_merge_unit(json));
    grant.readonly = SMC_TRY(get_bool(json, "readonly"));
    // Of a target that knows nothing of them: none.
    grant.atomics = SMC_TRY(get_bool_or(json, "atomics", false));
    if (json.contains("hints"))
        grant.hints = hints_from_json(json.at("hints"));
    return grant;
}

} // namespace

Result<std::uint32_t> get_merge_unit(const Json& json)
{
    const auto unit =
        SMC_TRY(get_unsigned_or(json, "merge_unit", SMCFS_MERGE_UNIT_MAX, SMCFS_MERGE_UNIT));
    if (!merge_unit_valid(unit))
        return fail(EINVAL, fmt::format("\"merge_unit\" must be a power of two from {} to {}",
                                        SMCFS_MERGE_UNIT_MIN, SMCFS_MERGE_UNIT_MAX));
    return static_cast<std::uint32_t>(unit);
}

Json to_json(const SessionOffer& offer)
{
    return {{"addresses", offer.addresses},
            {"port", offer.port},
            {"token_read", hex_text(offer.token_read.data(), offer.token_read.size())},
            {"token_bulk", hex_text(offer.token_bulk.data(), offer.token_bulk.size())}};
}

Result<SessionOffer> offer_from_json(const Json& json)
{
    SessionOffer offer;
    offer.addresses = SMC_TRY(read_addresses(json));
    offer.port = SMC_TRY(read_port(json));
    offer.token_read = SMC_TRY(read_token(json, "token_read"));
    offer.token_bulk = SMC_TRY(read_token(json, "token_bulk"));
    return offer;
}

Json to_json(const ProbeOffer& offer)
{
    return {{"addresses", offer.addresses},
            {"port", offer.port},
            {"session", identity_text(offer.session)},
            {"token", hex_text(offer.token.data(), offer.token.size())}};
}

Result<ProbeOffer> probe_from_json(const Json& json)
{
    ProbeOffer offer;
    offer.addresses = SMC_TRY(read_addresses(json));
    offer.port = SMC_TRY(read_port(json));
    offer.session = SMC_TRY(get_identity(json, "session"));
    offer.token = SMC_TRY(read_token(json, "token"));
    return offer;
}

Json to_json(const RegionParams& params)
{
    Json json = Json::object();
    if (params.cto)
        json["cto"] = *params.cto;
    if (params.flush_after_ms)
        json["flush_after_ms"] = *params.flush_after_ms;
    if (params.mode)
        json["mode"] = sync_mode_name(*params.mode);
    if (params.push_delay_us)
        json["push_delay_us"] = *params.push_delay_us;
    if (params.max_stale_us)
        json["max_stale_us"] = *params.max_stale_us;
    if (params.hot)
        json["hot"] = *params.hot;
    if (params.granule)
        json["granule"] = *params.granule;
    return json;
}

Result<RegionParams> params_from_json(const Json& json)
{
    if (!json.is_object())
        return fail(EPROTO, "parameters of a region are no object");
    RegionParams params;
    const auto number = [&](const char* key, std::uint32_t min,
                            std::uint32_t max) -> Result<std::optional<std::uint32_t>> {
        if (!json.contains(key))
            return std::nullopt;
        const auto value = SMC_TRY(get_unsigned(json, key, max));
        if (value < min)
            return fail(EINVAL, fmt::format("key \"{}\" must be {} to {}", key, min, max));
        return static_cast<std::uint32_t>(value);
    };
    if (json.contains("cto"))
        params.cto = SMC_TRY(get_bool(json, "cto"));
    params.flush_after_ms = SMC_TRY(number("flush_after_ms", 1, kFlushAfterMsMax));
    if (json.contains("mode")) {
        const auto name = SMC_TRY(get_string(json, "mode"));
        params.mode = parse_sync_mode(name);
        if (!params.mode)
            return fail(EOPNOTSUPP, fmt::format("mode \"{}\" is not supported by this node: update "
                                                "its smcfsd",
                                                printable(name)));
    }
    params.push_delay_us = SMC_TRY(number("push_delay_us", 0, SMCFS_PUSH_DELAY_US_MAX));
    params.max_stale_us = SMC_TRY(number("max_stale_us", 0, SMCFS_MAX_STALE_US_MAX));
    if (json.contains("hot"))
        params.hot = SMC_TRY(get_bool(json, "hot"));
    params.granule = SMC_TRY(number("granule", SMCFS_GRANULE_MIN, SMCFS_GRANULE_MAX));
    if (params.granule && !granule_valid(*params.granule))
        return fail(EINVAL, "key \"granule\" must be a power of two");
    return params;
}

RegionParams hints_from_json(const Json& json)
{
    RegionParams hints;
    const auto take = [&](const Json& some) {
        if (const auto params = params_from_json(some))
            hints.fill_from(*params);
        else
            log::warn("a hint of the target is passed over: {}", params.error().what);
    };
    if (!json.is_object())
        take(json);
    else
        for (const auto& [key, value] : json.items())
            take(Json::object({{key, value}}));
    return hints;
}

Json to_json(const Grant& grant, std::size_t first)
{
    Json extents = Json::array();
    std::size_t bytes = 0;
    std::size_t next = std::min(first, grant.extents.size());
    for (; next < grant.extents.size() && bytes < kPageBytesMax; ++next) {
        extents.push_back(to_json(grant.extents[next]));
        bytes += extents.back().dump().size() + 1;
    }
    return {{"generation", identity_text(grant.generation)},
            {"size", grant.size},
            {"mode", grant.mode},
            {"uid", grant.uid},
            {"gid", grant.gid},
            {"writers", to_string(grant.writers)},
            {"merge_unit", grant.merge_unit},
            {"readonly", grant.readonly},
            {"atomics", grant.atomics},
            {"hints", to_json(grant.hints)},
            {"keys", to_string(grant.keys)},
            {"extents", std::move(extents)},
            {"more", next < grant.extents.size()}};
}

Result<bool> GrantReader::add(const Json& page)
{
    const auto head = SMC_TRY(read_grant_head(page));
    if (next() == 0)
        grant_ = head;
    else if (head.generation != grant_.generation || head.size != grant_.size)
        return fail(EAGAIN, "the region was exported anew meanwhile");
    SMC_TRY(add_extents(page));
    const bool more = SMC_TRY(get_bool_or(page, "more", false));
    if (!more && end_ != grant_.size)
        return bad("extents that do not cover the region");
    return more;
}

// Sorted and gapless. (The kernel checks again.)
Result<void> GrantReader::add_extents(const Json& page)
{
    const auto found = page.find("extents");
    if (found == page.end() || !found->is_array() || found->empty() ||
        found->size() > SMCFS_EXTENTS_MAX - next())
        return bad(fmt::format("no array of 1 to {} extents", SMCFS_EXTENTS_MAX));
    for (const auto& element : *found) {
        const auto extent = SMC_TRY(read_extent(element));
        if (extent.offset != end_ || extent.length == 0 || extent.length > grant_.size - end_)
            return bad("extents that do not cover the region without gap");
        end_ += extent.length;
        grant_.extents.push_back(extent);
    }
    return {};
}

void put_names(Json& element, const char* key, const std::vector<std::string>& names)
{
    const auto shown = std::min(names.size(), kNamesShownMax);
    element[key] =
        std::vector<std::string>(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(shown));
    if (shown < names.size())
        element[key].push_back(fmt::format("(and {} more)", names.size() - shown));
}

Json to_json(const ExportInfo& info)
{
    Json json{{"name", info.name},
              {"size", info.size},
              {"generation", identity_text(info.generation)},
              {"uid", info.uid},
              {"gid", info.gid},
              {"mode", info.mode},
              {"writers", to_string(info.writers)},
              {"merge_unit", info.merge_unit},
              {"readonly", info.readonly},
              {"provider", info.provider},
              {"path", info.path.empty() ? Json() : Json(info.path)},
              {"keys", to_string(info.keys)},
              {"writer", info.writer ? Json(*info.writer) : Json()}};
    put_names(json, "sessions", info.sessions);
    return json;
}

Json to_json(const SessionInfo& info)
{
    Json json{{"session", identity_text(info.session)},
              {"node", info.node},
              {"state", to_string(info.state)},
              {"keys", to_string(info.keys)},
              {"device", info.device},
              {"age_s", info.age_s}};
    put_names(json, "regions", info.regions);
    put_names(json, "writes", info.writes);
    return json;
}

Json to_json(const RdmaPortInfo& info)
{
    return {{"device", info.device},         {"port", info.port},     {"state", info.state},
            {"link_layer", info.link_layer}, {"mtu", info.mtu_bytes}, {"windows", info.windows},
            {"addresses", info.addresses}};
}

Json names_page(const std::vector<std::string>& sorted, const std::string& after)
{
    Json page = Json::array();
    std::size_t bytes = 0;
    auto name = std::upper_bound(sorted.begin(), sorted.end(), after);
    for (; name != sorted.end() && bytes < kPageBytesMax; ++name) {
        bytes += name->size() + 3;
        page.push_back(*name);
    }
    return {{"regions", std::move(page)}, {"more", name != sorted.end()}};
}

Json list_page(const Json& lists, std::uint64_t first)
{
    Json page = Json::object();
    std::size_t bytes = 0;
    bool more = false;
    for (const auto& [key, list] : lists.items()) {
        auto& shown = page[key] = Json::array();
        for (const auto& element : list) {
            if (first > 0) {
                --first;
                continue;
            }
            more = more || bytes >= kPageBytesMax;
            if (more)
                break;
            bytes += dump(element).size() + 1;
            shown.push_back(element);
        }
    }
    page["more"] = more;
    return page;
}

} // namespace smc
