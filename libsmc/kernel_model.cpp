// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// Failure: the kernel is trusted to be well-meaning, not to be of the same version. Lengths are
// checked by policy, unknown attributes and counters are passed over.
#include "kernel_model.hpp"

#include <array>
#include <cstring>
#include <iterator>

#include <netlink/attr.h>
#include <netlink/genl/genl.h>
#include <netlink/msg.h>

namespace smc::client {
namespace {

using Attrs = std::array<nlattr*, SMCFS_A_MAX + 1>;

std::array<nla_policy, SMCFS_A_MAX + 1> make_policy()
{
    std::array<nla_policy, SMCFS_A_MAX + 1> policy{};
    for (int attr :
         {SMCFS_A_NODE, SMCFS_A_NAME, SMCFS_A_REASON, SMCFS_A_RDMA_DEVICE, SMCFS_A_VERSION})
        policy[attr].type = NLA_STRING;
    for (int attr : {SMCFS_A_SESSION_ID, SMCFS_A_REGION_ID, SMCFS_A_GENERATION, SMCFS_A_SIZE,
                     SMCFS_A_DIRTY_BYTES, SMCFS_A_WRITEBACK_BYTES, SMCFS_A_CACHED_BYTES,
                     SMCFS_A_DISCARDED_BYTES})
        policy[attr].type = NLA_U64;
    for (int attr :
         {SMCFS_A_MODE, SMCFS_A_UID, SMCFS_A_GID, SMCFS_A_WRITERS, SMCFS_A_FLAGS, SMCFS_A_ERRNO,
          SMCFS_A_STATE, SMCFS_A_FLUSH_AFTER_MS, SMCFS_A_MERGE_UNIT, SMCFS_A_SYNC_MODE,
          SMCFS_A_PUSH_DELAY_US, SMCFS_A_MAX_STALE_US, SMCFS_A_OPENERS, SMCFS_A_WRITER_STATE,
          SMCFS_A_OLDEST_MS, SMCFS_A_INFLIGHT, SMCFS_A_QUEUED, SMCFS_A_LATENCY, SMCFS_A_GRANULE})
        policy[attr].type = NLA_U32;
    for (int attr : {SMCFS_A_CTO, SMCFS_A_DAEMON_PRESENT, SMCFS_A_CTO_ORIGIN,
                     SMCFS_A_FLUSH_AFTER_ORIGIN, SMCFS_A_MERGE_UNIT_ORIGIN, SMCFS_A_WRITERS_ORIGIN,
                     SMCFS_A_SYNC_MODE_ORIGIN, SMCFS_A_PUSH_DELAY_ORIGIN, SMCFS_A_MAX_STALE_ORIGIN,
                     SMCFS_A_HOT, SMCFS_A_HOT_ORIGIN, SMCFS_A_GRANULE_ORIGIN})
        policy[attr].type = NLA_U8;
    policy[SMCFS_A_STATS].type = NLA_NESTED;
    return policy;
}

Result<Attrs> parse_attrs(const nlmsghdr* msg)
{
    static const auto policy = make_policy();
    Attrs attrs{};
    // libnl takes non-const pointers for what it only reads.
    auto* hdr = const_cast<nlmsghdr*>(msg);
    if (!genlmsg_valid_hdr(hdr, 0))
        return fail(EPROTO, "the kernel's answer is too short for a message of smcfs");
    int err =
        genlmsg_parse(hdr, 0, attrs.data(), SMCFS_A_MAX, const_cast<nla_policy*>(policy.data()));
    if (err < 0)
        return fail(EPROTO, "the kernel's answer has a malformed attribute: module and tools are "
                            "of different versions");
    return attrs;
}

std::string get_string(const Attrs& attrs, int attr)
{
    nlattr* a = attrs[attr];
    if (!a)
        return {};
    const char* data = static_cast<const char*>(nla_data(a));
    return {data, strnlen(data, static_cast<size_t>(nla_len(a)))};
}

uint64_t get_u64(const Attrs& attrs, int attr)
{
    return attrs[attr] ? nla_get_u64(attrs[attr]) : 0;
}

uint32_t get_u32(const Attrs& attrs, int attr)
{
    return attrs[attr] ? nla_get_u32(attrs[attr]) : 0;
}

constexpr std::pair<int, const char*> kStatNames[] = {
    {SMCFS_STAT_FETCH_OPS, "fetch_ops"},
    {SMCFS_STAT_FETCH_BYTES, "fetch_bytes"},
    {SMCFS_STAT_FLUSH_BATCHES, "flush_batches"},
    {SMCFS_STAT_FLUSH_OPS, "flush_ops"},
    {SMCFS_STAT_FLUSH_BYTES, "flush_bytes"},
    {SMCFS_STAT_DIRTIED_PAGES, "dirtied_pages"},
    {SMCFS_STAT_BARRIERS, "barriers"},
    {SMCFS_STAT_ACQUIRES, "acquires"},
    {SMCFS_STAT_ERRORS, "errors"},
    {SMCFS_STAT_DISCARDED_BYTES, "discarded_bytes"},
    {SMCFS_STAT_DIRECT_BYTES, "direct_bytes"},
    {SMCFS_STAT_PUBLISHES, "publishes"},
    {SMCFS_STAT_ATOMICS, "atomics"},
    {SMCFS_STAT_FETCH_FAULTS, "fetch_faults"},
    {SMCFS_STAT_WRITE_FAULTS, "write_faults"},
    {SMCFS_STAT_SAMPLED_SENT_BYTES, "sampled_sent_bytes"},
    {SMCFS_STAT_SAMPLED_CHANGED_BYTES, "sampled_changed_bytes"},
};

Result<Stats> get_stats(const Attrs& attrs)
{
    Stats stats;
    if (!attrs[SMCFS_A_STATS])
        return stats;
    std::array<nlattr*, SMCFS_STAT_MAX + 1> nested{};
    if (nla_parse_nested(nested.data(), SMCFS_STAT_MAX, attrs[SMCFS_A_STATS], nullptr) < 0)
        return fail(EPROTO, "the kernel's counters are malformed");
    for (auto [stat, name] : kStatNames) {
        if (nested[stat] && nla_len(nested[stat]) >= static_cast<int>(sizeof(uint64_t)))
            stats[name] = nla_get_u64(nested[stat]);
    }
    return stats;
}

Result<void> require(const Attrs& attrs, int attr, const char* what)
{
    if (attrs[attr])
        return {};
    return fail(EPROTO, std::string("the kernel's answer lacks ") + what +
                            ": module and tools are of different versions");
}

template <size_t N>
std::string_view name_of(const std::string_view (&names)[N], uint32_t value)
{
    return value < N && value > 0 ? names[value] : std::string_view("unknown");
}

} // namespace

Result<KernelInfo> parse_info(const nlmsghdr* msg)
{
    Attrs attrs = SMC_TRY(parse_attrs(msg));
    KernelInfo info;
    info.version = get_string(attrs, SMCFS_A_VERSION);
    if (attrs[SMCFS_A_DAEMON_PRESENT])
        info.daemon_present = nla_get_u8(attrs[SMCFS_A_DAEMON_PRESENT]) != 0;
    return info;
}

Result<PeerName> parse_peer(const nlmsghdr* msg)
{
    Attrs attrs = SMC_TRY(parse_attrs(msg));
    SMC_TRY(require(attrs, SMCFS_A_NODE, "the node's name"));
    return PeerName{get_string(attrs, SMCFS_A_NODE)};
}

Result<SessionInfo> parse_session(const nlmsghdr* msg)
{
    Attrs attrs = SMC_TRY(parse_attrs(msg));
    SMC_TRY(require(attrs, SMCFS_A_SESSION_ID, "the session's id"));
    SessionInfo info;
    info.id = get_u64(attrs, SMCFS_A_SESSION_ID);
    info.node = get_string(attrs, SMCFS_A_NODE);
    info.state = get_u32(attrs, SMCFS_A_STATE);
    info.error = get_u32(attrs, SMCFS_A_ERRNO);
    info.reason = get_string(attrs, SMCFS_A_REASON);
    info.rdma_device = get_string(attrs, SMCFS_A_RDMA_DEVICE);
    info.inflight = get_u32(attrs, SMCFS_A_INFLIGHT);
    info.queued = get_u32(attrs, SMCFS_A_QUEUED);
    info.oldest_ms = get_u32(attrs, SMCFS_A_OLDEST_MS);
    info.stats = SMC_TRY(get_stats(attrs));
    return info;
}

Result<RegionInfo> parse_region(const nlmsghdr* msg)
{
    Attrs attrs = SMC_TRY(parse_attrs(msg));
    SMC_TRY(require(attrs, SMCFS_A_REGION_ID, "the region's id"));
    RegionInfo info;
    info.id = get_u64(attrs, SMCFS_A_REGION_ID);
    info.node = get_string(attrs, SMCFS_A_NODE);
    info.name = get_string(attrs, SMCFS_A_NAME);
    info.session_id = get_u64(attrs, SMCFS_A_SESSION_ID);
    info.generation = get_u64(attrs, SMCFS_A_GENERATION);
    info.size_bytes = get_u64(attrs, SMCFS_A_SIZE);
    info.mode = get_u32(attrs, SMCFS_A_MODE);
    info.uid = get_u32(attrs, SMCFS_A_UID);
    info.gid = get_u32(attrs, SMCFS_A_GID);
    info.writers = get_u32(attrs, SMCFS_A_WRITERS);
    info.flags = get_u32(attrs, SMCFS_A_FLAGS);
    info.state = get_u32(attrs, SMCFS_A_STATE);
    info.error = get_u32(attrs, SMCFS_A_ERRNO);
    info.reason = get_string(attrs, SMCFS_A_REASON);
    if (attrs[SMCFS_A_CTO])
        info.cto = nla_get_u8(attrs[SMCFS_A_CTO]) != 0;
    if (attrs[SMCFS_A_FLUSH_AFTER_MS])
        info.flush_after_ms = nla_get_u32(attrs[SMCFS_A_FLUSH_AFTER_MS]);
    if (attrs[SMCFS_A_CTO_ORIGIN])
        info.cto_origin = nla_get_u8(attrs[SMCFS_A_CTO_ORIGIN]);
    if (attrs[SMCFS_A_FLUSH_AFTER_ORIGIN])
        info.flush_after_origin = nla_get_u8(attrs[SMCFS_A_FLUSH_AFTER_ORIGIN]);
    if (attrs[SMCFS_A_MERGE_UNIT])
        info.merge_unit = nla_get_u32(attrs[SMCFS_A_MERGE_UNIT]);
    if (attrs[SMCFS_A_MERGE_UNIT_ORIGIN])
        info.merge_unit_origin = nla_get_u8(attrs[SMCFS_A_MERGE_UNIT_ORIGIN]);
    if (attrs[SMCFS_A_WRITERS_ORIGIN])
        info.writers_origin = nla_get_u8(attrs[SMCFS_A_WRITERS_ORIGIN]);
    if (attrs[SMCFS_A_SYNC_MODE])
        info.sync_mode = nla_get_u32(attrs[SMCFS_A_SYNC_MODE]);
    if (attrs[SMCFS_A_SYNC_MODE_ORIGIN])
        info.sync_mode_origin = nla_get_u8(attrs[SMCFS_A_SYNC_MODE_ORIGIN]);
    if (attrs[SMCFS_A_PUSH_DELAY_US])
        info.push_delay_us = nla_get_u32(attrs[SMCFS_A_PUSH_DELAY_US]);
    if (attrs[SMCFS_A_PUSH_DELAY_ORIGIN])
        info.push_delay_origin = nla_get_u8(attrs[SMCFS_A_PUSH_DELAY_ORIGIN]);
    if (attrs[SMCFS_A_MAX_STALE_US])
        info.max_stale_us = nla_get_u32(attrs[SMCFS_A_MAX_STALE_US]);
    if (attrs[SMCFS_A_MAX_STALE_ORIGIN])
        info.max_stale_origin = nla_get_u8(attrs[SMCFS_A_MAX_STALE_ORIGIN]);
    if (attrs[SMCFS_A_HOT])
        info.hot = nla_get_u8(attrs[SMCFS_A_HOT]) != 0;
    if (attrs[SMCFS_A_HOT_ORIGIN])
        info.hot_origin = nla_get_u8(attrs[SMCFS_A_HOT_ORIGIN]);
    if (attrs[SMCFS_A_GRANULE])
        info.granule = nla_get_u32(attrs[SMCFS_A_GRANULE]);
    if (attrs[SMCFS_A_GRANULE_ORIGIN])
        info.granule_origin = nla_get_u8(attrs[SMCFS_A_GRANULE_ORIGIN]);
    info.dirty_bytes = get_u64(attrs, SMCFS_A_DIRTY_BYTES);
    info.writeback_bytes = get_u64(attrs, SMCFS_A_WRITEBACK_BYTES);
    info.cached_bytes = get_u64(attrs, SMCFS_A_CACHED_BYTES);
    info.openers = get_u32(attrs, SMCFS_A_OPENERS);
    info.writer_state = get_u32(attrs, SMCFS_A_WRITER_STATE);
    info.oldest_ms = get_u32(attrs, SMCFS_A_OLDEST_MS);
    info.inflight = get_u32(attrs, SMCFS_A_INFLIGHT);
    info.queued = get_u32(attrs, SMCFS_A_QUEUED);
    info.stats = SMC_TRY(get_stats(attrs));
    return info;
}

Result<KernelEvent> parse_event(const nlmsghdr* msg)
{
    Attrs attrs = SMC_TRY(parse_attrs(msg));
    KernelEvent event;
    auto* hdr = const_cast<nlmsghdr*>(msg);
    switch (genlmsg_hdr(hdr)->cmd) {
    case SMCFS_CMD_EVENT_SESSION:
        event.kind = KernelEvent::Kind::session;
        break;
    case SMCFS_CMD_EVENT_REGION:
        event.kind = KernelEvent::Kind::region;
        break;
    default:
        return fail(EOPNOTSUPP, "the kernel sent an event of an unknown kind");
    }
    event.node = get_string(attrs, SMCFS_A_NODE);
    event.name = get_string(attrs, SMCFS_A_NAME);
    event.session_id = get_u64(attrs, SMCFS_A_SESSION_ID);
    event.region_id = get_u64(attrs, SMCFS_A_REGION_ID);
    event.generation = get_u64(attrs, SMCFS_A_GENERATION);
    event.state = get_u32(attrs, SMCFS_A_STATE);
    event.error = get_u32(attrs, SMCFS_A_ERRNO);
    event.reason = get_string(attrs, SMCFS_A_REASON);
    return event;
}

Result<std::vector<PageRun>> parse_pages(const nlmsghdr* msg)
{
    Attrs attrs = SMC_TRY(parse_attrs(msg));
    const nlattr* attr = attrs[SMCFS_A_PAGES];
    if (!attr || static_cast<size_t>(nla_len(attr)) % sizeof(smcfs_page_run) != 0)
        return fail(EPROTO, "the kernel's runs of pages are missing or malformed");
    std::vector<PageRun> runs(static_cast<size_t>(nla_len(attr)) / sizeof(smcfs_page_run));
    const auto* at = static_cast<const char*>(nla_data(attr));
    for (auto& out : runs) {
        smcfs_page_run run; // attributes are aligned to 4 bytes only
        std::memcpy(&run, at, sizeof(run));
        at += sizeof(run);
        out = {run.first, run.pages, run.state};
    }
    return runs;
}

Result<LatencyInfo> parse_latency(const nlmsghdr* msg)
{
    Attrs attrs = SMC_TRY(parse_attrs(msg));
    SMC_TRY(require(attrs, SMCFS_A_REGION_ID, "the region's id"));
    SMC_TRY(require(attrs, SMCFS_A_LATENCY, "the kind of latency"));
    const nlattr* attr = attrs[SMCFS_A_BUCKETS];
    if (!attr || static_cast<size_t>(nla_len(attr)) != SMCFS_LATENCY_BUCKETS * sizeof(uint64_t))
        return fail(EPROTO, "the kernel's latencies are missing, or have other buckets: module and "
                            "tools are of different versions");
    LatencyInfo info{get_u64(attrs, SMCFS_A_REGION_ID), get_u32(attrs, SMCFS_A_LATENCY),
                     std::vector<uint64_t>(SMCFS_LATENCY_BUCKETS)};
    // Attributes are aligned to 4 bytes only.
    std::memcpy(info.buckets.data(), nla_data(attr), SMCFS_LATENCY_BUCKETS * sizeof(uint64_t));
    return info;
}

Result<uint64_t> parse_discarded(const nlmsghdr* msg)
{
    Attrs attrs = SMC_TRY(parse_attrs(msg));
    return get_u64(attrs, SMCFS_A_DISCARDED_BYTES);
}

std::string_view session_state_name(uint32_t state)
{
    static constexpr std::string_view kNames[] = {"", "connecting", "live", "draining", "dead"};
    static_assert(std::size(kNames) == __SMCFS_SESSION_STATE_MAX);
    return name_of(kNames, state);
}

std::string_view region_state_name(uint32_t state)
{
    static constexpr std::string_view kNames[] = {"",         "binding", "active",
                                                  "degraded", "failed",  "detaching"};
    static_assert(std::size(kNames) == __SMCFS_REGION_STATE_MAX);
    return name_of(kNames, state);
}

std::string_view writer_state_name(uint32_t state)
{
    static constexpr std::string_view kNames[] = {"", "none", "asking", "held"};
    static_assert(std::size(kNames) == __SMCFS_WRITER_STATE_MAX);
    return name_of(kNames, state);
}

std::string_view writers_name(uint32_t writers)
{
    static constexpr std::string_view kNames[] = {"", "exclusive", "merge"};
    static_assert(std::size(kNames) == __SMCFS_WRITERS_MAX);
    return name_of(kNames, writers);
}

} // namespace smc::client
