// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// The configuration of the daemon, /etc/smcfs/smcfsd.toml (smcfsd.toml(5)): read as a whole, checked
// as a whole. Every mistake is reported with file:line:column and what to write instead.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/merge_unit.hpp"
#include "core/region_params.hpp"
#include "core/result.hpp"

namespace smc {

inline constexpr std::uint16_t kDefaultControlPort = 7450;
inline constexpr std::uint16_t kDefaultRdmaPort = 7451;
inline constexpr std::string_view kDefaultConfigPath = "/etc/smcfs/smcfsd.toml";
inline constexpr std::string_view kDefaultSocketPath = "/run/smcfs/smcfsd.sock";

enum class Auth { munge, none };

struct ControlConfig {
    std::uint16_t port = kDefaultControlPort;
    std::vector<std::string> listen; // addresses; empty: all, IPv6 and IPv4
    Auth auth = Auth::munge;
    std::string munge_socket; // empty: munge's default
};

struct RdmaConfig {
    std::uint16_t port = kDefaultRdmaPort;
    std::vector<std::string> devices;   // RDMA devices to serve on; empty: all that are active
    std::vector<std::string> addresses; // offered to clients; empty: those of the devices' GIDs
    bool windows = true;                // false: an MR per session even where windows exist
    std::uint64_t extent_bytes_max = 0; // longest extent of a grant; 0: what the device can
};

struct TimeoutConfig {
    std::uint32_t request_ms = 1000; // no progress for so long fails the QP
    std::uint32_t connect_ms = 5000; // one attempt: TCP, or both QPs
    std::uint32_t bind_ms = 10000;   // a whole first use
};

struct RetryConfig {
    std::uint32_t first_ms = 50;
    std::uint32_t cap_ms = 1000;
    std::uint32_t window_ms = 60000; // after so long a lost session is reported as failed; it is
                                     // retried on, at the cap, for as long as regions are attached
};

struct LimitConfig {
    std::uint32_t control_connections = 1024;
    std::uint32_t local_connections = 1024;
    std::uint32_t local_connections_per_uid = 128;
    std::uint32_t exports = 4096;
    std::uint32_t sessions_in = 1024;
};

// A node of the cluster that this one may use.
struct PeerConfig {
    std::string name;
    std::string address; // host name or address of its daemon; default: name
    std::uint16_t port = kDefaultControlPort;
    std::vector<std::string> rdma_addresses;   // instead of those that it offers
    std::optional<std::string> source_address; // which local RDMA device to use
    std::optional<std::uint32_t> request_timeout_ms;

    bool operator==(const PeerConfig&) const = default;
};

struct HostMemoryConfig {
    std::uint64_t length_bytes = 0;
    bool hugepages = false;
    bool operator==(const HostMemoryConfig&) const = default;
};

struct FileConfig {
    std::string path;
    std::uint64_t offset_bytes = 0;
    std::uint64_t length_bytes = 0; // 0: to the end of the file
    bool operator==(const FileConfig&) const = default;
};

struct ExportConfig {
    std::string name;
    std::variant<HostMemoryConfig, FileConfig> source;
    std::uint32_t mode = 0600;
    std::uint32_t uid = 0;
    std::uint32_t gid = 0;
    bool exclusive = false; // writers = "exclusive"; else "merge"
    std::uint32_t merge_unit = SMCFS_MERGE_UNIT;
    bool readonly = false;
    RegionParams hints; // for nodes that attach it and say nothing else

    bool operator==(const ExportConfig&) const = default;
};

// Parameters of the regions that this node attaches; of several that match the last one wins, key
// by key.
struct RegionRule {
    std::string match; // "node/name" as in fnmatch(3)
    RegionParams params;
};

struct Config {
    std::string path; // where it was read from
    std::string node; // this node's name
    ControlConfig control;
    RdmaConfig rdma;
    TimeoutConfig timeouts;
    RetryConfig retry;
    LimitConfig limits;
    std::map<std::string, PeerConfig> peers;     // by name
    std::map<std::string, ExportConfig> exports; // by name
    std::vector<RegionRule> regions;
};

struct ConfigIssue {
    std::string where; // file:line:column
    std::string what;  // with the remedy
};

struct ConfigReport {
    std::optional<Config> config; // only without issues
    std::vector<ConfigIssue> issues;
};

// host_name is the default of node.
ConfigReport parse_config(std::string_view text, std::string_view path, std::string_view host_name);
// A missing file at the default path is an empty one.
ConfigReport load_config(const std::string& path);

} // namespace smc
