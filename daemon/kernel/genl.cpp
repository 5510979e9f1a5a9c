// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
#include "kernel/genl.hpp"

#include <linux/genetlink.h>
#include <linux/netlink.h>
#include <netlink/genl/ctrl.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <algorithm>

#include <fmt/format.h>

namespace smc::kernel {
namespace {

constexpr int kReceiveBytes = 1 << 20;   // upcalls and events that may wait for the loop
constexpr timeval kAnswerTimeout{30, 0}; // against waiting for ever for a broken kernel

struct Free {
    void operator()(unsigned char* buffer) const { std::free(buffer); } // NOLINT: libnl's malloc
};

int to_errno(int nl_error)
{
    switch (nl_error < 0 ? -nl_error : nl_error) {
    case NLE_AGAIN:
        return EAGAIN;
    case NLE_NOMEM:
        return ENOBUFS;
    case NLE_OBJ_NOTFOUND:
        return ENOENT;
    case NLE_PERM:
        return EPERM;
    default:
        return EIO;
    }
}

tl::unexpected<Error> nl_fail(int nl_error, const char* call)
{
    return fail(to_errno(nl_error), fmt::format("{}: {}", call, nl_geterror(nl_error)));
}

void set_option(nl_sock* socket, int level, int name, int value)
{
    ::setsockopt(nl_socket_get_fd(socket), level, name, &value, sizeof value);
}

Result<nl_sock*> connect_genl()
{
    nl_sock* socket = nl_socket_alloc();
    if (socket == nullptr)
        return fail(ENOMEM, "nl_socket_alloc");
    if (const int error = genl_connect(socket); error < 0) {
        nl_socket_free(socket);
        return nl_fail(error, "genl_connect");
    }
    nl_socket_disable_auto_ack(socket); // call() asks for acknowledgements itself
    nl_socket_set_buffer_size(socket, kReceiveBytes, 0);
    set_option(socket, SOL_NETLINK, NETLINK_EXT_ACK, 1);
    set_option(socket, SOL_NETLINK, NETLINK_CAP_ACK, 1);
    ::setsockopt(nl_socket_get_fd(socket), SOL_SOCKET, SO_RCVTIMEO, &kAnswerTimeout,
                 sizeof kAnswerTimeout);
    return socket;
}

// An acknowledgement: 0, or an error with the kernel's text when there is one.
Result<void> read_ack(const nlmsghdr* header)
{
    if (header->nlmsg_len < NLMSG_LENGTH(sizeof(nlmsgerr)))
        return fail(EPROTO, "a netlink acknowledgement is too short");
    const auto* ack = static_cast<const nlmsgerr*>(nlmsg_data(header));
    if (ack->error == 0)
        return {};
    std::string text = std::strerror(-ack->error); // NOLINT(concurrency-mt-unsafe)
    if ((header->nlmsg_flags & NLM_F_ACK_TLVS) != 0) {
        std::array<nlattr*, NLMSGERR_ATTR_MAX + 1> table{};
        const auto used = sizeof(nlmsgerr); // NETLINK_CAP_ACK: the request is not repeated
        auto* first = reinterpret_cast<nlattr*>(static_cast<char*>(nlmsg_data(header)) + used);
        const int length = static_cast<int>(header->nlmsg_len - NLMSG_LENGTH(used));
        if (nla_parse(table.data(), NLMSGERR_ATTR_MAX, first, length, nullptr) == 0 &&
            table[NLMSGERR_ATTR_MSG] != nullptr) {
            const auto* message = static_cast<const char*>(nla_data(table[NLMSGERR_ATTR_MSG]));
            text = std::string(message, ::strnlen(message, nla_len(table[NLMSGERR_ATTR_MSG])));
        }
    }
    return fail(-ack->error, "kernel: " + text);
}

// What nl_recv() gave.
struct Received {
    std::unique_ptr<unsigned char, Free> buffer;
    int length = 0;
};

Result<Received> receive_once(nl_sock* socket)
{
    sockaddr_nl from{};
    unsigned char* buffer = nullptr;
    const int length = nl_recv(socket, &from, &buffer, nullptr);
    Received received{std::unique_ptr<unsigned char, Free>(buffer), length};
    if (length < 0)
        return nl_fail(length, "nl_recv");
    if (from.nl_pid != 0) // not from the kernel
        received.length = 0;
    return received;
}

} // namespace

Result<Attributes> Attributes::parse(const nlmsghdr* header)
{
    Attributes attributes;
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-const-cast): libnl does not write to it
    auto* message = const_cast<nlmsghdr*>(header);
    if (genlmsg_parse(message, 0, attributes.table_.data(), SMCFS_A_MAX, nullptr) < 0)
        return fail(EPROTO, "a malformed netlink message");
    return attributes;
}

std::uint64_t Attributes::u64(smcfs_attr type) const
{
    return has(type) && nla_len(table_[type]) == sizeof(std::uint64_t) ? nla_get_u64(table_[type])
                                                                       : 0;
}

std::uint32_t Attributes::u32(smcfs_attr type) const
{
    return has(type) && nla_len(table_[type]) == sizeof(std::uint32_t) ? nla_get_u32(table_[type])
                                                                       : 0;
}

std::uint8_t Attributes::u8(smcfs_attr type) const
{
    return has(type) && nla_len(table_[type]) == sizeof(std::uint8_t) ? nla_get_u8(table_[type])
                                                                      : 0;
}

std::string Attributes::text(smcfs_attr type) const
{
    if (!has(type))
        return "";
    const auto* text = static_cast<const char*>(nla_data(table_[type]));
    return {text, ::strnlen(text, static_cast<std::size_t>(nla_len(table_[type])))};
}

