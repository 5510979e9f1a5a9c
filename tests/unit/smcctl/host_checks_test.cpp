// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
#include "host_checks.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <catch2/catch.hpp>

using namespace smc::ctl;

namespace {

RdmaPort good_port()
{
    RdmaPort port;
    port.device = "rxe0";
    port.port = 1;
    port.state = "ACTIVE";
    port.link_layer = "Ethernet";
    port.gids = {"0000:0000:0000:0000:0000:ffff:0a00:0001"};
    port.netdev = "eth0";
    port.netdev_mtu = 9000;
    return port;
}

constexpr const char* kLimits =
    "Limit                     Soft Limit           Hard Limit           Units     \n"
    "Max cpu time              unlimited            unlimited            seconds   \n"
    "Max locked memory         8388608              8388608              bytes     \n";

} // namespace

TEST_CASE("RDMA ports are read with their GIDs and network device", "[doctor]")
{
    char pattern[] = "/tmp/smc-test-XXXXXX";
    REQUIRE(mkdtemp(pattern) != nullptr);
    const std::string sys = pattern;
    auto write = [&](const std::string& path, const std::string& text) {
        std::filesystem::path file = sys + "/" + path;
        std::filesystem::create_directories(file.parent_path());
        std::ofstream(file) << text;
    };
    const std::string port = "class/infiniband/rxe0/ports/1/";
    write(port + "state", "4: ACTIVE\n");
    write(port + "link_layer", "Ethernet\n");
    write(port + "gids/0", "fe80:0000:0000:0000:5054:00ff:fe12:3456\n");
    write(port + "gids/1", "0000:0000:0000:0000:0000:0000:0000:0000\n");
    write(port + "gid_attrs/ndevs/0", "eth1\n");
    write("class/net/eth1/mtu", "1500\n");
    auto ports = read_rdma_ports(sys);
    std::filesystem::remove_all(sys);

    REQUIRE(ports.size() == 1);
    CHECK(ports[0].device == "rxe0");
    CHECK(ports[0].port == 1);
    CHECK(ports[0].state == "ACTIVE");
    CHECK(ports[0].gids.size() == 1);
    CHECK(ports[0].netdev == "eth1");
    CHECK(ports[0].netdev_mtu == 1500);
    CHECK(read_rdma_ports("/nonexistent").empty());
}

TEST_CASE("the RDMA MTU follows from the network's", "[doctor]")
{
    CHECK(roce_mtu(1500) == 1024);
    CHECK(roce_mtu(4200) == 4096);
    CHECK(roce_mtu(9000) == 4096);
    CHECK(roce_mtu(2048) == 1024);
    CHECK(roce_mtu(100) == 0);
}

TEST_CASE("each thing that can be wrong with a port has its own finding and remedy", "[doctor]")
{
    CHECK(check_rdma({good_port()})[0].level == Level::ok);

    RdmaPort down = good_port();
    down.state = "DOWN";
    auto finding = check_rdma({down})[0];
    CHECK(finding.level == Level::fail);
    CHECK(finding.remedy.find("ip link set eth0 up") != std::string::npos);

    RdmaPort bare = good_port();
    bare.gids.clear();
    CHECK(check_rdma({bare})[0].level == Level::fail);

    RdmaPort slow = good_port();
    slow.netdev_mtu = 1500;
    finding = check_rdma({slow})[0];
    CHECK(finding.level == Level::warn);
    CHECK(finding.finding.find("MTU 1024") != std::string::npos);

    finding = check_rdma({})[0];
    CHECK(finding.level == Level::fail);
    CHECK(finding.remedy.find("rdma link add") != std::string::npos);
}

TEST_CASE("the limit of locked memory is read, and a capability lifts it", "[doctor]")
{
    auto limited = parse_memlock(kLimits, "Name:\tsmcfsd\nCapEff:\t0000000000000000\n");
    REQUIRE(limited);
    CHECK_FALSE(limited->unlimited);
    CHECK(limited->bytes == 8388608);

    auto capable = parse_memlock(kLimits, "Name:\tsmcfsd\nCapEff:\t0000000000004000\n");
    REQUIRE(capable);
    CHECK(capable->unlimited);

    auto unlimited = parse_memlock(
        "Max locked memory         unlimited            unlimited            bytes\n", "");
    REQUIRE(unlimited);
    CHECK(unlimited->unlimited);
    CHECK_FALSE(parse_memlock("", ""));
}

TEST_CASE("a limit below what is exported fails and names the remedy", "[doctor]")
{
    Finding finding = check_memlock(Memlock{false, 8 << 20}, 64 << 20);
    CHECK(finding.level == Level::fail);
    CHECK(finding.finding.find("8M") != std::string::npos);
    CHECK(finding.finding.find("64M") != std::string::npos);
    CHECK(finding.remedy.find("LimitMEMLOCK=infinity") != std::string::npos);
    CHECK(check_memlock(Memlock{false, 8 << 20}, 0).level == Level::warn);
    CHECK(check_memlock(Memlock{true, 0}, 64 << 20).level == Level::ok);
    CHECK(check_memlock(std::nullopt, 0).level == Level::warn);
}

TEST_CASE("unequal versions are named, unknown ones are not held against anybody", "[doctor]")
{
    CHECK(check_versions("0.1.0", "0.1.0", "0.1.0").level == Level::ok);
    CHECK(check_versions("0.1.0", "", "").level == Level::ok);
    Finding finding = check_versions("0.2.0", "0.2.0", "0.1.0");
    CHECK(finding.level == Level::warn);
    CHECK(finding.finding.find("smcfs.ko 0.1.0") != std::string::npos);
}
