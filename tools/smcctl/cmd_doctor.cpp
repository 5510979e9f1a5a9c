// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// doctor: everything that has to be right, one line each, with the remedy.
#include <CLI/CLI.hpp>

#include "cli.hpp"
#include "host_checks.hpp"
#include "model.hpp"
#include "proc_scan.hpp"

namespace smc::ctl {
namespace {

struct Seen {
    std::vector<Finding> findings;
    std::optional<Json> daemon; // its status
    std::string module_version;
    uint64_t exported_bytes = 0;

    void add(Level level, std::string thing, std::string finding, std::string remedy = "")
    {
        findings.push_back({level, std::move(thing), std::move(finding), std::move(remedy)});
    }
};

void check_regions(Seen& seen, client::Kernel& kernel)
{
    auto regions = kernel.regions();
    if (!regions)
        return seen.add(Level::fail, "regions", regions.error().what, "see dmesg");
    for (const auto& region : *regions) {
        if (region.state != SMCFS_REGION_DEGRADED && region.state != SMCFS_REGION_FAILED)
            continue;
        seen.add(Level::warn, "region " + region.node + ":" + region.name,
                 std::string(client::region_state_name(region.state)) +
                     (region.reason.empty() ? "" : ", " + region.reason),
                 "run smcctl ping " + region.node);
    }
}

void check_kernel(Seen& seen)
{
    auto kernel = client::Kernel::open();
    if (!kernel) {
        // A node that only exports runs without.
        if (kernel.error().code == ENODEV)
            return seen.add(Level::warn, "module", "smcfs is not loaded",
                            "to attach regions on this node run modprobe smcfs");
        return seen.add(Level::fail, "module", kernel.error().what, "see dmesg");
    }
    auto info = kernel->info();
    if (!info)
        return seen.add(Level::fail, "module", info.error().what, "see dmesg");
    seen.module_version = info->version;
    seen.add(Level::ok, "module", "smcfs " + info->version + " is loaded");

    auto mounts = parse_mountinfo(read_small_file("/proc/self/mountinfo"));
    if (mounts.points.count(std::string(client::kMountPoint)) != 0)
        seen.add(Level::ok, "mount", "smcfs is mounted at /smc");
    else
        seen.add(Level::fail, "mount", "smcfs is not mounted at /smc",
                 "run mkdir -p /smc && mount -t smcfs smcfs /smc");
    if (info->daemon_present)
        seen.add(Level::ok, "kernel link", "a daemon takes the kernel's requests");
    else
        seen.add(Level::fail, "kernel link",
                 "no daemon takes the kernel's requests: regions that are "
                 "not attached yet cannot be",
                 "run systemctl restart smcfsd");
    check_regions(seen, *kernel);
}

void check_exports(Seen& seen, const Context& context)
{
    auto answer = context.ask_all("exports");
    if (!answer)
        return seen.add(Level::fail, "exports", answer.error().what, "see journalctl -u smcfsd");
    for (const Json& row : answer->value("exports", Json::array()))
        seen.exported_bytes += row.is_object() ? client::get_uint(row, "size").value_or(0) : 0;
}

void check_peers(Seen& seen, const Context& context)
{
    auto answer = context.ask_all("peers");
    if (!answer)
        return seen.add(Level::fail, "peers", answer.error().what, "see journalctl -u smcfsd");
    size_t count = 0;
    for (const Json& row : answer->value("peers", Json::array())) {
        count++;
        if (row.is_object() && row.value("state", Json()) == "failed")
            seen.add(Level::warn, "peer " + cell(row, {"node", ""}), cell(row, {"error", ""}),
                     "run smcctl ping " + cell(row, {"node", ""}));
    }
    seen.add(Level::ok, "peers", std::to_string(count) + " known");
}

void check_daemon(Seen& seen, const Context& context)
{
    auto status = context.ask("status");
    if (!status && status.error().code == ENOTCONN)
        return seen.add(Level::fail, "daemon",
                        "smcfsd is not running: nobody listens on " + context.socket,
                        "run systemctl start smcfsd, then see journalctl -u smcfsd");
    if (!status)
        return seen.add(Level::fail, "daemon", status.error().what, "see journalctl -u smcfsd");
    seen.daemon = std::move(*status);
    seen.add(Level::ok, "daemon",
             "smcfsd answers, process " + cell(*seen.daemon, {"pid", ""}) + ", node " +
                 cell(*seen.daemon, {"node", ""}));
    check_exports(seen, context);
    check_peers(seen, context);
    if (auto pid = client::get_uint(*seen.daemon, "pid")) {
        std::string proc = "/proc/" + std::to_string(*pid);
        seen.findings.push_back(check_memlock(
            parse_memlock(read_small_file(proc + "/limits"), read_small_file(proc + "/status")),
            seen.exported_bytes));
    }
}

void check_authentication(Seen& seen)
{
    if (seen.daemon && seen.daemon->value("auth", Json()) == "none")
        return seen.add(Level::warn, "authentication",
                        "auth = \"none\": every host that reaches this "
                        "node may use its regions",
                        "set auth = \"munge\" outside test networks");
    seen.findings.push_back(check_munge());
}

std::string_view level_name(Level level)
{
    switch (level) {
    case Level::ok:
        return "ok";
    case Level::warn:
        return "warn";
    case Level::fail:
        break;
    }
    return "FAIL";
}

Result<int> doctor(const Context& context)
{
    Seen seen;
    check_kernel(seen);
    for (auto& finding : check_rdma(read_rdma_ports()))
        seen.findings.push_back(std::move(finding));
    check_daemon(seen, context);
    check_authentication(seen);
    std::string daemon_version =
        seen.daemon ? client::get_string(*seen.daemon, "version").value_or("") : "";
    seen.findings.push_back(check_versions(SMC_VERSION, daemon_version, seen.module_version));

    Json rows = Json::array();
    bool failed = false;
    Output out = context.output();
    for (const Finding& finding : seen.findings) {
        failed = failed || finding.level == Level::fail;
        std::string level(level_name(finding.level));
        rows.push_back({{"level", level},
                        {"thing", finding.thing},
                        {"finding", finding.finding},
                        {"remedy", finding.remedy.empty() ? Json() : Json(finding.remedy)}});
        out.line(level + std::string(6 - level.size(), ' ') + finding.thing + ": " +
                 finding.finding + (finding.remedy.empty() ? "" : "; " + finding.remedy));
    }
    out.model({{"ok", !failed}, {"checks", rows}});
    return failed ? 1 : 0;
}

} // namespace

void add_doctor(CLI::App& app, Context& context)
{
    add_verb(app, context, "doctor", "Check what SMC needs on this node, with the remedies",
             [&context] { return doctor(context); });
}

} // namespace smc::ctl
