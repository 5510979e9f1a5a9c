// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// Contexts: the caller's thread. No exception passes through libnl's C frames: callbacks catch.
#include "netlink.hpp"

#include <exception>

#include <linux/netlink.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <netlink/attr.h>
#include <netlink/errno.h>
#include <netlink/genl/ctrl.h>
#include <netlink/genl/genl.h>
#include <netlink/msg.h>
#include <netlink/netlink.h>

namespace smc::client {
namespace {

// A detach flushes before it answers; everything else answers at once.
constexpr std::chrono::seconds kAnswerTimeout{120};

// A dump that ran into a change is asked for again; a table that never rests is an error.
constexpr int kDumpTriesMax = 8;

constexpr const char* kNoModule = "the module smcfs is not loaded: run modprobe smcfs";

struct Exchange {
    const std::function<Result<void>(const nlmsghdr*)>* on_message = nullptr;
    bool done = false;
    Error error; // code 0: none
    std::exception_ptr exception;
};

std::string_view ext_ack_message(const nlmsghdr* hdr)
{
    if (!(hdr->nlmsg_flags & NLM_F_ACK_TLVS))
        return {};
    const auto* err = static_cast<const nlmsgerr*>(nlmsg_data(hdr));
    size_t skip = sizeof(*err);
    if (!(hdr->nlmsg_flags & NLM_F_CAPPED))
        skip += err->msg.nlmsg_len - NLMSG_HDRLEN;
    size_t payload = static_cast<size_t>(nlmsg_datalen(hdr));
    if (skip >= payload)
        return {};
    const auto* attrs = reinterpret_cast<const nlattr*>(reinterpret_cast<const char*>(err) + skip);
    const nlattr* text = nla_find(attrs, static_cast<int>(payload - skip), NLMSGERR_ATTR_MSG);
    if (!text)
        return {};
    const char* data = static_cast<const char*>(nla_data(text));
    return {data, strnlen(data, static_cast<size_t>(nla_len(text)))};
}

Error kernel_error(int code, std::string_view words)
{
    std::string what = "the kernel refused: ";
    what += words.empty() ? std::string_view(std::strerror(code))
                          : words; // NOLINT(concurrency-mt-unsafe)
    if (code == EPERM && words.empty())
        what += "; this needs root (CAP_NET_ADMIN)";
    return {code, std::move(what)};
}

int on_valid(nl_msg* msg, void* arg)
{
    auto* exchange = static_cast<Exchange*>(arg);
    try {
        auto result = (*exchange->on_message)(nlmsg_hdr(msg));
        if (!result)
            exchange->error = std::move(result).error();
    } catch (...) {
        exchange->exception = std::current_exception();
    }
    return NL_OK; // read on: the rest of the answer must not be taken for the next one's
}

int on_ack(nl_msg*, void* arg)
{
    static_cast<Exchange*>(arg)->done = true;
    return NL_STOP;
}

int on_error(sockaddr_nl*, nlmsgerr* err, void* arg)
{
    auto* exchange = static_cast<Exchange*>(arg);
    const auto* hdr =
        reinterpret_cast<const nlmsghdr*>(reinterpret_cast<const char*>(err) - NLMSG_HDRLEN);
    try {
        exchange->error = kernel_error(-err->error, ext_ack_message(hdr));
    } catch (...) {
        exchange->exception = std::current_exception();
    }
    exchange->done = true;
    return NL_STOP;
}

tl::unexpected<Error> netlink_failed(int nl_error, const std::string& what)
{
    switch (-nl_error) {
    case NLE_AGAIN:
        return fail(ETIMEDOUT, what + ": smcfs did not answer");
    case NLE_NOMEM:
        // From a full receive buffer as well as from the heap.
        return fail(ENOBUFS, what + ": out of buffer space, messages were lost");
    case NLE_DUMP_INTR:
        return fail(EAGAIN, what + ": the table changed while it was read");
    case NLE_NOACCESS:
    case NLE_PERM:
        return fail(EPERM, what + ": this needs root (CAP_NET_ADMIN)");
    default:
        return fail(EPROTO, what + ": " + nl_geterror(nl_error));
    }
}

} // namespace

void Kernel::SockFree::operator()(nl_sock* sock) const
{
    nl_socket_free(sock);
}
void Kernel::MsgFree::operator()(nl_msg* msg) const
{
    nlmsg_free(msg);
}

Result<Kernel> Kernel::open()
{
    Sock sock(nl_socket_alloc());
    if (!sock)
        return fail(ENOMEM, "no memory for a netlink socket");
    if (int err = genl_connect(sock.get()); err < 0)
        return netlink_failed(err, "cannot open a netlink socket");
    int fd = nl_socket_get_fd(sock.get());
    timeval timeout{.tv_sec = kAnswerTimeout.count(), .tv_usec = 0};
    int on = 1;
    if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout)) < 0 ||
        setsockopt(fd, SOL_NETLINK, NETLINK_EXT_ACK, &on, sizeof(on)) < 0)
        return fail_errno(errno, "cannot set up a netlink socket");
    int family = genl_ctrl_resolve(sock.get(), SMCFS_GENL_NAME);
    if (family == -NLE_OBJ_NOTFOUND)
        return fail(ENODEV, kNoModule);
    if (family < 0)
        return netlink_failed(family, "cannot ask for the netlink family of smcfs");
    return Kernel(std::move(sock), family);
}

