// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
#include "kernel_link.hpp"

#include <fmt/format.h>

#include "core/log.hpp"
#include "kernel/views.hpp"

namespace smc {

using kernel::Attributes;
using kernel::FamilyWatch;
using kernel::GenlSocket;
using kernel::read_region;
using kernel::read_session;

namespace {

constexpr Milliseconds kRetry{1000}; // to become the kernel's daemon, while another one is

} // namespace

Result<std::unique_ptr<KernelLink>> KernelLink::create(EventLoop& loop, KernelEvents& events)
{
    std::unique_ptr<KernelLink> link(new KernelLink(loop, events));
    link->watch_.emplace(SMC_TRY(kernel::FamilyWatch::open()));
    auto* raw = link.get();
    link->watch_source_ = SMC_TRY(
        loop.add_fd(link->watch_->fd(), EPOLLIN, [raw](std::uint32_t) { raw->on_family(); }));
    link->retry_timer_ = loop.add_timer(Milliseconds(-1), [raw] { raw->try_up(); });
    loop.defer([raw, alive = std::weak_ptr(link->alive_)] {
        if (!alive.expired())
            raw->try_up();
    });
    return link;
}

KernelLink::~KernelLink() = default;

void KernelLink::on_family()
{
    const auto change = watch_->read(up() ? requests_->family() : 0);
    if (change == FamilyWatch::Change::none)
        return;
    const auto now = GenlSocket::open();
    // A module that was loaded again has the name, but not what this one's sockets are bound to.
    if (up() &&
        (change == FamilyWatch::Change::went || !now || now->family() != requests_->family()))
        go_down("the module smcfs was unloaded");
    if (!up() && now)
        try_up();
}

void KernelLink::try_up()
{
    if (up())
        return;
    const auto result = bring_up();
    if (result) {
        log::info("the kernel module smcfs is connected");
        why_down_.clear();
        events_.kernel_up();
        return;
    }
    if (why_down_ != result.error().what)
        log::warn("no connection to the kernel: {}; exports are served all the same",
                  result.error().what);
    why_down_ = result.error().what;
    if (result.error().code != ENOENT)
        retry_timer_.rearm(kRetry);
}

Result<void> KernelLink::bring_up()
{
    auto requests = SMC_TRY(GenlSocket::open());
    auto events = SMC_TRY(GenlSocket::open());
    SMC_TRY(events.join(SMCFS_GENL_MCGRP_EVENTS));
    SMC_TRY(events.set_nonblocking());
    auto upcalls = SMC_TRY(GenlSocket::open());
    SMC_TRY(upcalls.call(upcalls.request(SMCFS_CMD_DAEMON_HELLO)));
    SMC_TRY(upcalls.set_nonblocking());
    auto upcall_source =
        SMC_TRY(loop_.add_fd(upcalls.fd(), EPOLLIN, [this](std::uint32_t) { on_upcalls(); }));
    event_source_ =
        SMC_TRY(loop_.add_fd(events.fd(), EPOLLIN, [this](std::uint32_t) { on_events(); }));
    upcall_source_ = std::move(upcall_source);
    upcalls_.emplace(std::move(upcalls));
    event_socket_.emplace(std::move(events));
    requests_.emplace(std::move(requests));
    return {};
}

void KernelLink::go_down(const std::string& why)
{
    log::warn("the connection to the kernel is lost: {}", why);
    why_down_ = why;
    upcall_source_.reset();
    event_source_.reset();
    upcalls_.reset();
    event_socket_.reset();
    requests_.reset();
    events_.kernel_down();
    retry_timer_.rearm(kRetry);
}

void KernelLink::on_upcalls()
{
    const auto result = upcalls_->receive([this](std::uint8_t cmd, const Attributes& attributes) {
        dispatch_upcall(cmd, attributes);
    });
    // The kernel lets the asker know when an upcall does not get through.
    if (!result && result.error().code == ENOBUFS)
        log::warn("more upcalls of the kernel than could be read: some first uses fail");
    else if (!result)
        go_down(result.error().what);
}

void KernelLink::on_events()
{
    const auto result =
        event_socket_->receive([this](std::uint8_t cmd, const Attributes& attributes) {
            dispatch_event(cmd, attributes);
        });
    if (!result && result.error().code == ENOBUFS)
        events_.kernel_events_lost();
    else if (!result)
        go_down(result.error().what);
}

void KernelLink::dispatch_upcall(std::uint8_t cmd, const Attributes& a)
{
    switch (cmd) {
    case SMCFS_CMD_UPCALL_BIND:
        events_.upcall_bind(a.text(SMCFS_A_NODE), a.text(SMCFS_A_NAME));
        break;
    case SMCFS_CMD_UPCALL_LIST:
        events_.upcall_list(a.text(SMCFS_A_NODE), a.u64(SMCFS_A_COOKIE));
        break;
    case SMCFS_CMD_UPCALL_WRITER:
        events_.upcall_writer(a.u64(SMCFS_A_REGION_ID), a.text(SMCFS_A_NODE), a.text(SMCFS_A_NAME));
        break;
    case SMCFS_CMD_UPCALL_WRITER_RELEASE:
        events_.upcall_writer_release(a.u64(SMCFS_A_REGION_ID), a.text(SMCFS_A_NODE),
                                      a.text(SMCFS_A_NAME));
        break;
    default:
        log::debug("unknown upcall {}", cmd);
    }
}

void KernelLink::dispatch_event(std::uint8_t cmd, const Attributes& a)
{
    if (cmd == SMCFS_CMD_EVENT_SESSION)
        events_.session_event(read_session(a));
    else if (cmd == SMCFS_CMD_EVENT_REGION)
        events_.region_event(read_region(a));
}

Result<void> KernelLink::call(kernel::Msg message, const GenlSocket::Message& on_reply)
{
    return requests_->call(std::move(message), on_reply);
}

} // namespace smc
