// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// Owns: what the kernel reports over netlink, as plain values, and the words for its states.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <linux/smcfs.h>

#include "core/result.hpp"

struct nlmsghdr;

namespace smc::client {

// Counter name -> value, as reported; a counter that this build does not know is left out.
using Stats = std::map<std::string, uint64_t>;

struct KernelInfo {
    std::string version;
    bool daemon_present = false;
};

struct PeerName {
    std::string node;
};

struct SessionInfo {
    uint64_t id = 0;
    std::string node;
    uint32_t state = SMCFS_SESSION_UNSPEC;
    uint32_t error = 0;
    std::string reason;
    std::string rdma_device;
    uint32_t inflight = 0;
    uint32_t queued = 0;
    uint32_t oldest_ms = 0;
    Stats stats;
};

struct RegionInfo {
    uint64_t id = 0;
    std::string node;
    std::string name;
    uint64_t session_id = 0;
    uint64_t generation = 0;
    uint64_t size_bytes = 0;
    uint32_t mode = 0;
    uint32_t uid = 0;
    uint32_t gid = 0;
    uint32_t writers = SMCFS_WRITERS_UNSPEC;
    uint32_t flags = 0;
    uint32_t state = SMCFS_REGION_UNSPEC;
    uint32_t error = 0;
    std::string reason;
    std::optional<bool> cto;
    std::optional<uint32_t> flush_after_ms;
    std::optional<uint32_t> merge_unit;
    uint32_t cto_origin = SMCFS_ORIGIN_UNSPEC;
    uint32_t flush_after_origin = SMCFS_ORIGIN_UNSPEC;
    uint32_t merge_unit_origin = SMCFS_ORIGIN_UNSPEC;
    uint32_t writers_origin = SMCFS_ORIGIN_UNSPEC;
    std::optional<uint32_t> sync_mode; // enum smcfs_sync
    std::optional<uint32_t> push_delay_us;
    std::optional<uint32_t> max_stale_us;
    uint32_t sync_mode_origin = SMCFS_ORIGIN_UNSPEC;
    uint32_t push_delay_origin = SMCFS_ORIGIN_UNSPEC;
    uint32_t max_stale_origin = SMCFS_ORIGIN_UNSPEC;
    std::optional<bool> hot;
    uint32_t hot_origin = SMCFS_ORIGIN_UNSPEC;
    std::optional<uint32_t> granule; // bytes
    uint32_t granule_origin = SMCFS_ORIGIN_UNSPEC;
    uint64_t dirty_bytes = 0;
    uint64_t writeback_bytes = 0;
    uint64_t cached_bytes = 0;
    uint32_t openers = 0;
    uint32_t writer_state = SMCFS_WRITER_UNSPEC;
    uint32_t oldest_ms = 0;
    uint32_t inflight = 0;
    uint32_t queued = 0;
    Stats stats;
};

// Pages of 4 KiB in one state.
struct PageRun {
    uint64_t first = 0; // index in the region
    uint64_t pages = 0;
    uint32_t state = SMCFS_PAGE_STATE_UNSPEC;
};

// How long something took, of one region since it was bound: how often by bucket, of which there are
// SMCFS_LATENCY_BUCKETS.
struct LatencyInfo {
    uint64_t region_id = 0;
    uint32_t kind = SMCFS_LATENCY_UNSPEC;
    std::vector<uint64_t> buckets;
};

struct KernelEvent {
    enum class Kind { session, region };
    Kind kind = Kind::session;
    std::string node;
    std::string name; // of the region, else empty
    uint64_t session_id = 0;
    uint64_t region_id = 0;
    uint64_t generation = 0;
    uint32_t state = 0;
    uint32_t error = 0;
    std::string reason;
};

// What of a region can be changed while it lives; only members that are set are sent.
struct RegionSettings {
    std::optional<bool> cto;
    std::optional<uint32_t> flush_after_ms;
    std::optional<uint32_t> writers; // enum smcfs_writers
    std::optional<uint32_t> merge_unit;
    std::optional<uint32_t> sync_mode; // enum smcfs_sync
    std::optional<uint32_t> push_delay_us;
    std::optional<uint32_t> max_stale_us;
    std::optional<bool> hot;
    std::optional<uint32_t> granule; // bytes
};

// One message of the family. EPROTO names the attribute that is missing or malformed.
Result<KernelInfo> parse_info(const nlmsghdr* msg);
Result<PeerName> parse_peer(const nlmsghdr* msg);
Result<SessionInfo> parse_session(const nlmsghdr* msg);
Result<RegionInfo> parse_region(const nlmsghdr* msg);
Result<KernelEvent> parse_event(const nlmsghdr* msg);
Result<std::vector<PageRun>> parse_pages(const nlmsghdr* msg);
Result<LatencyInfo> parse_latency(const nlmsghdr* msg);
Result<uint64_t> parse_discarded(const nlmsghdr* msg);

// Lower-case words, the same in text, JSON and documentation; "unknown" for what is out of range.
std::string_view session_state_name(uint32_t state);
std::string_view region_state_name(uint32_t state);
std::string_view writer_state_name(uint32_t state);
std::string_view writers_name(uint32_t writers);

} // namespace smc::client
