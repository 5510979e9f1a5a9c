// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
#include "config.hpp"

#include <catch2/catch.hpp>

#include "config/reader.hpp"

namespace {

smc::ConfigReport parse(std::string_view text)
{
    return smc::parse_config(text, "f.toml", "here");
}

// The one issue of a text that has exactly one, as "place|what".
std::string only_issue(std::string_view text)
{
    const auto report = parse(text);
    REQUIRE(report.issues.size() == 1);
    CHECK_FALSE(report.config);
    return report.issues[0].where + "|" + report.issues[0].what;
}

} // namespace

TEST_CASE("an empty file is a valid configuration with the defaults", "[config]")
{
    const auto report = parse("");
    REQUIRE(report.config);
    CHECK(report.config->node == "here");
    CHECK(report.config->control.auth == smc::Auth::munge);
    CHECK(report.config->control.port == 7450);
    CHECK(report.config->rdma.port == 7451);
    CHECK(report.config->timeouts.request_ms == 1000);
    CHECK(report.config->timeouts.bind_ms == 10000);
}

TEST_CASE("every key is read", "[config]")
{
    const auto report = parse(R"(
node = "n1"
peers = ["gpu[01-03]", "extra"]
[control]
port = 1
listen = ["127.0.0.1", "::1"]
auth = "none"
munge_socket = "/run/m.sock"
[rdma]
port = 2
devices = ["rxe0"]
addresses = ["10.0.0.1"]
windows = false
extent_max = "4M"
[timeouts]
request_timeout_ms = 11
connect_timeout_ms = 12
bind_timeout_ms = 13
[retry]
first_ms = 1
cap_ms = 2
window_ms = 3
[limits]
control_connections = 4
local_connections = 5
local_connections_per_uid = 6
exports = 7
sessions_in = 8
[[peer]]
name = "gpu02"
address = "fd00::2"
port = 77
rdma_addresses = ["10.1.0.2"]
source_address = "10.1.0.1"
request_timeout_ms = 500
[[export]]
name = "job/params"
host = "1G"
hugepages = true
mode = 0o640
owner = "root"
group = "0"
writers = "exclusive"
readonly = true
[[export]]
name = "weights"
file = "/dev/shm/weights"
offset = 4096
length = "2M"
sync_mode = "eager"
max_stale_us = 0
hot = true
granule = 8192
[[region]]
match = "gpu*/job/*"
cto = false
flush_after_ms = 50
mode = "push"
push_delay_us = 0
max_stale_us = 5000
granule = "1M"
)");
    for (const auto& issue : report.issues)
        UNSCOPED_INFO(issue.where << " " << issue.what);
    REQUIRE(report.config);
    const auto& config = *report.config;
    CHECK(config.node == "n1");
    CHECK(config.peers.size() == 4);
    CHECK(config.peers.at("gpu01").address == "gpu01");
    const auto& peer = config.peers.at("gpu02");
    CHECK(peer.address == "fd00::2");
    CHECK(peer.port == 77);
    CHECK(peer.rdma_addresses == std::vector<std::string>{"10.1.0.2"});
    CHECK(peer.source_address == "10.1.0.1");
    CHECK(peer.request_timeout_ms == 500);
    CHECK(config.control.auth == smc::Auth::none);
    CHECK(config.control.listen.size() == 2);
    CHECK(config.control.munge_socket == "/run/m.sock");
    CHECK_FALSE(config.rdma.windows);
    CHECK(config.rdma.extent_bytes_max == 4U << 20);
    CHECK(config.limits.sessions_in == 8);
    CHECK(config.retry.window_ms == 3);
    const auto& host = config.exports.at("job/params");
    CHECK(std::get<smc::HostMemoryConfig>(host.source).length_bytes == 1ULL << 30);
    CHECK(std::get<smc::HostMemoryConfig>(host.source).hugepages);
    CHECK(host.mode == 0640);
    CHECK(host.readonly);
    const auto& file = std::get<smc::FileConfig>(config.exports.at("weights").source);
    CHECK(file.path == "/dev/shm/weights");
    CHECK(file.length_bytes == 2U << 20);
    REQUIRE(config.regions.size() == 1);
    const auto& params = config.regions[0].params;
    CHECK(params.cto == false);
    CHECK(params.flush_after_ms == 50);
    CHECK(params.mode == SMCFS_SYNC_PUSH);
    CHECK(params.push_delay_us == 0);
    CHECK(params.max_stale_us == 5000);
    CHECK(params.granule == 1U << 20);
    const auto& hints = config.exports.at("weights").hints;
    CHECK(hints.mode == SMCFS_SYNC_EAGER);
    CHECK(hints.max_stale_us == 0);
    CHECK(hints.hot == true);
    CHECK(hints.granule == 8192);
    CHECK_FALSE(params.hot);
    CHECK_FALSE(hints.cto);
    // The node's own rule is stronger, key by key.
    auto merged = params;
    merged.fill_from({.cto = true, .max_stale_us = 0, .granule = 4096});
    CHECK(merged == params);
    merged = hints;
    merged.fill_from(params);
    CHECK(merged.mode == SMCFS_SYNC_EAGER);
    CHECK(merged.push_delay_us == 0);
}

