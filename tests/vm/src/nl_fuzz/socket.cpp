// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
#include "socket.hpp"

#include <cerrno>
#include <chrono>
#include <cstring>

#include <linux/genetlink.h>
#include <linux/netlink.h>
#include <poll.h>
#include <sys/socket.h>

namespace smc::test {

namespace {

// Payload of the first attribute of this type, with its length; nullptr: there is none.
const std::uint8_t* find(const Bytes& attrs, int type, std::size_t* size)
{
    for (std::size_t at = 0; at + NLA_HDRLEN <= attrs.size();) {
        nlattr header;
        std::memcpy(&header, attrs.data() + at, sizeof(header));
        if (header.nla_len < NLA_HDRLEN || at + header.nla_len > attrs.size())
            return nullptr;
        if ((header.nla_type & NLA_TYPE_MASK) == type) {
            *size = header.nla_len - NLA_HDRLEN;
            return attrs.data() + at + NLA_HDRLEN;
        }
        at += NLA_ALIGN(header.nla_len);
    }
    return nullptr;
}

// Not open: the port, which is not 0, is in use.
Fd bound(std::uint32_t port)
{
    Fd fd(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_GENERIC));
    if (!fd)
        die("socket(AF_NETLINK)", errno);
    sockaddr_nl self{};
    self.nl_family = AF_NETLINK;
    self.nl_pid = port;
    if (bind(fd.get(), reinterpret_cast<sockaddr*>(&self), sizeof(self))) {
        if (errno != EADDRINUSE || port == 0)
            die("bind(AF_NETLINK)", errno);
        fd.reset();
    }
    return fd;
}

} // namespace

std::optional<std::uint64_t> Received::number(int attr) const
{
    std::size_t size = 0;
    const std::uint8_t* at = find(attrs, attr, &size);
    std::uint64_t value = 0;
    if (!at || size > sizeof(value))
        return std::nullopt;
    std::memcpy(&value, at, size); // little endian, as all machines of the test bed
    return value;
}

std::optional<std::string> Received::text(int attr) const
{
    std::size_t size = 0;
    const std::uint8_t* at = find(attrs, attr, &size);
    if (!at)
        return std::nullopt;
    return std::string(reinterpret_cast<const char*>(at),
                       strnlen(reinterpret_cast<const char*>(at), size));
}

Socket::Socket(Fd fd) : fd_(std::move(fd))
{
    const int on = 1;
    // Texts with errors; and acknowledgements without a copy of the request.
    setsockopt(fd_.get(), SOL_NETLINK, NETLINK_EXT_ACK, &on, sizeof(on));
    setsockopt(fd_.get(), SOL_NETLINK, NETLINK_CAP_ACK, &on, sizeof(on));
    setsockopt(fd_.get(), SOL_SOCKET, SO_SNDBUF, &kRoom, sizeof(kRoom));
    set_room(kRoom);
}

