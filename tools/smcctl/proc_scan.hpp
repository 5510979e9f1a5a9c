// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// Owns: who maps, holds open or waits for files of smcfs, read from /proc. Nothing here touches such
// a file itself: a stat of one could wait for the peer that is being looked into.
//
// Failure: processes that end, or that the caller may not look into, are passed over.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

namespace smc::ctl {

// The mounts of smcfs in one mount namespace.
struct SmcfsMounts {
    std::set<std::string> devices; // "0:45"
    std::set<std::string> ids;     // of the mounts, as in fdinfo
    std::set<std::string> points;
};

// One process and one region; region_id 0: a process that waits in smcfs, with no file of it yet.
struct ProcessUse {
    pid_t pid = 0;
    std::string command;
    uint64_t region_id = 0;
    uint64_t mapped_bytes = 0;
    uint32_t open_files = 0;
    char state = '?'; // of the thread that waits, else of the first
    std::string wchan;
    bool waiting = false; // some thread waits for smcfs or for a page
};

SmcfsMounts parse_mountinfo(std::string_view text);

struct MappedBytes {
    uint64_t inode = 0;
    uint64_t bytes = 0;
};
// The mappings of maps that are files on one of devices, summed per inode.
std::vector<MappedBytes> parse_maps(std::string_view text, const std::set<std::string>& devices);

// The state letter in a stat line; the command in it may hold anything, ')' and spaces too.
char parse_stat_state(std::string_view text);

// Whether a thread in this state and kernel function waits for a region's page or peer.
bool is_smcfs_wait(char state, std::string_view wchan);

// Sorted by pid, then region.
std::vector<ProcessUse> scan_processes(const std::string& proc = "/proc");

// The whole file, or an empty string.
std::string read_small_file(const std::string& path);

} // namespace smc::ctl
