// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
#include "event_loop.hpp"

#include <sys/eventfd.h>

#include <csignal>
#include <cstdlib>

#include <systemd/sd-event.h>

#include "core/log.hpp"

namespace smc {
namespace {

constexpr std::uint64_t kTimerAccuracyUs = 1000;

std::uint64_t to_usec(Milliseconds delay)
{
    return static_cast<std::uint64_t>(delay.count()) * 1000;
}

// For calls that fail only by lack of memory or by misuse: there is nothing to go on with. ESTALE:
// the loop has finished, nothing runs any more, and whoever is being torn down need not know.
void must(int result, const char* call)
{
    if (result < 0 && result != -ESTALE) {
        log::critical("{} failed: {}", call, std::strerror(-result));
        std::abort();
    }
}

} // namespace

struct EventLoop::Source::Impl {
    sd_event_source* source = nullptr;
    // Shared with the trampoline, which keeps the function alive while it runs even if it destroys
    // its own Source.
    std::shared_ptr<FdCallback> callback;

    explicit Impl(FdCallback function) : callback(std::make_shared<FdCallback>(std::move(function)))
    {}
    Impl(const Impl&) = delete;
    Impl& operator=(const Impl&) = delete;
    ~Impl()
    {
        if (source != nullptr)
            sd_event_source_disable_unref(source);
    }