void Socket::set_room(int bytes)
{
    setsockopt(fd_.get(), SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
}

Socket::Socket() : Socket(bound(0)) {}

std::optional<Socket> Socket::with_port(std::uint32_t port)
{
    Fd fd = bound(port);
    if (!fd)
        return std::nullopt;
    return Socket(std::move(fd));
}

std::optional<std::uint16_t> Socket::family(const char* name, const char* group,
                                            std::uint32_t* group_id)
{
    Message get(CTRL_CMD_GETFAMILY);
    get.type = GENL_ID_CTRL;
    get.text(CTRL_ATTR_FAMILY_NAME, name);
    Answer answer = ask(get);
    if (answer.error != 0 || answer.messages.empty())
        return std::nullopt;
    const Received& reply = answer.messages.front();
    std::size_t size = 0;
    if (const std::uint8_t* groups = find(reply.attrs, CTRL_ATTR_MCAST_GROUPS, &size)) {
        Received list{0, Bytes(groups, groups + size)};
        for (int i = 1; const std::uint8_t* at = find(list.attrs, i, &size); i++) {
            Received one{0, Bytes(at, at + size)};
            if (one.text(CTRL_ATTR_MCAST_GRP_NAME) == group)
                *group_id = static_cast<std::uint32_t>(*one.number(CTRL_ATTR_MCAST_GRP_ID));
        }
    }
    return static_cast<std::uint16_t>(reply.number(CTRL_ATTR_FAMILY_ID).value_or(0));
}

int Socket::join(std::uint32_t group)
{
    return setsockopt(fd_.get(), SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &group, sizeof(group)) ? errno
                                                                                             : 0;
}

void Socket::parse(const std::uint8_t* data, std::size_t size, Answer& answer)
{
    for (std::size_t at = 0; at + NLMSG_HDRLEN <= size;) {
        nlmsghdr header;
        std::memcpy(&header, data + at, sizeof(header));
        if (header.nlmsg_len < NLMSG_HDRLEN || at + header.nlmsg_len > size)
            leave(kRefuted, "the kernel sent a message of impossible length");
        const std::uint8_t* body = data + at + NLMSG_HDRLEN;
        std::size_t length = header.nlmsg_len - NLMSG_HDRLEN;
        at += NLMSG_ALIGN(header.nlmsg_len);
        if (header.nlmsg_type == NLMSG_ERROR || header.nlmsg_type == NLMSG_DONE) {
            int error = 0;
            if (length >= sizeof(error))
                std::memcpy(&error, body, sizeof(error));
            if (error > 0 || error < -4095)
                leave(kRefuted, "the kernel sent error " + std::to_string(error));
            answer.error = -error;
            answer.acks++;
            std::size_t skip = header.nlmsg_type == NLMSG_ERROR ? sizeof(nlmsgerr) : sizeof(error);
            if ((header.nlmsg_flags & NLM_F_ACK_TLVS) && length > skip)
                answer.why = Received{0, Bytes(body + skip, body + length)}
                                 .text(NLMSGERR_ATTR_MSG)
                                 .value_or("");
            continue;
        }
        if (header.nlmsg_type < NLMSG_MIN_TYPE || length < GENL_HDRLEN)
            continue;
        Received message{body[0], Bytes(body + GENL_HDRLEN, body + length)};
        // Upcalls and events belong to no request.
        if (header.nlmsg_pid == 0 && header.nlmsg_seq == 0)
            unasked_.push_back(std::move(message));
        else
            answer.messages.push_back(std::move(message));
    }
}

bool Socket::receive(Answer& answer, bool block)
{
    for (;;) {
        ssize_t got = recv(fd_.get(), buffer_.data(), buffer_.size(), block ? 0 : MSG_DONTWAIT);
        if (got >= 0) {
            parse(buffer_.data(), static_cast<std::size_t>(got), answer);
            return true;
        }
        if (errno == EAGAIN)
            return false;
        if (errno != EINTR && errno != ENOBUFS) // overrun: that is said, and then goes on
            die("recv(AF_NETLINK)", errno);
    }
}

Answer Socket::send(const Bytes& datagram)
{
    Answer answer;
    sockaddr_nl kernel{};
    kernel.nl_family = AF_NETLINK;
    if (sendto(fd_.get(), datagram.data(), datagram.size(), 0, reinterpret_cast<sockaddr*>(&kernel),
               sizeof(kernel)) < 0)
        answer.sent = errno;
    while (receive(answer, false))
        ;
    return answer;
}

Answer Socket::dump(Message message)
{
    message.flags = NLM_F_REQUEST | NLM_F_DUMP;
    return ask(message);
}

std::optional<Received> Socket::wait(int timeout_ms)
{
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(timeout_ms);
    while (unasked_.empty()) {
        auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
            end - std::chrono::steady_clock::now());
        pollfd poll_fd{fd_.get(), POLLIN, 0};
        if (left.count() < 0 || poll(&poll_fd, 1, static_cast<int>(left.count()) + 1) == 0)
            return std::nullopt;
        Answer other;
        receive(other, false);
    }
    Received first = std::move(unasked_.front());
    unasked_.erase(unasked_.begin());
    return first;
}

} // namespace smc::test
