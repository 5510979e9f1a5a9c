// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// The words in which the target side speaks to the rest of the daemon. Plain values.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <linux/smcfs.h>

#include "core/fd.hpp"
#include "core/region_params.hpp"
#include "core/result.hpp"

namespace smc {

using SessionId = std::uint64_t;  // chosen by the client, not 0
using Generation = std::uint64_t; // names memory; random, not 0
using Token = std::array<std::uint8_t, SMCFS_TOKEN_BYTES>;

// How an operation that waits for the RDMA device reports back: on the loop, exactly once, never
// from within the call that started it.
template <class T>
using Done = std::function<void(Result<T>)>;

// --- what is exported ----------------------------------------------------------------------------

struct HostMemory { // fresh zeroed memory of the daemon, a sealed memfd
    std::uint64_t length_bytes = 0;
    bool hugepages = false; // of the default size, reserved by the administrator
};

struct FilePath { // a regular file or shared-memory object; opened with the rights of `as`
    std::string path;
    std::uint64_t offset_bytes = 0;
    std::uint64_t length_bytes = 0; // 0: to the end of the file
};

struct FdMemory { // the same, opened by the caller
    Fd fd;
    std::uint64_t offset_bytes = 0;
    std::uint64_t length_bytes = 0;
};

// Whose rights open a FilePath. root opens as the daemon itself.
struct Caller {
    uid_t uid = 0;
    gid_t gid = 0;
};

enum class Writers : std::uint32_t {
    exclusive = SMCFS_WRITERS_EXCLUSIVE,
    merge = SMCFS_WRITERS_MERGE,
};
const char* to_string(Writers writers);
std::optional<Writers> parse_writers(std::string_view text);

struct ExportSpec {
    std::string name;
    uid_t uid = 0; // owner on the client nodes
    gid_t gid = 0;
    std::uint32_t mode = 0600; // permission bits only
    Writers writers = Writers::merge;
    std::uint32_t merge_unit = SMCFS_MERGE_UNIT; // bytes
    bool readonly = false;
    RegionParams hints;
    std::variant<HostMemory, FilePath, FdMemory> source;
    Caller caller; // for FilePath
};

// What the keys of a region are made of.
enum class Keys { none, window, mr }; // none: no session uses it
const char* to_string(Keys keys);

struct ExportInfo {
    std::string name;
    uid_t uid = 0;
    gid_t gid = 0;
    std::uint32_t mode = 0;
    Writers writers = Writers::merge;
    std::uint32_t merge_unit = SMCFS_MERGE_UNIT;
    bool readonly = false;
    std::uint64_t size = 0;
    Generation generation = 0;
    std::string provider; // "host", "hugepages", "file", "fd"
    std::string path;     // of a file
    Keys keys = Keys::none;
    std::vector<std::string> sessions; // nodes that hold a grant
    std::optional<std::string> writer; // node that holds the writing right
};

// --- sessions and grants -------------------------------------------------------------------------

struct SessionOffer {
    std::vector<std::string> addresses; // RDMA addresses of this node, the preferred first
    std::uint16_t port = 0;
    Token token_read{};
    Token token_bulk{};
};

// A probe session has a read QP only and carries no region: it may READ a scratch memory whose
// place arrives with the accept (verbs/probe.hpp). Closed with session_close() or by disconnecting.
struct ProbeOffer {
    std::vector<std::string> addresses;
    std::uint16_t port = 0;
    SessionId session = 0; // chosen by the target
    Token token{};
};

struct Grant {
    Generation generation = 0;
    std::uint64_t size = 0;
    std::uint32_t mode = 0;
    uid_t uid = 0;
    gid_t gid = 0;
    Writers writers = Writers::merge;
    std::uint32_t merge_unit = SMCFS_MERGE_UNIT;
    bool readonly = false;
    bool atomics = false; // the read keys allow them
    RegionParams hints;   // for whom no configuration of its own says otherwise
    std::vector<smcfs_extent> extents;
    Keys keys = Keys::none;
};

// offered -> connecting (one QP) -> live (both) -> lost (QPs destroyed); lost from anywhere.
enum class SessionState { offered, connecting, live, lost };
const char* to_string(SessionState state);

struct SessionInfo {
    SessionId session = 0;
    std::string node;
    SessionState state = SessionState::offered;
    Keys keys = Keys::none;
    std::string device;               // empty until a QP is there
    std::vector<std::string> regions; // granted
    std::vector<std::string> writes;  // writing rights held
    std::uint64_t age_s = 0;
};

struct RdmaPortInfo { // for `status` and `doctor`
    std::string device;
    unsigned port = 0;
    std::string state;      // "active", "down", ...
    std::string link_layer; // "Ethernet", "InfiniBand"
    unsigned mtu_bytes = 0;
    bool windows = false; // type 2 memory windows
    std::vector<std::string> addresses;
};

} // namespace smc
