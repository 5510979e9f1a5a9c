// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
#include "config.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <set>

#include <fmt/format.h>
#include <linux/smcfs.h>
#include <toml++/toml.h>

#include "config/hostlist.hpp"
#include "config/reader.hpp"
#include "core/fd.hpp"
#include "core/names.hpp"

namespace smc {
namespace {

constexpr std::size_t kFileBytesMax = 4U << 20;
constexpr std::int64_t kTimeoutMinMs = 10; // as in the kernel's contract
constexpr std::int64_t kTimeoutMaxMs = 600'000;
constexpr std::int64_t kPortMax = 65535;
constexpr std::size_t kAddressesMax = 16; // of one node
constexpr std::size_t kHostNameMax = 253;

bool is_ip_address(const std::string& text)
{
    std::array<unsigned char, sizeof(in6_addr)> binary{};
    return ::inet_pton(AF_INET, text.c_str(), binary.data()) == 1 ||
           ::inet_pton(AF_INET6, text.c_str(), binary.data()) == 1;
}

std::vector<std::string> ip_addresses(TableReader& reader, std::string_view key)
{
    auto addresses = reader.strings(key).value_or(std::vector<std::string>{});
    if (addresses.size() > kAddressesMax)
        reader.issue(key, fmt::format("more than {} addresses", kAddressesMax));
    for (const auto& address : addresses)
        if (!is_ip_address(address))
            reader.issue(key, fmt::format("\"{}\" is no IPv4 or IPv6 address", address));
    return addresses;
}

void read_control(TableReader reader, ControlConfig& out)
{
    reader.assign(out.port, reader.integer("port", 1, kPortMax));
    out.listen = ip_addresses(reader, "listen");
    if (const auto auth = reader.one_of("auth", {"munge", "none"}))
        out.auth = *auth == "none" ? Auth::none : Auth::munge;
    out.munge_socket = reader.string("munge_socket").value_or("");
    reader.finish();
}

void read_rdma(TableReader reader, RdmaConfig& out)
{
    reader.assign(out.port, reader.integer("port", 1, kPortMax));
    out.devices = reader.strings("devices").value_or(std::vector<std::string>{});
    out.addresses = ip_addresses(reader, "addresses");
    out.windows = reader.boolean("windows").value_or(out.windows);
    out.extent_bytes_max =
        reader.size("extent_max", SMCFS_EXTENT_MIN, SMCFS_REGION_SIZE_MAX).value_or(0);
    reader.finish();
}

void read_timeouts(TableReader reader, TimeoutConfig& out)
{
    reader.assign(out.request_ms,
                  reader.integer("request_timeout_ms", kTimeoutMinMs, kTimeoutMaxMs));
    reader.assign(out.connect_ms,
                  reader.integer("connect_timeout_ms", kTimeoutMinMs, kTimeoutMaxMs));
    reader.assign(out.bind_ms, reader.integer("bind_timeout_ms", kTimeoutMinMs, kTimeoutMaxMs));
    reader.finish();
}

void read_retry(TableReader reader, RetryConfig& out)
{
    reader.assign(out.first_ms, reader.integer("first_ms", 1, kTimeoutMaxMs));
    reader.assign(out.cap_ms, reader.integer("cap_ms", 1, kTimeoutMaxMs));
    reader.assign(out.window_ms, reader.integer("window_ms", 0, 86'400'000));
    if (out.cap_ms < out.first_ms)
        reader.issue("cap_ms", fmt::format("{} is less than first_ms, {}: raise it", out.cap_ms,
                                           out.first_ms));
    reader.finish();
}

void read_limits(TableReader reader, LimitConfig& out)
{
    constexpr std::int64_t kConnectionsMax = 65536;
    reader.assign(out.control_connections,
                  reader.integer("control_connections", 1, kConnectionsMax));
    reader.assign(out.local_connections, reader.integer("local_connections", 1, kConnectionsMax));
    reader.assign(out.local_connections_per_uid,
                  reader.integer("local_connections_per_uid", 1, kConnectionsMax));
    reader.assign(out.exports, reader.integer("exports", 1, 1'000'000));
    reader.assign(out.sessions_in, reader.integer("sessions_in", 1, kConnectionsMax));
    reader.finish();
}

PeerConfig make_peer(const std::string& name)
{
    PeerConfig peer;
    peer.name = name;
    peer.address = name;
    return peer;
}

void read_peers(TableReader& top, Config& config)
{
    for (const auto& list : top.strings("peers").value_or(std::vector<std::string>{})) {
        auto names = expand_hostlist(list);
        if (!names) {
            top.issue("peers", names.error().what);
            continue;
        }
        for (const auto& name : *names)
            config.peers.insert_or_assign(name, make_peer(name));
        if (config.peers.size() > kHostlistMax) {
            top.issue("peers", fmt::format("more than {} names in all", kHostlistMax));
            return;
        }
    }
}

void read_peer(TableReader reader, Config& config, std::set<std::string>& seen)
{
    reader.require("name", "name = \"node\"");
    PeerConfig peer;
    peer.name = reader.string("name").value_or("");
    if (auto valid = check_node_name(peer.name); !peer.name.empty() && !valid)
        reader.issue("name", valid.error().what);
    if (!peer.name.empty() && !seen.insert(peer.name).second)
        reader.issue("name",
                     fmt::format("\"{}\" has a [[peer]] table already: merge the two", peer.name));
    peer.address = reader.string("address").value_or(peer.name);
    if (peer.address.size() > kHostNameMax ||
        peer.address.find_first_of(" \t\n/") != peer.address.npos)
        reader.issue("address", "is no host name and no IPv4 or IPv6 address");
    reader.assign(peer.port, reader.integer("port", 1, kPortMax));
    peer.rdma_addresses = ip_addresses(reader, "rdma_addresses");
    peer.source_address = reader.string("source_address");
    if (peer.source_address && !is_ip_address(*peer.source_address))
        reader.issue("source_address",
                     fmt::format("\"{}\" is no IPv4 or IPv6 address", *peer.source_address));
    if (const auto value = reader.integer("request_timeout_ms", kTimeoutMinMs, kTimeoutMaxMs))
        peer.request_timeout_ms = static_cast<std::uint32_t>(*value);
    reader.finish();
    config.peers.insert_or_assign(peer.name, std::move(peer));
}

// A number, or a name of the system's user or group database.
template <class Lookup>
std::optional<std::uint32_t> read_id(TableReader& reader, std::string_view key, Lookup lookup)
{
    const auto text = reader.string(key);
    if (!text)
        return {};
    std::uint32_t id = 0;
    const auto* end = text->data() + text->size();
    if (std::from_chars(text->data(), end, id).ptr == end && !text->empty())
        return id;
    if (const auto* entry = lookup(text->c_str()))
        return *entry;
    reader.issue(key, fmt::format("\"{}\" is unknown on this node: use a name that exists, or the "
                                  "number in quotes",
                                  *text));
    return {};
}

const std::uint32_t* lookup_user(const char* name)
{
    const auto* entry = ::getpwnam(name); // NOLINT(concurrency-mt-unsafe): only the loop's thread
    return entry != nullptr ? &entry->pw_uid : nullptr;
}

const std::uint32_t* lookup_group(const char* name)
{
    const auto* entry = ::getgrnam(name); // NOLINT(concurrency-mt-unsafe): only the loop's thread
    return entry != nullptr ? &entry->gr_gid : nullptr;
}

RegionParams read_params(TableReader& reader, std::string_view mode_key)
{
    RegionParams params;
    const auto number = [&](std::optional<std::uint32_t>& out, std::string_view key,
                            std::int64_t min, std::int64_t max) {
        if (const auto value = reader.integer(key, min, max))
            out = static_cast<std::uint32_t>(*value);
    };
    params.cto = reader.boolean("cto");
    number(params.flush_after_ms, "flush_after_ms", 1, kFlushAfterMsMax);
    if (const auto name = reader.one_of(mode_key, {kSyncModes.begin() + 1, kSyncModes.end()}))
        params.mode = parse_sync_mode(*name);
    number(params.push_delay_us, "push_delay_us", 0, SMCFS_PUSH_DELAY_US_MAX);
    number(params.max_stale_us, "max_stale_us", 0, SMCFS_MAX_STALE_US_MAX);
    params.hot = reader.boolean("hot");
    if (const auto granule = reader.size("granule", SMCFS_GRANULE_MIN, SMCFS_GRANULE_MAX)) {
        if (!granule_valid(*granule))
            reader.issue("granule", "is no power of two");
        else
            params.granule = static_cast<std::uint32_t>(*granule);
    }
    return params;
}

void read_source(TableReader& reader, ExportConfig& out)
{
    const auto host = reader.size("host", 1, SMCFS_REGION_SIZE_MAX);
    const auto file = reader.string("file");
    const auto hugepages = reader.boolean("hugepages");
    const auto offset = reader.size("offset", 0, INT64_MAX);
    const auto length = reader.size("length", 1, SMCFS_REGION_SIZE_MAX);
    if (reader.has("host") == reader.has("file")) {
        reader.issue(reader.has("file") ? "file" : "host",
                     "write exactly one of host = \"1G\" and file = \"/path\"");
        return;
    }
    if (reader.has("host")) {
        for (const auto* key : {"offset", "length"})
            if (reader.has(key))
                reader.issue(key, "is only for file =: remove it");
        out.source = HostMemoryConfig{host.value_or(0), hugepages.value_or(false)};
        return;
    }
    if (hugepages)
        reader.issue("hugepages", "is only for host =: remove it, and keep the file on hugetlbfs");
    if (file && !file->starts_with('/'))
        reader.issue("file", fmt::format("\"{}\" is no absolute path", *file));
    out.source = FileConfig{file.value_or(""), offset.value_or(0), length.value_or(0)};
}

void read_export(TableReader reader, Config& config)
{
    ExportConfig out;
    reader.require("name", "name = \"job/params\"");
    out.name = reader.string("name").value_or("");
    if (auto valid = check_region_name(out.name); !out.name.empty() && !valid)
        reader.issue("name", valid.error().what);
    read_source(reader, out);
    out.mode = reader.mode("mode").value_or(out.mode);
    out.uid = read_id(reader, "owner", lookup_user).value_or(out.uid);
    out.gid = read_id(reader, "group", lookup_group).value_or(out.gid);
    out.exclusive = reader.one_of("writers", {"merge", "exclusive"}) == "exclusive";
    if (const auto unit =
            reader.integer("merge_unit", SMCFS_MERGE_UNIT_MIN, SMCFS_MERGE_UNIT_MAX)) {
        if (!merge_unit_valid(static_cast<std::uint64_t>(*unit)))
            reader.issue("merge_unit", "is no power of two");
        else
            out.merge_unit = static_cast<std::uint32_t>(*unit);
    }
    out.readonly = reader.boolean("readonly").value_or(false);
    out.hints = read_params(reader, "sync_mode"); // mode is that of the file
    for (const auto& [name, other] : config.exports) {
        if (name == out.name)
            reader.issue("name", fmt::format("\"{}\" is exported twice: rename one", name));
        else if (names_clash(name, out.name))
            reader.issue("name", fmt::format("\"{}\" and \"{}\" cannot both exist, since one is a "
                                             "directory of the other: rename one",
                                             name, out.name));
    }
    reader.finish();
    config.exports.insert_or_assign(out.name, std::move(out));
}

void read_region(TableReader reader, Config& config)
{
    RegionRule rule;
    reader.require("match", "match = \"node/name\"");
    rule.match = reader.string("match").value_or("");
    rule.params = read_params(reader, "mode");
    reader.finish();
    config.regions.push_back(std::move(rule));
}

Config read_top(const toml::table& root, IssueList& issues, std::string_view host_name)
{
    Config config;
    TableReader top(root, "", issues);
    config.node = top.string("node").value_or(std::string(host_name));
    if (auto valid = check_node_name(config.node); !valid)
        top.issue("node", top.has("node") ? valid.error().what
                                          : fmt::format("the host name is not usable: {}; set node",
                                                        valid.error().what));
    if (const auto* table = top.table("control"))
        read_control({*table, "[control]", issues}, config.control);
    if (const auto* table = top.table("rdma"))
        read_rdma({*table, "[rdma]", issues}, config.rdma);
    if (const auto* table = top.table("timeouts"))
        read_timeouts({*table, "[timeouts]", issues}, config.timeouts);
    if (const auto* table = top.table("retry"))
        read_retry({*table, "[retry]", issues}, config.retry);
    if (const auto* table = top.table("limits"))
        read_limits({*table, "[limits]", issues}, config.limits);
    read_peers(top, config);
    std::set<std::string> peers_seen;
    for (const auto* table : top.tables("peer"))
        read_peer({*table, "[[peer]]", issues}, config, peers_seen);
    for (const auto* table : top.tables("export"))
        read_export({*table, "[[export]]", issues}, config);
    for (const auto* table : top.tables("region"))
        read_region({*table, "[[region]]", issues}, config);
    top.finish();
    return config;
}

Result<std::string> read_file(const std::string& path)
{
    // O_NONBLOCK: a FIFO in place of the file must not hang the daemon.
    const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (!fd)
        return fail_errno(errno, "cannot be read");
    std::string text;
    std::array<char, 65536> buffer{};
    while (true) {
        const auto got = ::read(fd.get(), buffer.data(), buffer.size());
        if (got < 0)
            return fail_errno(errno, "cannot be read");
        if (got == 0)
            return text;
        text.append(buffer.data(), static_cast<std::size_t>(got));
        if (text.size() > kFileBytesMax)
            return fail(EFBIG, fmt::format("is larger than {} bytes", kFileBytesMax));
    }
}

std::string host_name()
{
    std::array<char, 256> name{};
    if (::gethostname(name.data(), name.size() - 1) != 0)
        return "";
    const std::string full(name.data());
    return full.substr(0, full.find('.')); // as cluster tools do: without the domain
}

} // namespace

ConfigReport parse_config(std::string_view text, std::string_view path, std::string_view host_name)
{
    IssueList issues(path);
    ConfigReport report;
    try { // the parser's only way to report a syntax error
        const auto root = toml::parse(text, path);
        Config config = read_top(root, issues, host_name);
        config.path = path;
        report.config = std::move(config);
    } catch (const toml::parse_error& error) {
        issues.add(error.source().begin, std::string(error.description()));
    }
    report.issues = issues.all();
    if (!report.issues.empty())
        report.config.reset();
    return report;
}

ConfigReport load_config(const std::string& path)
{
    auto text = read_file(path);
    if (!text && text.error().code == ENOENT && path == kDefaultConfigPath)
        return parse_config("", path, host_name());
    if (!text)
        return {{}, {{path, text.error().what}}};
    return parse_config(*text, path, host_name());
}

} // namespace smc