Result<GenlSocket> GenlSocket::open()
{
    nl_sock* raw = SMC_TRY(connect_genl());
    GenlSocket socket(raw, 0);
    const int family = genl_ctrl_resolve(raw, SMCFS_GENL_NAME);
    if (family < 0)
        return fail(to_errno(family), "the module smcfs is not loaded: modprobe smcfs");
    socket.family_ = family;
    return socket;
}

Msg GenlSocket::request(smcfs_cmd cmd, int flags) const
{
    // Extents and names: up to what one attribute holds.
    constexpr std::size_t kMessageBytes = 80U << 10;
    Msg message(nlmsg_alloc_size(kMessageBytes));
    if (!message ||
        genlmsg_put(message.get(), NL_AUTO_PORT, NL_AUTO_SEQ, family_, 0,
                    NLM_F_REQUEST | NLM_F_ACK | flags, cmd, SMCFS_GENL_VERSION) == nullptr)
        throw std::bad_alloc();
    return message;
}

Result<void> GenlSocket::call(Msg message, const Message& on_reply)
{
    if (const int error = nl_send_auto(socket_.get(), message.get()); error < 0)
        return nl_fail(error, "nl_send");
    const auto sequence = nlmsg_hdr(message.get())->nlmsg_seq;
    const bool dump = (nlmsg_hdr(message.get())->nlmsg_flags & NLM_F_DUMP) == NLM_F_DUMP;
    while (true) {
        const auto received = SMC_TRY(receive_once(socket_.get()));
        int left = received.length;
        for (auto* header = reinterpret_cast<nlmsghdr*>(received.buffer.get());
             nlmsg_ok(header, left); header = nlmsg_next(header, &left)) {
            if (header->nlmsg_seq != sequence) // of a call that was given up
                continue;
            if (header->nlmsg_type == NLMSG_ERROR)
                return read_ack(header);
            if (header->nlmsg_type == NLMSG_DONE && dump)
                return {};
            if (header->nlmsg_type == family_ && on_reply) {
                const auto attributes = SMC_TRY(Attributes::parse(header));
                on_reply(genlmsg_hdr(header)->cmd, attributes);
            }
        }
    }
}

Result<void> GenlSocket::set_nonblocking()
{
    if (const int error = nl_socket_set_nonblocking(socket_.get()); error < 0)
        return nl_fail(error, "nl_socket_set_nonblocking");
    return {};
}

Result<void> GenlSocket::join(const char* group)
{
    const int id = genl_ctrl_resolve_grp(socket_.get(), SMCFS_GENL_NAME, group);
    if (id < 0)
        return nl_fail(id, "genl_ctrl_resolve_grp");
    if (const int error = nl_socket_add_membership(socket_.get(), id); error < 0)
        return nl_fail(error, "joining the events of smcfs (needs CAP_NET_ADMIN)");
    return {};
}

Result<void> GenlSocket::receive(const Message& on_message)
{
    while (true) {
        const auto received = receive_once(socket_.get());
        if (!received)
            return received.error().code == EAGAIN
                       ? Result<void>()
                       : Result<void>(tl::unexpected<Error>(received.error()));
        int left = received->length;
        for (auto* header = reinterpret_cast<nlmsghdr*>(received->buffer.get());
             nlmsg_ok(header, left); header = nlmsg_next(header, &left)) {
            if (header->nlmsg_type != family_)
                continue;
            if (const auto attributes = Attributes::parse(header))
                on_message(genlmsg_hdr(header)->cmd, *attributes);
        }
    }
}

Result<FamilyWatch> FamilyWatch::open()
{
    FamilyWatch watch(SMC_TRY(connect_genl()));
    const int group = genl_ctrl_resolve_grp(watch.socket_.get(), "nlctrl", "notify");
    if (group < 0)
        return nl_fail(group, "genl_ctrl_resolve_grp nlctrl");
    if (const int error = nl_socket_add_membership(watch.socket_.get(), group); error < 0)
        return nl_fail(error, "nl_socket_add_membership");
    if (const int error = nl_socket_set_nonblocking(watch.socket_.get()); error < 0)
        return nl_fail(error, "nl_socket_set_nonblocking");
    return watch;
}

FamilyWatch::Change FamilyWatch::read(int family)
{
    auto change = Change::none;
    while (true) {
        const auto received = receive_once(socket_.get());
        if (!received && received.error().code == ENOBUFS) {
            change = std::max(change, Change::unsure);
            continue; // the socket goes on behind the gap
        }
        if (!received)
            return change;
        int left = received->length;
        for (auto* header = reinterpret_cast<nlmsghdr*>(received->buffer.get());
             nlmsg_ok(header, left); header = nlmsg_next(header, &left)) {
            std::array<nlattr*, CTRL_ATTR_MAX + 1> table{};
            if (header->nlmsg_type != GENL_ID_CTRL ||
                genlmsg_parse(header, 0, table.data(), CTRL_ATTR_MAX, nullptr) < 0 ||
                table[CTRL_ATTR_FAMILY_NAME] == nullptr)
                continue;
            const auto* name = nla_get_string(table[CTRL_ATTR_FAMILY_NAME]);
            if (std::string_view(name) != SMCFS_GENL_NAME)
                continue;
            const auto* id = table[CTRL_ATTR_FAMILY_ID];
            const bool mine = genlmsg_hdr(header)->cmd == CTRL_CMD_DELFAMILY && id != nullptr &&
                              nla_get_u16(id) == family;
            change = std::max(change, mine ? Change::went : Change::other);
        }
    }
}

} // namespace smc::kernel