TEST_CASE("an unknown key is named with its place and the nearest known one", "[config]")
{
    CHECK(only_issue("[control]\nprot = 7450\n") ==
          "f.toml:2:1|[control] prot: unknown key; did you mean \"port\"?");
    CHECK_THAT(only_issue("[controll]\n"), Catch::Contains("did you mean \"control\"?"));
}

TEST_CASE("a wrong type is named with what to write", "[config]")
{
    CHECK(only_issue("[control]\nport = \"7450\"\n") ==
          "f.toml:2:8|[control] port: is a string, must be an integer from 1 to 65535, without "
          "quotes");
    CHECK_THAT(only_issue("peers = \"gpu1\""), Catch::Contains("must be an array of strings"));
    CHECK_THAT(only_issue("control = 3"), Catch::Contains("must be a table: write [control]"));
    CHECK_THAT(only_issue("export = 3"), Catch::Contains("write [[export]]"));
}

TEST_CASE("a value out of range is named with the range", "[config]")
{
    CHECK(only_issue("[timeouts]\nrequest_timeout_ms = 9") ==
          "f.toml:2:22|[timeouts] request_timeout_ms: 9 is out of range: use 10 to 600000");
    CHECK_THAT(only_issue("[[export]]\nname = \"a\"\nhost = 0"), Catch::Contains("out of range"));
    CHECK_THAT(only_issue("[[region]]\nmatch = \"*\"\nmax_stale_us = 3600000001"),
               Catch::Contains("max_stale_us") && Catch::Contains("out of range"));
    CHECK_THAT(only_issue("[[region]]\nmatch = \"*\"\npush_delay_us = 1000001"),
               Catch::Contains("push_delay_us") && Catch::Contains("out of range"));
    CHECK_THAT(only_issue("[[region]]\nmatch = \"*\"\ngranule = \"2M\""),
               Catch::Contains("granule") && Catch::Contains("out of range"));
    CHECK_THAT(only_issue("[[region]]\nmatch = \"*\"\ngranule = \"48K\""),
               Catch::Contains("granule: is no power of two"));
    CHECK_THAT(only_issue("[[region]]\nmatch = \"*\"\nmode = \"often\""),
               Catch::Contains("mode") && Catch::Contains("push"));
    CHECK_THAT(only_issue("[[export]]\nname = \"a\"\nhost = \"32T\""),
               Catch::Contains("out of range"));
    CHECK_THAT(only_issue("[[export]]\nname = \"a\"\nhost = \"1G\"\nmode = \"4755\""),
               Catch::Contains("permission bits"));
}

TEST_CASE("all mistakes are reported, not only the first", "[config]")
{
    const auto report = parse(R"(nod = "x"
[control]
port = 0
auth = "ssl"
[[export]]
host = "1G"
[[export]]
name = "../etc"
file = "relative"
)");
    CHECK(report.issues.size() == 6);
}

TEST_CASE("a syntax error is named with its place", "[config]")
{
    CHECK_THAT(only_issue("[control\nport = 1"), Catch::StartsWith("f.toml:1:"));
}

TEST_CASE("exports that cannot both exist are refused", "[config]")
{
    CHECK_THAT(only_issue("[[export]]\nname=\"job\"\nhost=1\n[[export]]\nname=\"job/a\"\nhost=1"),
               Catch::Contains("directory of the other"));
    CHECK_THAT(only_issue("[[export]]\nname=\"job\"\nhost=1\n[[export]]\nname=\"job\"\nhost=1"),
               Catch::Contains("exported twice"));
    CHECK(parse("[[export]]\nname=\"job\"\nhost=1\n[[export]]\nname=\"jobs/a\"\nhost=1").config);
}

TEST_CASE("an export has exactly one source", "[config]")
{
    CHECK_THAT(only_issue("[[export]]\nname=\"a\""), Catch::Contains("exactly one of host"));
    CHECK_THAT(only_issue("[[export]]\nname=\"a\"\nhost=1\nfile=\"/x\""),
               Catch::Contains("exactly one of host"));
}

TEST_CASE("a missing file is an error unless it is the default one", "[config]")
{
    const auto report = smc::load_config("/nonexistent/smcfsd.toml");
    REQUIRE(report.issues.size() == 1);
    CHECK(report.issues[0].where == "/nonexistent/smcfsd.toml");
}

TEST_CASE("sizes are integers with an optional unit", "[config]")
{
    CHECK(smc::parse_size("4096") == 4096);
    CHECK(smc::parse_size("16T") == 16ULL << 40);
    CHECK(smc::parse_size("18446744073709551615") == ~0ULL);
    for (const auto* bad :
         {"", "G", "1GB", "1.5G", "-1", " 1", "1 G", "18446744073709551616", "16777216T", "1X"})
        CHECK_FALSE(smc::parse_size(bad));
}
