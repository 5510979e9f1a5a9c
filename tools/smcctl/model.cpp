// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
#include "model.hpp"

#include "core/region_params.hpp"
#include "units.hpp"

namespace smc::ctl {
namespace {

Json text_or_null(const std::string& text)
{
    return text.empty() ? Json() : Json(text);
}
Json id_or_null(uint64_t id)
{
    return id == 0 ? Json() : Json(hex16(id));
}

template <class T>
Json value_or_null(const std::optional<T>& value)
{
    return value ? Json(*value) : Json();
}

} // namespace

Json to_json(const client::KernelInfo& info)
{
    return {{"version", text_or_null(info.version)}, {"daemon_present", info.daemon_present}};
}

Json to_json(const client::SessionInfo& session)
{
    return {
        {"session", hex16(session.id)},
        {"node", session.node},
        {"state", client::session_state_name(session.state)},
        {"errno", session.error},
        {"reason", text_or_null(session.reason)},
        {"device", text_or_null(session.rdma_device)},
        {"inflight", session.inflight},
        {"queued", session.queued},
        {"oldest_ms", session.oldest_ms},
        {"stats", session.stats},
    };
}

Json to_json(const client::RegionInfo& region)
{
    return {
        {"region", region.id},
        {"node", region.node},
        {"name", region.name},
        {"session", id_or_null(region.session_id)},
        {"generation", id_or_null(region.generation)},
        {"size", region.size_bytes},
        {"mode", region.mode},
        {"uid", region.uid},
        {"gid", region.gid},
        {"writers", client::writers_name(region.writers)},
        {"readonly", (region.flags & SMCFS_RF_READONLY) != 0},
        {"state", client::region_state_name(region.state)},
        {"errno", region.error},
        {"reason", text_or_null(region.reason)},
        {"cto", value_or_null(region.cto)},
        {"flush_after_ms", value_or_null(region.flush_after_ms)},
        {"merge_unit", value_or_null(region.merge_unit)},
        {"sync_mode", region.sync_mode ? Json(sync_mode_name(*region.sync_mode)) : Json()},
        {"push_delay_us", value_or_null(region.push_delay_us)},
        {"max_stale_us", value_or_null(region.max_stale_us)},
        {"hot", value_or_null(region.hot)},
        {"granule", value_or_null(region.granule)},
        {"dirty_bytes", region.dirty_bytes},
        {"writeback_bytes", region.writeback_bytes},
        {"cached_bytes", region.cached_bytes},
        {"openers", region.openers},
        {"writer_state", client::writer_state_name(region.writer_state)},
        {"inflight", region.inflight},
        {"queued", region.queued},
        {"oldest_ms", region.oldest_ms},
        {"stats", region.stats},
    };
}

Json to_json(const client::KernelEvent& event)
{
    const bool region = event.kind == client::KernelEvent::Kind::region;
    return {
        {"kind", region ? "region" : "session"},
        {"node", event.node},
        {"name", text_or_null(event.name)},
        {"session", id_or_null(event.session_id)},
        {"region", event.region_id == 0 ? Json() : Json(event.region_id)},
        {"generation", id_or_null(event.generation)},
        {"state",
         region ? client::region_state_name(event.state) : client::session_state_name(event.state)},
        {"errno", event.error},
        {"reason", text_or_null(event.reason)},
    };
}

} // namespace smc::ctl
