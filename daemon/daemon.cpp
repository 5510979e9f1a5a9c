// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
#include "daemon.hpp"

#include <fmt/format.h>
#include <systemd/sd-daemon.h>

#include "core/log.hpp"

namespace smc {
namespace {

constexpr Milliseconds kStopTimeout{10000};

TargetOptions target_options(const Config& config)
{
    TargetOptions options;
    options.port = config.rdma.port;
    options.devices = config.rdma.devices;
    options.addresses = config.rdma.addresses;
    options.windows = config.rdma.windows;
    options.extent_bytes_max = config.rdma.extent_bytes_max;
    options.sessions_max = config.limits.sessions_in;
    options.exports_max = config.limits.exports;
    return options;
}

ExportSpec to_spec(const ExportConfig& config)
{
    ExportSpec spec;
    spec.name = config.name;
    spec.uid = config.uid;
    spec.gid = config.gid;
    spec.mode = config.mode;
    spec.writers = config.exclusive ? Writers::exclusive : Writers::merge;
    spec.merge_unit = config.merge_unit;
    spec.readonly = config.readonly;
    spec.hints = config.hints;
    if (const auto* host = std::get_if<HostMemoryConfig>(&config.source))
        spec.source = HostMemory{host->length_bytes, host->hugepages};
    else if (const auto* file = std::get_if<FileConfig>(&config.source))
        spec.source = FilePath{file->path, file->offset_bytes, file->length_bytes};
    return spec;
}

bool is_same_memory(ExportConfig wanted, const ExportConfig& was)
{
    wanted.hints = was.hints;
    return wanted == was;
}

// What a running daemon cannot change.
bool needs_restart(const Config& before, const Config& after)
{
    return before.node != after.node || before.control.port != after.control.port ||
           before.control.listen != after.control.listen ||
           before.control.auth != after.control.auth ||
           before.control.munge_socket != after.control.munge_socket ||
           before.rdma.port != after.rdma.port || before.rdma.devices != after.rdma.devices ||
           before.rdma.addresses != after.rdma.addresses ||
           before.rdma.windows != after.rdma.windows ||
           before.rdma.extent_bytes_max != after.rdma.extent_bytes_max ||
           before.limits.exports != after.limits.exports ||
           before.limits.sessions_in != after.limits.sessions_in;
}

void check_auth(const ControlConfig& control)
{
    if (control.auth == Auth::none) {
        log::warn("auth = \"none\": every host that reaches port {} may use the exports of this "
                  "node; set auth = \"munge\" outside test networks",
                  control.port);
        return;
    }
    if (auto result = check_munge(control.munge_socket); !result)
        log::error("no node can be reached, and none can reach this one: {}", result.error().what);
}

} // namespace

Result<std::unique_ptr<Daemon>> Daemon::create(EventLoop& loop, Config config,
                                               const Options& options)
{
    std::unique_ptr<Daemon> daemon(new Daemon(loop, std::move(config)));
    SMC_TRY(daemon->start(options));
    return daemon;
}

Result<void> Daemon::start(const Options& options)
{
    local_ = SMC_TRY(LocalServer::create(loop_, options.socket_path, config_.limits,
                                         [this](LocalRequest request) { on_request(request); }));
    check_auth(config_.control);
    peer_server_ = std::make_unique<PeerServer>(loop_, config_);
    target_ = SMC_TRY(Target::create(loop_, target_options(config_), *peer_server_));
    apply_exports();
    SMC_TRY(peer_server_->start(*target_));
    nodes_ =
        SMC_TRY(Nodes::create(loop_, config_, [this](Json event) { publish(std::move(event)); }));
    return {};
}

Daemon::~Daemon()
{
    probes_.clear();
    nodes_.reset();
    if (peer_server_)
        peer_server_->stop();
    target_.reset();
}

void Daemon::publish(Json event)
{
    local_->publish(std::move(event));
}

// --- configuration -------------------------------------------------------------------------------

Result<void> Daemon::reload()
{
    auto report = load_config(config_.path);
    if (!report.config) {
        std::string all;
        for (const auto& issue : report.issues) {
            log::error("{}: {}", issue.where, issue.what);
            all += fmt::format("{}{}: {}", all.empty() ? "" : "; ", issue.where, issue.what);
        }
        return fail(EINVAL, fmt::format("the configuration is not applied: {}", all));
    }
    if (needs_restart(config_, *report.config))
        log::warn("changes of node, [control], [rdma] and the limits of exports and sessions_in "
                  "take effect when smcfsd is restarted");
    auto& next = *report.config;
    next.node = config_.node;
    next.control = config_.control;
    next.rdma = config_.rdma;
    next.limits.exports = config_.limits.exports;
    next.limits.sessions_in = config_.limits.sessions_in;
    config_ = std::move(next);
    apply_exports();
    nodes_->apply();
    log::info("the configuration {} is applied: {} exports, {} peers", config_.path,
              config_.exports.size(), config_.peers.size());
    return {};
}

// Exports that did not change, or only in their hints, keep their memory and generation.
void Daemon::apply_exports()
{
    const auto before = configured_;
    for (const auto& [name, was] : before) {
        const auto wanted = config_.exports.find(name);
        if (wanted == config_.exports.end() || !is_same_memory(wanted->second, was)) {
            remove_configured(name);
        } else if (wanted->second.hints != was.hints) {
            configured_.insert_or_assign(name, wanted->second);
            target_->set_hints(name, wanted->second.hints);
        }
    }
    for (const auto& [name, wanted] : config_.exports)
        if (!before.contains(name) && !removing_.contains(name))
            add_configured(wanted);
}

void Daemon::add_configured(const ExportConfig& wanted)
{
    configured_.insert_or_assign(wanted.name, wanted);
    target_->add_export(to_spec(wanted), [this, wanted](const Result<ExportInfo>& info) {
        if (info) {
            // They may have changed while its memory was pinned.
            if (const auto now = configured_.find(wanted.name); now != configured_.end())
                target_->set_hints(wanted.name, now->second.hints);
            publish({{"kind", "export"},
                     {"name", info->name},
                     {"node", config_.node},
                     {"state", "exported"}});
        } else if (info.error().code != ECANCELED) { // else it left the configuration meanwhile
            log::error("[[export]] \"{}\": {}", wanted.name, info.error().what);
            configured_.erase(wanted.name); // the next reload tries again
        }
    });
}

// And exports it again when the configuration has it by then.
void Daemon::remove_configured(const std::string& name)
{
    configured_.erase(name);
    removing_.insert(name);
    target_->remove_export(name, [this, name](const Result<void>& result) {
        removing_.erase(name);
        if (!result)
            log::warn("export {}: {}", name, result.error().what);
        publish(
            {{"kind", "export"}, {"name", name}, {"node", config_.node}, {"state", "unexported"}});
        const auto again = config_.exports.find(name);
        if (again != config_.exports.end())
            add_configured(again->second);
    });
}

// --- the end -------------------------------------------------------------------------------------

void Daemon::stop()
{
    if (std::exchange(stopping_, true))
        return;
    ::sd_notify(0, "STOPPING=1\nSTATUS=Closing sessions");
    log::info("stopping");
    nodes_->shut_down(kStopTimeout, [this] { loop_.exit(0); });
}

} // namespace smc