Result<Kernel::Msg> Kernel::message(int cmd, int flags)
{
    Msg msg(nlmsg_alloc());
    if (!msg || !genlmsg_put(msg.get(), NL_AUTO_PORT, NL_AUTO_SEQ, family_, 0, flags,
                             static_cast<uint8_t>(cmd), SMCFS_GENL_VERSION))
        return fail(ENOMEM, "no memory for a netlink message");
    return msg;
}

Result<void> Kernel::transact(Msg msg, const OnMessage& on_message)
{
    std::unique_ptr<nl_cb, decltype(&nl_cb_put)> cb(nl_cb_alloc(NL_CB_DEFAULT), nl_cb_put);
    if (!cb)
        return fail(ENOMEM, "no memory for a netlink request");
    Exchange exchange{.on_message = &on_message, .done = false, .error = {}, .exception = {}};
    nl_cb_set(cb.get(), NL_CB_VALID, NL_CB_CUSTOM, on_valid, &exchange);
    nl_cb_set(cb.get(), NL_CB_ACK, NL_CB_CUSTOM, on_ack, &exchange);
    nl_cb_set(cb.get(), NL_CB_FINISH, NL_CB_CUSTOM, on_ack, &exchange);
    nl_cb_err(cb.get(), NL_CB_CUSTOM, on_error, &exchange);

    int err = nl_send_auto(sock_.get(), msg.get());
    while (err >= 0 && !exchange.done)
        err = nl_recvmsgs(sock_.get(), cb.get());
    if (exchange.exception)
        std::rethrow_exception(exchange.exception);
    if (exchange.error.code != 0)
        return tl::unexpected<Error>(std::move(exchange.error));
    if (err < 0)
        return netlink_failed(err, "netlink request failed");
    return {};
}

template <class T>
Result<std::vector<T>> Kernel::dump(int cmd, Result<T> (*parse)(const nlmsghdr*),
                                    uint64_t region_id)
{
    for (int tries = 1;; tries++) {
        Msg msg = SMC_TRY(message(cmd, NLM_F_DUMP));
        if (region_id != 0 && nla_put_u64(msg.get(), SMCFS_A_REGION_ID, region_id) < 0)
            return fail(ENOMEM, "no memory for a netlink message");
        std::vector<T> items;
        auto result = transact(std::move(msg), [&](const nlmsghdr* hdr) -> Result<void> {
            items.push_back(SMC_TRY(parse(hdr)));
            return {};
        });
        if (result)
            return items;
        if (result.error().code != EAGAIN || tries == kDumpTriesMax)
            return tl::unexpected<Error>(std::move(result).error());
    }
}

Result<KernelInfo> Kernel::info()
{
    Msg msg = SMC_TRY(message(SMCFS_CMD_INFO_GET, NLM_F_ACK));
    KernelInfo info;
    auto take = [&](const nlmsghdr* hdr) -> Result<void> {
        info = SMC_TRY(parse_info(hdr));
        return {};
    };
    SMC_TRY(transact(std::move(msg), take));
    return info;
}

Result<std::vector<PeerName>> Kernel::peers()
{
    return dump(SMCFS_CMD_PEER_GET, parse_peer);
}

Result<std::vector<SessionInfo>> Kernel::sessions()
{
    return dump(SMCFS_CMD_SESSION_GET, parse_session);
}

Result<std::vector<RegionInfo>> Kernel::regions()
{
    return dump(SMCFS_CMD_REGION_GET, parse_region);
}

Result<RegionInfo> Kernel::region(uint64_t id)
{
    auto found = SMC_TRY(dump(SMCFS_CMD_REGION_GET, parse_region, id));
    for (auto& region : found) {
        if (region.id == id)
            return std::move(region);
    }
    return fail(ENOENT, "the kernel has no region " + std::to_string(id) + " any more");
}

Result<std::vector<PageRun>> Kernel::pages(uint64_t id)
{
    auto parts = SMC_TRY(dump(SMCFS_CMD_PAGES_GET, parse_pages, id));
    std::vector<PageRun> all;
    for (const auto& runs : parts)
        all.insert(all.end(), runs.begin(), runs.end());
    return all;
}

Result<std::vector<LatencyInfo>> Kernel::latencies(uint64_t region_id)
{
    return dump(SMCFS_CMD_LATENCY_GET, parse_latency, region_id);
}

