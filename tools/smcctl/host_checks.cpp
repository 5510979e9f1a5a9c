// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
#include "host_checks.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <filesystem>

#include <sys/wait.h>

#include "proc_scan.hpp"
#include "units.hpp"

namespace smc::ctl {
namespace {

namespace fs = std::filesystem;

constexpr unsigned kCapIpcLock = 14;      // linux/capability.h: CAP_IPC_LOCK
constexpr uint32_t kRoceHeaderBytes = 80; // the most that a RoCE packet carries beside its data
constexpr uint32_t kRdmaMtuMax = 4096;

std::vector<std::string> sorted_entries(const std::string& directory)
{
    std::vector<std::string> names;
    std::error_code ec;
    for (fs::directory_iterator it(directory, ec), end; !ec && it != end; it.increment(ec))
        names.push_back(it->path().filename().string());
    std::sort(names.begin(), names.end());
    return names;
}

std::string read_line(const std::string& path)
{
    std::string text = read_small_file(path);
    return text.substr(0, text.find('\n'));
}

template <class T>
std::optional<T> number(std::string_view text, int base = 10)
{
    T value = 0;
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
    if (error != std::errc() || end != text.data() + text.size())
        return std::nullopt;
    return value;
}

bool is_empty_gid(const std::string& gid)
{
    return gid.find_first_not_of("0:") == std::string::npos;
}

RdmaPort read_port(const std::string& sys, const std::string& device, const std::string& port)
{
    std::string directory = sys + "/class/infiniband/" + device + "/ports/" + port;
    RdmaPort out;
    out.device = device;
    out.port = number<unsigned>(port).value_or(0);
    std::string state = read_line(directory + "/state"); // "4: ACTIVE"
    size_t colon = state.find(": ");
    out.state = colon == std::string::npos ? state : state.substr(colon + 2);
    out.link_layer = read_line(directory + "/link_layer");
    const std::string gids = directory + "/gids/";
    const std::string netdevs = directory + "/gid_attrs/ndevs/";
    for (const auto& index : sorted_entries(gids)) {
        std::string gid = read_line(gids + index);
        if (is_empty_gid(gid))
            continue;
        out.gids.push_back(gid);
        if (out.netdev.empty())
            out.netdev = read_line(netdevs + index);
    }
    if (!out.netdev.empty())
        out.netdev_mtu =
            number<uint32_t>(read_line(sys + "/class/net/" + out.netdev + "/mtu")).value_or(0);
    return out;
}

// The words of a line that begins with key.
std::vector<std::string_view> words_of_line(std::string_view text, std::string_view key)
{
    size_t begin = text.starts_with(key) ? 0 : std::string_view::npos;
    if (begin == std::string_view::npos) {
        size_t found = text.find("\n" + std::string(key));
        if (found == std::string_view::npos)
            return {};
        begin = found + 1;
    }
    std::string_view line = text.substr(begin + key.size());
    line = line.substr(0, line.find('\n'));
    std::vector<std::string_view> words;
    while (true) {
        size_t start = line.find_first_not_of(" \t");
        if (start == std::string_view::npos)
            return words;
        size_t end = std::min(line.find_first_of(" \t", start), line.size());
        words.push_back(line.substr(start, end - start));
        line.remove_prefix(end);
    }
}

Finding check_port(const RdmaPort& port)
{
    std::string thing = "RDMA device " + port.device + " port " + std::to_string(port.port);
    if (port.state != "ACTIVE")
        return {Level::fail, thing,
                "is " + (port.state.empty() ? "in an unknown state" : port.state),
                port.netdev.empty() ? "see that its cable and subnet manager are up"
                                    : "run ip link set " + port.netdev + " up"};
    if (port.gids.empty())
        return {Level::fail, thing, "active, but has no GID",
                "give its network device an address, then see rdma link"};
    std::string finding = "active, " + port.link_layer + ", " + std::to_string(port.gids.size()) +
                          " GIDs, first " + port.gids.front();
    if (port.netdev_mtu == 0)
        return {Level::ok, thing, finding, ""};
    uint32_t mtu = roce_mtu(port.netdev_mtu);
    finding += ", MTU " + std::to_string(mtu) + " (" + port.netdev + ": " +
               std::to_string(port.netdev_mtu) + ")";
    if (mtu < kRdmaMtuMax)
        return {Level::warn, thing, finding,
                "for full speed set the MTU of " + port.netdev +
                    " to 4200 or more, on every node and "
                    "switch of this network"};
    return {Level::ok, thing, finding, ""};
}

} // namespace

std::vector<RdmaPort> read_rdma_ports(const std::string& sys)
{
    std::vector<RdmaPort> ports;
    const std::string devices = sys + "/class/infiniband/";
    for (const auto& device : sorted_entries(devices)) {
        const std::string directory = devices + device;
        for (const auto& port : sorted_entries(directory + "/ports"))
            ports.push_back(read_port(sys, device, port));
    }
    return ports;
}

uint32_t roce_mtu(uint32_t netdev_mtu)
{
    for (uint32_t mtu = kRdmaMtuMax; mtu >= 256; mtu /= 2) {
        if (netdev_mtu >= mtu + kRoceHeaderBytes)
            return mtu;
    }
    return 0;
}

std::optional<Memlock> parse_memlock(std::string_view limits, std::string_view status)
{
    auto capabilities = words_of_line(status, "CapEff:");
    if (!capabilities.empty()) {
        auto mask = number<uint64_t>(capabilities[0], 16);
        if (mask && (*mask >> kCapIpcLock & 1) != 0)
            return Memlock{true, 0};
    }
    auto words = words_of_line(limits, "Max locked memory");
    if (words.empty())
        return std::nullopt;
    if (words[0] == "unlimited")
        return Memlock{true, 0};
    auto bytes = number<uint64_t>(words[0]);
    return bytes ? std::optional<Memlock>(Memlock{false, *bytes}) : std::nullopt;
}

std::vector<Finding> check_rdma(const std::vector<RdmaPort>& ports)
{
    if (ports.empty())
        return {
            {Level::fail, "RDMA devices", "none",
             "load the adapter's driver, or for soft-RoCE: modprobe rdma_rxe && rdma link add rxe0 "
             "type rxe netdev NETDEV"}};
    std::vector<Finding> findings;
    findings.reserve(ports.size());
    for (const RdmaPort& port : ports)
        findings.push_back(check_port(port));
    return findings;
}

Finding check_memlock(const std::optional<Memlock>& limit, uint64_t exported_bytes)
{
    const std::string thing = "memory limit of smcfsd";
    const std::string remedy = "put LimitMEMLOCK=infinity into smcfsd.service and restart it";
    if (!limit)
        return {Level::warn, thing, "cannot be read", "run smcctl doctor as root"};
    if (limit->unlimited)
        return {Level::ok, thing, "may lock any amount", ""};
    std::string finding =
        "may lock " + format_size(limit->bytes) + ", exports need " + format_size(exported_bytes);
    if (limit->bytes < exported_bytes)
        return {Level::fail, thing, finding, remedy};
    return {Level::warn, thing, finding, remedy};
}

Finding check_versions(const std::string& tools, const std::string& daemon,
                       const std::string& module)
{
    std::string finding = "smcctl " + tools;
    bool equal = true;
    for (const auto& [name, version] :
         {std::pair{"smcfsd", daemon}, std::pair{"smcfs.ko", module}}) {
        if (version.empty())
            continue;
        finding += std::string(", ") + name + " " + version;
        equal = equal && version == tools;
    }
    if (equal)
        return {Level::ok, "versions", finding, ""};
    return {
        Level::warn, "versions", finding,
        "install the same version of all, then modprobe -r smcfs && modprobe smcfs, and systemctl "
        "restart smcfsd"};
}

Finding check_munge()
{
    const std::string thing = "MUNGE";
    // timeout(1): a munged that hangs must not hang the doctor.
    FILE* pipe = popen("timeout 10 sh -c 'munge -n </dev/null | unmunge' 2>&1", "r");
    if (!pipe)
        return {Level::warn, thing, "cannot start a shell to try it", "run munge -n | unmunge"};
    std::string text;
    std::array<char, 256> line{};
    while (fgets(line.data(), line.size(), pipe))
        text += line.data();
    int status = pclose(pipe);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return {Level::ok, thing, "seals and opens credentials", ""};
    std::string first = text.substr(0, text.find('\n'));
    if (text.find("not found") != std::string::npos)
        return {Level::warn, thing, "munge and unmunge are not installed", "apt install munge"};
    return {Level::fail, thing, first.empty() ? "does not answer" : first,
            "systemctl start munge; /etc/munge/munge.key must be the same on every node"};
}

} // namespace smc::ctl
