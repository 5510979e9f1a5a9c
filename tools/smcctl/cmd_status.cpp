// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// status: this node at a glance, from the daemon and from the kernel.
#include <CLI/CLI.hpp>

#include "cli.hpp"
#include "model.hpp"

namespace smc::ctl {
namespace {

Json attached_summary(const std::vector<client::RegionInfo>& regions)
{
    uint64_t dirty = 0;
    uint64_t cached = 0;
    uint64_t not_active = 0;
    for (const auto& region : regions) {
        dirty += region.dirty_bytes;
        cached += region.cached_bytes;
        not_active += region.state != SMCFS_REGION_ACTIVE;
    }
    return {{"regions", regions.size()},
            {"not_active", not_active},
            {"dirty_bytes", dirty},
            {"cached_bytes", cached}};
}

// null when the module is not loaded, which is no fault on a node that only exports.
Result<Json> kernel_model()
{
    auto kernel = client::Kernel::open();
    if (!kernel)
        return kernel.error().code == ENODEV ? Result<Json>(Json())
                                             : tl::unexpected<Error>(kernel.error());
    Json model = to_json(SMC_TRY(kernel->info()));
    model["attached"] = attached_summary(SMC_TRY(kernel->regions()));
    return model;
}

void write_text(Output& out, const Json& model)
{
    if (model["daemon"].is_null())
        out.line("The daemon smcfsd does not answer.");
    else
        out.record(model["daemon"], {{"node", "Node"},
                                     {"version", "Daemon"},
                                     {"pid", "PID"},
                                     {"uptime_s", "Running for", As::s},
                                     {"kernel", "Speaks to the kernel"},
                                     {"auth", "Authentication"},
                                     {"config", "Configuration"},
                                     {"exports", "Exports"},
                                     {"sessions_in", "Sessions in"},
                                     {"sessions_out", "Sessions out"}});
    if (model["kernel"].is_null())
        out.line("The module smcfs is not loaded; it is needed only to attach regions here.");
    else
        out.record(model["kernel"], {{"version", "Module"},
                                     {"attached.regions", "Attached regions"},
                                     {"attached.not_active", "Not active"},
                                     {"attached.dirty_bytes", "Dirty", As::size},
                                     {"attached.cached_bytes", "Cached", As::size}});
    if (model["daemon"].is_object() && model["daemon"].contains("rdma")) {
        out.line("");
        out.table(model["daemon"]["rdma"], {{"device", "DEVICE"},
                                            {"port", "PORT"},
                                            {"state", "STATE"},
                                            {"mtu", "MTU"},
                                            {"addresses", "ADDRESSES", As::list}});
    }
}

Result<int> status(const Context& context)
{
    auto answer = SMC_TRY(context.ask_if_running("status"));
    Json daemon;
    if (answer) {
        daemon = std::move(*answer);
        for (const char* envelope : {"id", "ok", "type"})
            daemon.erase(envelope);
    }
    const bool running = daemon.is_object();
    Json model = {{"daemon", std::move(daemon)}, {"kernel", SMC_TRY(kernel_model())}};
    Output out = context.output();
    out.model(model);
    write_text(out, model);
    return running ? 0 : 1;
}

} // namespace

void add_status(CLI::App& app, Context& context)
{
    add_verb(app, context, "status", "This node at a glance: daemon, module, RDMA devices",
             [&context] { return status(context); });
}

} // namespace smc::ctl
