// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
#include "control/stream.hpp"

#include <sys/socket.h>

#include <array>

#include <fmt/format.h>

namespace smc {
namespace {

constexpr std::size_t kReadBytes = 65536; // at a time, so that no stream holds up the others

} // namespace

Result<std::unique_ptr<Stream>> Stream::create(EventLoop& loop, Fd socket, Callbacks callbacks)
{
    std::unique_ptr<Stream> stream(new Stream(loop, std::move(socket), std::move(callbacks)));
    stream->source_ = SMC_TRY(
        loop.add_fd(stream->socket_.get(), EPOLLIN,
                    [raw = stream.get()](std::uint32_t revents) { raw->on_ready(revents); }));
    return stream;
}

Result<void> Stream::send(std::string_view payload)
{
    auto frame = SMC_TRY(encode_frame(payload));
    if (ended_)
        return fail(ENOTCONN, "the connection has ended");
    if (sending_bytes_ + frame.size() > kSendMax) {
        fail_later({ENOBUFS, "the other side does not read what it asked for"});
        return fail(ENOBUFS, "too much is waiting to be sent");
    }
    sending_bytes_ += frame.size();
    sending_.push_back(std::move(frame));
    flush();
    return {};
}

void Stream::close()
{
    if (!ended_)
        flush();
    ended_ = true;
    source_.reset();
    socket_.reset();
    received_fds_.clear();
}

void Stream::pause(bool paused)
{
    if (paused_ == paused || ended_)
        return;
    paused_ = paused;
    update_events();
    if (paused || resume_pending_)
        return;
    // Whole frames may lie in the decoder; the socket need not become readable again for them.
    resume_pending_ = true;
    loop_.defer([this, alive = std::weak_ptr(alive_)] {
        if (alive.expired())
            return;
        resume_pending_ = false;
        deliver();
    });
}

Fd Stream::take_fd()
{
    if (received_fds_.empty())
        return {};
    Fd fd = std::move(received_fds_.front());
    received_fds_.pop_front();
    return fd;
}

void Stream::on_ready(std::uint32_t revents)
{
    const auto alive = std::weak_ptr(alive_);
    if ((revents & EPOLLOUT) != 0)
        flush();
    if (!ended_ && (revents & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0)
        read_some();
    if (!alive.expired() && !ended_)
        update_events();
}

void Stream::read_some()
{
    std::string bytes;
    const auto got = receive(bytes);
    if (!got) {
        if (got.error().code != EAGAIN)
            fail_later(got.error());
        return;
    }
    if (*got == 0) {
        fail_later({ECONNRESET, "the other side closed the connection"});
        return;
    }
    decoder_.append(bytes);
    deliver();
}

Result<std::size_t> Stream::receive(std::string& into)
{
    into.resize(kReadBytes);
    iovec vector{into.data(), into.size()};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(kReceivedFdsMax * sizeof(int))> control{};
    msghdr message{};
    message.msg_iov = &vector;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    const auto got = ::recvmsg(socket_.get(), &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    if (got < 0)
        return fail(errno == EINTR ? EAGAIN : errno,
                    fmt::format("the connection broke: {}", std::strerror(errno)));
    into.resize(static_cast<std::size_t>(got));
    for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
         header = CMSG_NXTHDR(&message, header)) {
        if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS)
            continue;
        const std::size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (std::size_t i = 0; i < count; ++i) {
            int fd = -1;
            std::memcpy(&fd, CMSG_DATA(header) + i * sizeof(int), sizeof fd);
            received_fds_.emplace_back(fd);
        }
    }
    if ((message.msg_flags & MSG_CTRUNC) != 0 || received_fds_.size() > kReceivedFdsMax)
        return fail(EPROTO, fmt::format("more than {} descriptors were passed and not asked for",
                                        kReceivedFdsMax));
    return static_cast<std::size_t>(got);
}

void Stream::deliver()
{
    const auto alive = std::weak_ptr(alive_);
    while (!paused_ && !ended_ && sending_bytes_ < kSendHighWater) {
        auto frame = decoder_.next();
        if (!frame) {
            fail_later(frame.error());
            return;
        }
        if (!*frame)
            return;
        callbacks_.on_frame(std::move(**frame));
        if (alive.expired())
            return;
    }
}

void Stream::flush()
{
    const bool was_full = sending_bytes_ >= kSendHighWater;
    while (!sending_.empty()) {
        const auto& front = sending_.front();
        const auto sent = ::send(socket_.get(), front.data() + sent_of_front_,
                                 front.size() - sent_of_front_, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0) {
            if (errno != EAGAIN && errno != EINTR)
                fail_later({errno, fmt::format("the connection broke: {}", std::strerror(errno))});
            break;
        }
        sent_of_front_ += static_cast<std::size_t>(sent);
        if (sent_of_front_ == front.size()) {
            sending_bytes_ -= front.size();
            sent_of_front_ = 0;
            sending_.pop_front();
        }
    }
    if (ended_)
        return;
    update_events();
    if (was_full && sending_bytes_ < kSendHighWater && !resume_pending_) {
        resume_pending_ = true;
        loop_.defer([this, alive = std::weak_ptr(alive_)] {
            if (alive.expired())
                return;
            resume_pending_ = false;
            deliver();
        });
    }
}

void Stream::update_events()
{
    const bool reading = !paused_ && sending_bytes_ < kSendHighWater;
    source_.set_events((reading ? EPOLLIN : 0U) | (sending_.empty() ? 0U : EPOLLOUT));
}

void Stream::fail_later(Error error)
{
    if (ended_)
        return;
    ended_ = true;
    source_.reset();
    loop_.defer([this, alive = std::weak_ptr(alive_), error = std::move(error)] {
        if (!alive.expired())
            callbacks_.on_end(error);
    });
}

} // namespace smc
