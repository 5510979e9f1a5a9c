// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// The requests of KernelLink, one function per message of the contract.
#include <arpa/inet.h>

#include <fmt/format.h>

#include "control/tcp.hpp"
#include "core/log.hpp"
#include "kernel/views.hpp"
#include "kernel_link.hpp"

namespace smc {

using kernel::Attributes;
using kernel::GenlSocket;
using kernel::Msg;
using kernel::read_region;
using kernel::read_session;

namespace {

tl::unexpected<Error> down()
{
    return fail(ENODEV, "the kernel module smcfs is not connected: modprobe smcfs");
}

void put_text(const Msg& message, smcfs_attr type, const std::string& text)
{
    nla_put_string(message.get(), type, text.c_str());
}

void put_u64(const Msg& message, smcfs_attr type, std::uint64_t value)
{
    nla_put_u64(message.get(), type, value);
}

void put_u32(const Msg& message, smcfs_attr type, std::uint32_t value)
{
    nla_put_u32(message.get(), type, value);
}

Result<void> put_address(const Msg& message, smcfs_attr type, const std::string& text,
                         std::uint16_t port)
{
    const auto address = SMC_TRY(parse_address(text, port));
    nla_put(message.get(), type, static_cast<int>(address.length), &address.storage);
    return {};
}

// One detach or revoke, on a socket of its own.
Result<std::uint64_t> remove_region(smcfs_cmd cmd, RegionId region, std::uint32_t flags)
{
    auto socket = SMC_TRY(GenlSocket::open());
    auto message = socket.request(cmd);
    put_u64(message, SMCFS_A_REGION_ID, region);
    if (flags != 0)
        put_u32(message, SMCFS_A_FLAGS, flags);
    std::uint64_t discarded = 0;
    SMC_TRY(socket.call(std::move(message), [&](std::uint8_t, const Attributes& attributes) {
        discarded = attributes.u64(SMCFS_A_DISCARDED_BYTES);
    }));
    return discarded;
}

} // namespace

Result<void> KernelLink::peer_add(const std::string& node)
{
    if (!up())
        return down();
    auto message = requests_->request(SMCFS_CMD_PEER_ADD);
    put_text(message, SMCFS_A_NODE, node);
    return call(std::move(message));
}

Result<void> KernelLink::peer_del(const std::string& node)
{
    if (!up())
        return down();
    auto message = requests_->request(SMCFS_CMD_PEER_DEL);
    put_text(message, SMCFS_A_NODE, node);
    return call(std::move(message));
}

Result<std::vector<std::string>> KernelLink::peers()
{
    if (!up())
        return down();
    std::vector<std::string> peers;
    SMC_TRY(
        call(requests_->request(SMCFS_CMD_PEER_GET, NLM_F_DUMP),
             [&](std::uint8_t, const Attributes& a) { peers.push_back(a.text(SMCFS_A_NODE)); }));
    return peers;
}

Result<void> KernelLink::session_connect(const SessionConnect& connect)
{
    if (!up())
        return down();
    auto message = requests_->request(SMCFS_CMD_SESSION_CONNECT);
    put_u64(message, SMCFS_A_SESSION_ID, connect.session);
    put_text(message, SMCFS_A_NODE, connect.node);
    SMC_TRY(put_address(message, SMCFS_A_DST_ADDR, connect.address, connect.port));
    if (connect.source_address)
        SMC_TRY(put_address(message, SMCFS_A_SRC_ADDR, *connect.source_address, 0));
    nla_put(message.get(), SMCFS_A_TOKEN_READ, SMCFS_TOKEN_BYTES, connect.token_read.data());
    nla_put(message.get(), SMCFS_A_TOKEN_BULK, SMCFS_TOKEN_BYTES, connect.token_bulk.data());
    put_u32(message, SMCFS_A_REQUEST_TIMEOUT_MS, connect.request_timeout_ms);
    put_u32(message, SMCFS_A_CONNECT_TIMEOUT_MS, connect.connect_timeout_ms);
    return call(std::move(message));
}

Result<void> KernelLink::session_del(SessionId session)
{
    if (!up())
        return down();
    auto message = requests_->request(SMCFS_CMD_SESSION_DEL);
    put_u64(message, SMCFS_A_SESSION_ID, session);
    return call(std::move(message));
}

Result<RegionId> KernelLink::region_attach(const RegionAttach& attach)
{
    if (!up())
        return down();
    const auto& grant = attach.grant;
    auto message = requests_->request(SMCFS_CMD_REGION_ATTACH);
    put_text(message, SMCFS_A_NODE, attach.node);
    put_text(message, SMCFS_A_NAME, attach.name);
    put_u64(message, SMCFS_A_SESSION_ID, attach.session);
    put_u64(message, SMCFS_A_GENERATION, grant.generation);
    put_u64(message, SMCFS_A_SIZE, grant.size);
    put_u32(message, SMCFS_A_MODE, grant.mode);
    put_u32(message, SMCFS_A_UID, grant.uid);
    put_u32(message, SMCFS_A_GID, grant.gid);
    put_u32(message, SMCFS_A_WRITERS, static_cast<std::uint32_t>(grant.writers));
    put_u32(message, SMCFS_A_MERGE_UNIT, grant.merge_unit);
    put_u32(message, SMCFS_A_FLAGS,
            (grant.readonly ? SMCFS_RF_READONLY : 0U) | (grant.atomics ? SMCFS_RF_ATOMICS : 0U));
    nla_put(message.get(), SMCFS_A_EXTENTS,
            static_cast<int>(grant.extents.size() * sizeof(smcfs_extent)), grant.extents.data());
    RegionId region = 0;
    SMC_TRY(call(std::move(message), [&](std::uint8_t, const Attributes& attributes) {
        region = attributes.u64(SMCFS_A_REGION_ID);
    }));
    return region;
}

Result<void> KernelLink::region_set(RegionId region, const RegionParams& params,
                                    smcfs_origin origin)
{
    if (!up())
        return down();
    auto message = requests_->request(SMCFS_CMD_REGION_SET);
    put_u64(message, SMCFS_A_REGION_ID, region);
    const auto put = [&](smcfs_attr attribute, const std::optional<std::uint32_t>& value) {
        if (value)
            put_u32(message, attribute, *value);
    };
    if (params.cto)
        nla_put_u8(message.get(), SMCFS_A_CTO, *params.cto ? 1 : 0);
    put(SMCFS_A_FLUSH_AFTER_MS, params.flush_after_ms);
    put(SMCFS_A_SYNC_MODE, params.mode);
    put(SMCFS_A_PUSH_DELAY_US, params.push_delay_us);
    put(SMCFS_A_MAX_STALE_US, params.max_stale_us);
    put(SMCFS_A_GRANULE, params.granule);
    if (params.hot)
        nla_put_u8(message.get(), SMCFS_A_HOT, *params.hot ? 1 : 0);
    nla_put_u8(message.get(), SMCFS_A_ORIGIN, static_cast<std::uint8_t>(origin));
    return call(std::move(message));
}

Result<void> KernelLink::bind_fail(const std::string& node, const std::string& name, int error)
{
    if (!up())
        return down();
    auto message = requests_->request(SMCFS_CMD_BIND_FAIL);
    put_text(message, SMCFS_A_NODE, node);
    put_text(message, SMCFS_A_NAME, name);
    put_u32(message, SMCFS_A_ERRNO, static_cast<std::uint32_t>(error));
    return call(std::move(message));
}

Result<void> KernelLink::writer_result(RegionId region, int error)
{
    if (!up())
        return down();
    auto message = requests_->request(SMCFS_CMD_WRITER_RESULT);
    put_u64(message, SMCFS_A_REGION_ID, region);
    put_u32(message, SMCFS_A_ERRNO, static_cast<std::uint32_t>(error));
    return call(std::move(message));
}

Result<void> KernelLink::list_result(std::uint64_t cookie, int error,
                                     const std::vector<std::string>& names)
{
    // The kernel takes so many; a nest cannot be longer than 64 KiB.
    constexpr std::size_t kNamesMax = 4096;
    constexpr std::size_t kNestBytesMax = 65000;
    if (!up())
        return down();
    auto message = requests_->request(SMCFS_CMD_LIST_RESULT);
    put_u64(message, SMCFS_A_COOKIE, cookie);
    put_u32(message, SMCFS_A_ERRNO, static_cast<std::uint32_t>(error));
    auto* nest = nla_nest_start(message.get(), SMCFS_A_NAMES);
    std::size_t bytes = 0;
    std::size_t count = 0;
    for (const auto& name : names) {
        bytes += static_cast<std::size_t>(nla_total_size(static_cast<int>(name.size()) + 1));
        if (++count > kNamesMax || bytes > kNestBytesMax) {
            log::warn("a directory listing shows {} of {} names: the rest can be opened by name",
                      count - 1, names.size());
            break;
        }
        put_text(message, SMCFS_A_NAME, name);
    }
    nla_nest_end(message.get(), nest);
    return call(std::move(message));
}

Result<std::vector<KernelSession>> KernelLink::sessions()
{
    if (!up())
        return down();
    std::vector<KernelSession> sessions;
    SMC_TRY(call(requests_->request(SMCFS_CMD_SESSION_GET, NLM_F_DUMP),
                 [&](std::uint8_t, const Attributes& a) { sessions.push_back(read_session(a)); }));
    return sessions;
}

Result<std::vector<KernelRegion>> KernelLink::regions()
{
    if (!up())
        return down();
    std::vector<KernelRegion> regions;
    SMC_TRY(call(requests_->request(SMCFS_CMD_REGION_GET, NLM_F_DUMP),
                 [&](std::uint8_t, const Attributes& a) { regions.push_back(read_region(a)); }));
    return regions;
}

void KernelLink::region_detach(RegionId region, bool force, const Done<std::uint64_t>& done)
{
    call_on_thread(SMCFS_CMD_REGION_DETACH, region, force ? SMCFS_DETACH_FORCE : 0, done);
}

void KernelLink::region_revoke(RegionId region, const Done<std::uint64_t>& done)
{
    call_on_thread(SMCFS_CMD_REGION_REVOKE, region, 0, done);
}

void KernelLink::call_on_thread(smcfs_cmd cmd, RegionId region, std::uint32_t flags,
                                const Done<std::uint64_t>& done)
{
    const bool taken = removals_.submit(
        [remote = loop_.remote(), cmd, region, flags, done, alive = std::weak_ptr(alive_)] {
            auto result = remove_region(cmd, region, flags);
            remote->post([done, alive, result = std::move(result)] {
                if (!alive.expired())
                    done(result);
            });
        });
    if (!taken)
        loop_.defer([done, region] {
            done(fail(EBUSY, fmt::format("region {}: too many regions are being removed", region)));
        });
}

} // namespace smc