Result<void> Kernel::set(uint64_t id, const RegionSettings& settings)
{
    Msg msg = SMC_TRY(message(SMCFS_CMD_REGION_SET, NLM_F_ACK));
    int err = nla_put_u64(msg.get(), SMCFS_A_REGION_ID, id);
    for (const auto& [attr, value] :
         {std::pair{SMCFS_A_CTO, settings.cto}, {SMCFS_A_HOT, settings.hot}})
        if (err >= 0 && value)
            err = nla_put_u8(msg.get(), attr, *value ? 1 : 0);
    for (const auto& [attr, value] : {std::pair{SMCFS_A_FLUSH_AFTER_MS, settings.flush_after_ms},
                                      {SMCFS_A_WRITERS, settings.writers},
                                      {SMCFS_A_MERGE_UNIT, settings.merge_unit},
                                      {SMCFS_A_SYNC_MODE, settings.sync_mode},
                                      {SMCFS_A_PUSH_DELAY_US, settings.push_delay_us},
                                      {SMCFS_A_MAX_STALE_US, settings.max_stale_us},
                                      {SMCFS_A_GRANULE, settings.granule}})
        if (err >= 0 && value)
            err = nla_put_u32(msg.get(), attr, *value);
    if (err < 0)
        return netlink_failed(err, "cannot build a netlink message");
    return transact(std::move(msg), [](const nlmsghdr*) -> Result<void> { return {}; });
}

Result<uint64_t> Kernel::detach(uint64_t id, bool force)
{
    Msg msg = SMC_TRY(message(SMCFS_CMD_REGION_DETACH, NLM_F_ACK));
    int err = nla_put_u64(msg.get(), SMCFS_A_REGION_ID, id);
    if (err >= 0 && force)
        err = nla_put_u32(msg.get(), SMCFS_A_FLAGS, SMCFS_DETACH_FORCE);
    if (err < 0)
        return netlink_failed(err, "cannot build a netlink message");
    uint64_t discarded_bytes = 0;
    auto take = [&](const nlmsghdr* hdr) -> Result<void> {
        discarded_bytes = SMC_TRY(parse_discarded(hdr));
        return {};
    };
    SMC_TRY(transact(std::move(msg), take));
    return discarded_bytes;
}

Result<void> Kernel::subscribe()
{
    int group = genl_ctrl_resolve_grp(sock_.get(), SMCFS_GENL_NAME, SMCFS_GENL_MCGRP_EVENTS);
    if (group < 0)
        return netlink_failed(group, "cannot find the events of smcfs");
    if (int err = nl_socket_add_membership(sock_.get(), group); err < 0)
        return netlink_failed(err, "cannot listen to the events of smcfs");
    nl_socket_disable_seq_check(sock_.get());
    if (int err = nl_socket_set_nonblocking(sock_.get()); err < 0)
        return netlink_failed(err, "cannot set up a netlink socket");
    return {};
}

Result<std::optional<KernelEvent>> Kernel::next_event(std::chrono::milliseconds timeout,
                                                      int stop_fd)
{
    using std::chrono::steady_clock;
    const auto deadline = steady_clock::now() + timeout;
    std::unique_ptr<nl_cb, decltype(&nl_cb_put)> cb(nl_cb_alloc(NL_CB_DEFAULT), nl_cb_put);
    if (!cb)
        return fail(ENOMEM, "no memory for netlink events");
    std::optional<KernelEvent> event;
    OnMessage take = [&](const nlmsghdr* hdr) -> Result<void> {
        auto parsed = parse_event(hdr);
        if (parsed)
            event = std::move(*parsed);
        else if (parsed.error().code != EOPNOTSUPP) // a newer kernel may have more kinds
            return tl::unexpected<Error>(std::move(parsed).error());
        return {};
    };
    Exchange exchange{.on_message = &take, .done = false, .error = {}, .exception = {}};
    nl_cb_set(cb.get(), NL_CB_VALID, NL_CB_CUSTOM, on_valid, &exchange);
    while (!event) {
        auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - steady_clock::now());
        pollfd fds[] = {{nl_socket_get_fd(sock_.get()), POLLIN, 0}, {stop_fd, POLLIN, 0}};
        int ready = poll(fds, 2, left.count() > 0 ? static_cast<int>(left.count()) : 0);
        if (ready < 0 && errno != EINTR)
            return fail_errno(errno, "poll");
        if (ready == 0 || (ready > 0 && fds[1].revents != 0))
            return std::nullopt;
        if (ready < 0 || fds[0].revents == 0)
            continue;
        int err = nl_recvmsgs(sock_.get(), cb.get());
        if (exchange.exception)
            std::rethrow_exception(exchange.exception);
        if (exchange.error.code != 0)
            return tl::unexpected<Error>(std::move(exchange.error));
        if (err < 0 && err != -NLE_AGAIN)
            return netlink_failed(err, "cannot read events");
    }
    return event;
}

} // namespace smc::client