    static int invoke(void* userdata, std::uint32_t revents) noexcept
    {
        const auto callback = static_cast<Impl*>(userdata)->callback;
        (*callback)(revents);
        return 0;
    }
    static int on_fd(sd_event_source*, int, std::uint32_t revents, void* userdata) noexcept
    {
        return invoke(userdata, revents);
    }
    static int on_time(sd_event_source*, std::uint64_t, void* userdata) noexcept
    {
        return invoke(userdata, 0);
    }
    static int on_signal(sd_event_source*, const signalfd_siginfo*, void* userdata) noexcept
    {
        return invoke(userdata, 0);
    }
    static int on_defer(sd_event_source*, void* userdata) noexcept { return invoke(userdata, 0); }
};

EventLoop::Source::Source() = default;
EventLoop::Source::Source(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
EventLoop::Source::Source(Source&&) noexcept = default;
EventLoop::Source& EventLoop::Source::operator=(Source&&) noexcept = default;
EventLoop::Source::~Source() = default;

void EventLoop::Source::reset()
{
    impl_.reset();
}

void EventLoop::Source::set_events(std::uint32_t events)
{
    if (!impl_ || impl_->source == nullptr)
        return;
    must(sd_event_source_set_io_events(impl_->source, events), "sd_event_source_set_io_events");
}

void EventLoop::Source::rearm(Milliseconds delay)
{
    if (!impl_ || impl_->source == nullptr)
        return;
    must(sd_event_source_set_time_relative(impl_->source, to_usec(delay)),
         "sd_event_source_set_time_relative");
    must(sd_event_source_set_enabled(impl_->source, SD_EVENT_ONESHOT),
         "sd_event_source_set_enabled");
}

void EventLoop::Source::disarm()
{
    if (!impl_ || impl_->source == nullptr)
        return;
    must(sd_event_source_set_enabled(impl_->source, SD_EVENT_OFF), "sd_event_source_set_enabled");
}

Result<std::unique_ptr<EventLoop>> EventLoop::create()
{
    sd_event* event = nullptr;
    if (const int result = sd_event_new(&event); result < 0)
        return fail_errno(-result, "sd_event_new");
    std::unique_ptr<EventLoop> loop(new EventLoop(event));
    {
        const MutexLock lock(loop->remote_->mutex_);
        loop->remote_->loop_ = loop.get();
    }
    SMC_TRY(loop->init());
    return loop;
}

Result<void> EventLoop::init()
{
    auto impl = std::make_unique<Source::Impl>([this](std::uint32_t) { run_deferred(); });
    if (const int result =
            sd_event_add_defer(event_, &impl->source, Source::Impl::on_defer, impl.get());
        result < 0)
        return fail_errno(-result, "sd_event_add_defer");
    must(sd_event_source_set_enabled(impl->source, SD_EVENT_OFF), "sd_event_source_set_enabled");
    deferred_source_ = Source(std::move(impl));

    posted_event_ = Fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!posted_event_)
        return fail_errno(errno, "eventfd");
    posted_source_ =
        SMC_TRY(add_fd(posted_event_.get(), EPOLLIN, [this](std::uint32_t) { drain_posted(); }));
    return {};
}

EventLoop::~EventLoop()
{
    {
        const MutexLock lock(remote_->mutex_);
        remote_->loop_ = nullptr;
    }
    deferred_.clear();
    posted_.clear();
    deferred_source_.reset();
    posted_source_.reset();
    sd_event_unref(event_);
}

Result<EventLoop::Source> EventLoop::add_fd(int fd, std::uint32_t events, FdCallback callback)
{
    auto impl = std::make_unique<Source::Impl>(std::move(callback));
    const int result =
        sd_event_add_io(event_, &impl->source, fd, events, Source::Impl::on_fd, impl.get());
    if (result < 0)
        return fail_errno(-result, "sd_event_add_io");
    return Source(std::move(impl));
}

EventLoop::Source EventLoop::add_timer(Milliseconds delay, Callback callback)
{
    auto impl = std::make_unique<Source::Impl>(
        [function = std::move(callback)](std::uint32_t) { function(); });
    must(sd_event_add_time_relative(event_, &impl->source, CLOCK_MONOTONIC,
                                    delay.count() < 0 ? 0 : to_usec(delay), kTimerAccuracyUs,
                                    Source::Impl::on_time, impl.get()),
         "sd_event_add_time_relative");
    if (delay.count() < 0 && impl->source != nullptr)
        must(sd_event_source_set_enabled(impl->source, SD_EVENT_OFF),
             "sd_event_source_set_enabled");
    return Source(std::move(impl));
}

Result<EventLoop::Source> EventLoop::add_signal(int signal_number, Callback callback)
{
    auto impl = std::make_unique<Source::Impl>(
        [function = std::move(callback)](std::uint32_t) { function(); });
    const int result = sd_event_add_signal(event_, &impl->source, signal_number,
                                           Source::Impl::on_signal, impl.get());
    if (result < 0)
        return fail_errno(-result, "sd_event_add_signal");
    return Source(std::move(impl));
}

void EventLoop::defer(Callback callback)
{
    deferred_.push_back(std::move(callback));
    must(sd_event_source_set_enabled(deferred_source_.impl_->source, SD_EVENT_ONESHOT),
         "sd_event_source_set_enabled");
}

void EventLoop::run_deferred()
{
    // Only what is queued now: a callback that defers again does not starve the descriptors.
    std::deque<Callback> batch;
    batch.swap(deferred_);
    for (auto& callback : batch)
        callback();
}

void EventLoop::post(Callback callback)
{
    {
        const MutexLock lock(posted_mutex_);
        posted_.push_back(std::move(callback));
    }
    const std::uint64_t one = 1;
    // Fails only when the counter is near its end, and then the loop is awake anyhow.
    [[maybe_unused]] const auto written = ::write(posted_event_.get(), &one, sizeof one);
}

void EventLoop::Remote::post(Callback callback)
{
    const MutexLock lock(mutex_);
    if (loop_ != nullptr)
        loop_->post(std::move(callback));
}

void EventLoop::drain_posted()
{
    std::uint64_t count = 0;
    [[maybe_unused]] const auto got = ::read(posted_event_.get(), &count, sizeof count);
    std::vector<Callback> batch;
    {
        const MutexLock lock(posted_mutex_);
        batch.swap(posted_);
    }
    for (auto& callback : batch)
        callback();
}

Result<void> EventLoop::enable_watchdog()
{
    if (const int result = sd_event_set_watchdog(event_, 1); result < 0)
        return fail_errno(-result, "sd_event_set_watchdog");
    return {};
}

Result<int> EventLoop::run()
{
    const int result = sd_event_loop(event_);
    if (result < 0)
        return fail_errno(-result, "sd_event_loop");
    return result;
}

Result<void> EventLoop::step()
{
    if (const int result = sd_event_run(event_, UINT64_MAX); result < 0)
        return fail_errno(-result, "sd_event_run");
    return {};
}

void EventLoop::exit(int code)
{
    must(sd_event_exit(event_, code), "sd_event_exit");
}

} // namespace smc
