// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// Frames over one connected, non-blocking socket, TCP or unix.
//
// Owns: the socket, what waits to be sent, descriptors that were received and not taken.
// Lifetime: may be destroyed from within its callbacks.
// Failure: on_end once, from the loop, never from within send(). Nothing is read or sent after it.
// A reader that does not read fills the send queue: from kSendHighWater on nothing is read from it
// either, at kSendMax the stream ends.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>

#include "control/frame.hpp"
#include "core/fd.hpp"
#include "core/result.hpp"
#include "event_loop.hpp"

namespace smc {

class Stream {
public:
    static constexpr std::size_t kSendHighWater = 256U << 10;
    static constexpr std::size_t kSendMax = 4U << 20;
    static constexpr std::size_t kReceivedFdsMax = 4;

    struct Callbacks {
        std::function<void(std::string frame)> on_frame;
        std::function<void(const Error&)> on_end;
    };

    static Result<std::unique_ptr<Stream>> create(EventLoop& loop, Fd socket, Callbacks callbacks);
    Stream(const Stream&) = delete;
    Stream& operator=(const Stream&) = delete;

    // One frame. Errors of the socket arrive as on_end.
    Result<void> send(std::string_view payload);
    // Sends what can be sent at once, then ends without on_end.
    void close();
    // Stop and go on reading; for bounding work in progress.
    void pause(bool paused);
    // The oldest descriptor received by SCM_RIGHTS (unix sockets), or none.
    Fd take_fd();
    [[nodiscard]] int fd() const { return socket_.get(); }

private:
    Stream(EventLoop& loop, Fd socket, Callbacks callbacks)
        : loop_(loop), socket_(std::move(socket)), callbacks_(std::move(callbacks))
    {}
    void on_ready(std::uint32_t revents);
    void read_some();
    Result<std::size_t> receive(std::string& into);
    void deliver();
    void flush();
    void update_events();
    void fail_later(Error error);

    EventLoop& loop_;
    Fd socket_;
    Callbacks callbacks_;
    EventLoop::Source source_;
    FrameDecoder decoder_;
    std::deque<std::string> sending_;
    std::size_t sending_bytes_ = 0;
    std::size_t sent_of_front_ = 0;
    std::deque<Fd> received_fds_;
    bool paused_ = false;
    bool resume_pending_ = false;
    bool ended_ = false;
    // Expires with the stream: tells a callback's caller whether the callback destroyed it.
    std::shared_ptr<int> alive_ = std::make_shared<int>(0);
};

} // namespace smc
