// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// The one thread that runs the daemon, on sd-event.
//
// Owns: the sd_event, and what was deferred and posted and has not run yet.
// Contexts: everything but post() is called on the loop's thread.
// Lifetime: a Source detaches when destroyed, also from within its own callback. All Sources are
// destroyed before their EventLoop.
// Failure: callbacks do not throw; an exception that leaves one ends the process.
#pragma once

#include <sys/epoll.h>

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "core/fd.hpp"
#include "core/mutex.hpp"
#include "core/result.hpp"

struct sd_event;
struct sd_event_source;

namespace smc {

using Milliseconds = std::chrono::milliseconds;

class EventLoop {
public:
    using FdCallback = std::function<void(std::uint32_t revents)>; // EPOLL*
    using Callback = std::function<void()>;

    // A callback that is attached to the loop for as long as this lives.
    class Source {
    public:
        struct Impl;

        Source();
        explicit Source(std::unique_ptr<Impl> impl);
        Source(Source&&) noexcept;
        Source& operator=(Source&&) noexcept;
        Source(const Source&) = delete;
        Source& operator=(const Source&) = delete;
        ~Source();

        explicit operator bool() const { return impl_ != nullptr; }
        void reset();

        // For descriptors: which events to wait for.
        void set_events(std::uint32_t events);
        // For timers: fire once, after this long from now (again). A timer that fired stays
        // attached and idle until then.
        void rearm(Milliseconds delay);
        // For timers: do not fire until armed again.
        void disarm();

    private:
        friend class EventLoop;
        std::unique_ptr<Impl> impl_;
    };

    static Result<std::unique_ptr<EventLoop>> create();
    EventLoop(const EventLoop&) = delete;
    EventLoop& operator=(const EventLoop&) = delete;
    ~EventLoop();

    // The descriptor stays the caller's and must outlive the Source.
    Result<Source> add_fd(int fd, std::uint32_t events, FdCallback callback);
    // Fires once; see Source::rearm. Negative delay: attached, but not armed.
    Source add_timer(Milliseconds delay, Callback callback);
    // The signal must be blocked in every thread already.
    Result<Source> add_signal(int signal_number, Callback callback);

    // Run once, after the present callback returned, in order.
    void defer(Callback callback);
    // As defer(), from any thread.
    void post(Callback callback);

    // post() for threads that may outlive the loop: then it does nothing.
    class Remote {
    public:
        void post(Callback callback);

    private:
        friend class EventLoop;
        Mutex mutex_;
        EventLoop* loop_ SMC_GUARDED_BY(mutex_) = nullptr; // null once the loop has gone
    };
    std::shared_ptr<Remote> remote() { return remote_; } // shared with those threads

    // Keep alive under systemd's WatchdogSec=, when set.
    Result<void> enable_watchdog();

    // Until exit(); its code.
    Result<int> run();
    // Waits for one event and serves it, for a caller that looks at things in between.
    Result<void> step();
    void exit(int code);

private:
    explicit EventLoop(sd_event* event) : event_(event) {}
    Result<void> init();
    void run_deferred();
    void drain_posted();

    sd_event* event_;
    std::deque<Callback> deferred_;
    Source deferred_source_;

    Mutex posted_mutex_;
    std::vector<Callback> posted_ SMC_GUARDED_BY(posted_mutex_); // all that other threads touch
    Fd posted_event_;
    Source posted_source_;
    std::shared_ptr<Remote> remote_ = std::make_shared<Remote>();
};

} // namespace smc
