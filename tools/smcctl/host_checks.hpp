// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// Owns: what doctor finds on this host without asking anybody: sysfs, /proc, programs. Readers take the
// root of what they read, so that tests can show them other hosts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

namespace smc::ctl {

enum class Level { ok, warn, fail };

// One line of doctor: "ok    thing: finding", "FAIL  thing: finding; remedy".
struct Finding {
    Level level = Level::ok;
    std::string thing;
    std::string finding;
    std::string remedy; // empty if ok
};

struct RdmaPort {
    std::string device;
    unsigned port = 0;
    std::string state; // "ACTIVE"
    std::string link_layer;
    std::vector<std::string> gids; // without the empty ones
    std::string netdev;
    uint32_t netdev_mtu = 0; // 0: no netdev
};

std::vector<RdmaPort> read_rdma_ports(const std::string& sys = "/sys");

// The RDMA MTU that RoCE gets out of a netdev's MTU: a power of 2 from 256 to 4096, or 0.
uint32_t roce_mtu(uint32_t netdev_mtu);

// How much memory a process may lock; unlimited with CAP_IPC_LOCK.
struct Memlock {
    bool unlimited = false;
    uint64_t bytes = 0;
};
std::optional<Memlock> parse_memlock(std::string_view limits, std::string_view status);

std::vector<Finding> check_rdma(const std::vector<RdmaPort>& ports);
Finding check_memlock(const std::optional<Memlock>& limit, uint64_t exported_bytes);
Finding check_versions(const std::string& tools, const std::string& daemon,
                       const std::string& module);
// Seals and opens a credential, as the daemons do.
Finding check_munge();

} // namespace smc::ctl
