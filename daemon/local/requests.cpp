// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// What local programs ask for (docs/protocol.md, "On a node"), one function per request.
#include <unistd.h>

#include <fmt/format.h>

#include "control/protocol.hpp"
#include "core/log.hpp"
#include "core/names.hpp"
#include "daemon.hpp"

namespace smc {
namespace {

constexpr std::uint64_t kModeMax = 0777;
constexpr std::uint64_t kAttachTimeoutMaxMs = 3'600'000;

Result<std::string> name_of(const Json& body, std::string_view key = "name")
{
    auto name = SMC_TRY(get_string(body, key));
    SMC_TRY(check_region_name(name));
    return name;
}

Result<std::string> node_of(const Json& body)
{
    auto node = SMC_TRY(get_string(body, "node"));
    SMC_TRY(check_node_name(node));
    return node;
}

Result<void> only_root(const LocalRequest& request)
{
    if (request.caller.uid != 0)
        return fail(EPERM, fmt::format("\"{}\" is for root", request.type));
    return {};
}

// One of host, file, fd.
Result<void> read_source(LocalRequest& request, ExportSpec& spec)
{
    const auto& body = request.body;
    const int given = body.contains("host") + body.contains("file") + body.contains("fd");
    if (given != 1)
        return fail(EINVAL, "exactly one of \"host\", \"file\" and \"fd\" must be given");
    const auto offset = SMC_TRY(get_unsigned_or(body, "offset", INT64_MAX, 0));
    const auto length = SMC_TRY(get_unsigned_or(body, "length", SMCFS_REGION_SIZE_MAX, 0));
    if (body.contains("host")) {
        HostMemory host;
        host.length_bytes = SMC_TRY(get_unsigned(body, "host", SMCFS_REGION_SIZE_MAX));
        host.hugepages = SMC_TRY(get_bool_or(body, "hugepages", false));
        spec.source = host;
    } else if (body.contains("file")) {
        FilePath file{SMC_TRY(get_string(body, "file")), offset, length};
        if (!file.path.starts_with('/') || file.path.find('\0') != std::string::npos)
            return fail(EINVAL, "\"file\" must be an absolute path");
        spec.source = std::move(file);
    } else {
        Fd fd = request.take_fd();
        if (!fd)
            return fail(EBADF, "\"fd\" needs a descriptor, passed with SCM_RIGHTS");
        spec.source = FdMemory{std::move(fd), offset, length};
    }
    return {};
}

Result<ExportSpec> read_export(LocalRequest& request)
{
    ExportSpec spec;
    spec.uid = request.caller.uid;
    spec.gid = request.caller.gid;
    spec.caller = {request.caller.uid, request.caller.gid};
    spec.name = SMC_TRY(name_of(request.body));
    SMC_TRY(read_source(request, spec));
    spec.mode =
        static_cast<std::uint32_t>(SMC_TRY(get_unsigned_or(request.body, "mode", kModeMax, 0600)));
    spec.readonly = SMC_TRY(get_bool_or(request.body, "readonly", false));
    if (request.body.contains("hints"))
        spec.hints = SMC_TRY(params_from_json(request.body.at("hints")));
    if (request.body.contains("writers")) {
        const auto writers = parse_writers(SMC_TRY(get_string(request.body, "writers")));
        if (!writers)
            return fail(EOPNOTSUPP, "\"writers\" must be \"merge\" or \"exclusive\"");
        spec.writers = *writers;
    }
    spec.merge_unit = SMC_TRY(get_merge_unit(request.body));
    return spec;
}

} // namespace

const std::map<std::string_view, Daemon::Handler>& Daemon::handlers()
{
    static const std::map<std::string_view, Handler> table = {
        {"status", &Daemon::on_status},     {"export", &Daemon::on_export},
        {"unexport", &Daemon::on_unexport}, {"exports", &Daemon::on_exports},
        {"sessions", &Daemon::on_sessions}, {"peers", &Daemon::on_peers},
        {"attach", &Daemon::on_attach},     {"detach", &Daemon::on_detach},
        {"ping", &Daemon::on_ping},         {"events", &Daemon::on_events},
        {"reload", &Daemon::on_reload},
    };
    return table;
}

void Daemon::on_request(LocalRequest& request)
{
    const auto handler = handlers().find(request.type);
    if (handler == handlers().end())
        request.responder.error({EOPNOTSUPP, fmt::format("smcfsd {} has no request \"{}\"",
                                                         SMC_VERSION, printable(request.type))});
    else if (stopping_)
        request.responder.error({ESHUTDOWN, "smcfsd is stopping"});
    else
        (this->*handler->second)(request);
}

void Daemon::on_status(LocalRequest& request)
{
    const auto uptime = std::chrono::duration_cast<std::chrono::seconds>(
        std::chrono::steady_clock::now() - started_);
    Json rdma = Json::array();
    for (const auto& port : target_->rdma_ports())
        rdma.push_back(to_json(port));
    request.responder.ok({{"node", config_.node},
                          {"version", SMC_VERSION},
                          {"pid", static_cast<std::uint64_t>(::getpid())},
                          {"uptime_s", static_cast<std::uint64_t>(uptime.count())},
                          {"kernel", nodes_->kernel().up()},
                          {"auth", to_string(config_.control.auth)},
                          {"config", config_.path},
                          {"rdma", std::move(rdma)},
                          {"exports", target_->exports().size()},
                          {"sessions_in", target_->sessions().size()},
                          {"sessions_out", nodes_->sessions_json().size()}});
}

void Daemon::on_export(LocalRequest& request)
{
    auto spec = read_export(request);
    if (!spec) {
        request.responder.error(spec.error());
        return;
    }
    target_->add_export(
        std::move(*spec), [this, uid = request.caller.uid,
                           responder = request.responder](const Result<ExportInfo>& info) {
            if (!info) {
                responder.error(info.error());
                return;
            }
            log::info("exported {}, {} bytes, for uid {}", info->name, info->size, uid);
            publish({{"kind", "export"},
                     {"name", info->name},
                     {"node", config_.node},
                     {"state", "exported"}});
            responder.ok({{"generation", identity_text(info->generation)}, {"size", info->size}});
        });
}

void Daemon::on_unexport(LocalRequest& request)
{
    const auto name = name_of(request.body);
    if (!name) {
        request.responder.error(name.error());
        return;
    }
    const auto info = target_->find_export(*name);
    if (!info) {
        request.responder.error(
            {ENOENT, fmt::format("{} is not exported: see smcctl regions", *name)});
        return;
    }
    if (request.caller.uid != 0 && request.caller.uid != info->uid) {
        request.responder.error({EPERM, fmt::format("{} belongs to uid {}", *name, info->uid)});
        return;
    }
    configured_.erase(*name);
    target_->remove_export(
        *name, [this, name = *name, responder = request.responder](const Result<void>& result) {
            if (result) {
                log::info("unexported {}", name);
                publish({{"kind", "export"},
                         {"name", name},
                         {"node", config_.node},
                         {"state", "unexported"}});
            }
            responder.from(result, Json::object());
        });
}

// Answers a request for a listing with the page that it asks for.
void Daemon::answer_page(const LocalRequest& request, const Json& lists)
{
    const auto first = get_unsigned_or(request.body, "first", UINT32_MAX, 0);
    request.responder.from(first, first ? list_page(lists, *first) : Json());
}

void Daemon::on_exports(LocalRequest& request)
{
    Json exports = Json::array();
    for (const auto& info : target_->exports())
        exports.push_back(to_json(info));
    answer_page(request, {{"exports", std::move(exports)}});
}

void Daemon::on_sessions(LocalRequest& request)
{
    Json in = Json::array();
    for (const auto& info : target_->sessions())
        in.push_back(to_json(info));
    answer_page(request, {{"in", std::move(in)}, {"out", nodes_->sessions_json()}});
}

void Daemon::on_peers(LocalRequest& request)
{
    answer_page(request, {{"peers", nodes_->peers_json()}});
}

void Daemon::on_attach(LocalRequest& request)
{
    const auto node = node_of(request.body);
    const auto name = name_of(request.body);
    const auto timeout = get_unsigned_or(request.body, "timeout_ms", kAttachTimeoutMaxMs, 0);
    if (!node || !name || !timeout) {
        request.responder.error(!node ? node.error() : !name ? name.error() : timeout.error());
        return;
    }
    nodes_->attach({*node, *name, Milliseconds(*timeout)}, [responder = request.responder](
                                                               const Result<RegionId>& region) {
        responder.from(region, region ? Json::object({{"region", *region}}) : Json());
    });
}

void Daemon::on_detach(LocalRequest& request)
{
    const auto allowed = only_root(request);
    auto region = get_unsigned_or(request.body, "region", UINT64_MAX, 0);
    const auto force = get_bool_or(request.body, "force", false);
    if (allowed && region && *region == 0) {
        const auto node = node_of(request.body);
        const auto name = name_of(request.body);
        const auto found = node && name ? nodes_->find(*node, *name) : std::nullopt;
        if (found)
            region = *found;
        else
            region = fail(node && name ? ENOENT : EINVAL,
                          node && name ? fmt::format("{}:{} is not attached", *node, *name)
                                       : "\"region\", or \"node\" and \"name\", must be given");
    }
    if (!allowed || !region || !force) {
        request.responder.error(!allowed  ? allowed.error()
                                : !region ? region.error()
                                          : force.error());
        return;
    }
    nodes_->detach(
        *region, *force, [responder = request.responder](const Result<std::uint64_t>& bytes) {
            responder.from(bytes, bytes ? Json::object({{"discarded_bytes", *bytes}}) : Json());
        });
}

void Daemon::on_events(LocalRequest& request)
{
    request.responder.ok(); // before the first event
    request.subscribe();
}

void Daemon::on_reload(LocalRequest& request)
{
    if (auto allowed = only_root(request); !allowed)
        request.responder.error(allowed.error());
    else
        request.responder.from(reload(), Json::object());
}

} // namespace smc
