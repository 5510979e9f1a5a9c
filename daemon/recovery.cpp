// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
#include "recovery.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>

#include <fmt/format.h>

#include "core/log.hpp"

namespace smc {
namespace {

constexpr Milliseconds kStable{5000}; // one that lived so long is replaced without back-off

constexpr unsigned bit(SessionPhase phase)
{
    return 1U << static_cast<unsigned>(phase);
}

// From each phase, where it may go.
constexpr std::array<unsigned, 8> kNext = {
    /* idle */ bit(SessionPhase::linking) | bit(SessionPhase::opening) | bit(SessionPhase::live) |
        bit(SessionPhase::deleting) | bit(SessionPhase::closing),
    /* linking */ bit(SessionPhase::opening) | bit(SessionPhase::closing) |
        bit(SessionPhase::waiting) | bit(SessionPhase::idle),
    /* opening */ bit(SessionPhase::connecting) | bit(SessionPhase::waiting) |
        bit(SessionPhase::closing) | bit(SessionPhase::idle) | bit(SessionPhase::linking),
    /* connecting */ bit(SessionPhase::live) | bit(SessionPhase::deleting) |
        bit(SessionPhase::closing) | bit(SessionPhase::waiting) | bit(SessionPhase::linking) |
        bit(SessionPhase::idle),
    /* live */ bit(SessionPhase::deleting) | bit(SessionPhase::closing) |
        bit(SessionPhase::linking) | bit(SessionPhase::waiting) | bit(SessionPhase::idle),
    /* deleting */ bit(SessionPhase::closing) | bit(SessionPhase::linking) |
        bit(SessionPhase::waiting) | bit(SessionPhase::idle),
    /* closing */ bit(SessionPhase::opening) | bit(SessionPhase::waiting) |
        bit(SessionPhase::linking) | bit(SessionPhase::idle),
    /* waiting */ bit(SessionPhase::linking) | bit(SessionPhase::opening) |
        bit(SessionPhase::deleting) | bit(SessionPhase::closing) | bit(SessionPhase::idle),
};

} // namespace

const char* to_string(SessionPhase phase)
{
    constexpr std::array<const char*, 8> kNames = {"idle", "linking",  "opening", "connecting",
                                                   "live", "deleting", "closing", "waiting"};
    return kNames[static_cast<std::size_t>(phase)];
}

Milliseconds Backoff::next(double random)
{
    const auto nominal = static_cast<double>(next_.count());
    next_ = std::min(cap_, next_ * 2);
    return Milliseconds(static_cast<long>(nominal / 2 + nominal / 2 * random));
}

SessionKeeper::SessionKeeper(std::string node, NodePort& port, SessionListener& listener,
                             ClientTimes times)
    : node_(std::move(node)), port_(port), listener_(listener), times_(times),
      backoff_(times.retry_first, times.retry_cap)
{}

void SessionKeeper::set_times(const ClientTimes& times)
{
    times_ = times;
    backoff_ = Backoff(times.retry_first, times.retry_cap);
    if (phase_ == SessionPhase::waiting)
        port_.arm(NodePort::Timer::session, Milliseconds(0));
}

// The only writer of phase_.
void SessionKeeper::set_phase(SessionPhase next)
{
    if (next == phase_)
        return;
    if ((kNext[static_cast<std::size_t>(phase_)] & bit(next)) == 0) {
        log::critical("session with {}: {} -> {} is not possible", node_, to_string(phase_),
                      to_string(next));
        std::abort();
    }
    log::debug("session with {}: {} -> {}", node_, to_string(phase_), to_string(next));
    phase_ = next;
}

// Decides what is next when nothing is under way: what was given up goes first.
void SessionKeeper::advance()
{
    if (!dying_.empty()) {
        set_phase(SessionPhase::deleting);
        return;
    }
    if (!to_close_.empty() && !needed_ && !port_.link_up())
        to_close_.clear(); // the target forgets a session without QPs by itself
    if (to_close_.empty() && !needed_) {
        set_phase(SessionPhase::idle);
        return;
    }
    if (!port_.link_up()) {
        set_phase(SessionPhase::linking);
        port_.link_open();
        return;
    }
    if (!to_close_.empty()) {
        set_phase(SessionPhase::closing);
        port_.session_close(to_close_.front());
        return;
    }
    current_ = port_.new_session_id();
    adopted_ = true;
    set_phase(SessionPhase::opening);
    port_.session_open(current_);
}

void SessionKeeper::set_needed(bool needed)
{
    if (needed_ == needed)
        return;
    needed_ = needed;
    if (needed && lingering_) {
        lingering_ = false;
        port_.disarm(NodePort::Timer::session);
        if (!port_.link_up())
            port_.link_open();
    } else if (needed && phase_ == SessionPhase::idle) {
        backoff_.reset();
        address_ = 0;
        advance();
    } else if (!needed && live()) {
        lingering_ = true;
        port_.arm(NodePort::Timer::session, linger_);
    } else if (!needed && phase_ == SessionPhase::waiting) {
        port_.disarm(NodePort::Timer::session);
        failing_ = false;
        advance();
    }
}

void SessionKeeper::set_impatient()
{
    linger_ = Milliseconds(0);
    if (lingering_)
        port_.arm(NodePort::Timer::session, linger_);
}

void SessionKeeper::attempt_failed(const Error& error)
{
    address_ = 0;
    last_error_ = error;
    note_window(error);
    // First out of the phase that failed: what the listener does may come back here.
    set_phase(SessionPhase::waiting);
    port_.arm(NodePort::Timer::session, backoff_.next(port_.random()));
    listener_.session_failed(error);
}

void SessionKeeper::note_window(const Error& error)
{
    const auto now = port_.now();
    if (!failing_) {
        failing_ = true;
        window_reported_ = false;
        failing_since_ = now;
        return;
    }
    if (window_reported_ || now - failing_since_ < times_.retry_window)
        return;
    window_reported_ = true;
    log::error(
        "no session with {} for {} s: {}; still trying, since regions of it are attached", node_,
        std::chrono::duration_cast<std::chrono::seconds>(now - failing_since_).count(), error.what);
}

// Of connecting and live: the kernel is to destroy the QPs, then the target.
void SessionKeeper::drop_current()
{
    const auto session = std::exchange(current_, 0);
    offer_.reset();
    lingering_ = false;
    port_.disarm(NodePort::Timer::session);
    dying_.insert(session);
    kernel_delete(session);
}

void SessionKeeper::kernel_delete(SessionId session)
{
    const auto result = port_.kernel_delete(session);
    if (result)
        return; // its DEAD event follows
    if (result.error().code != ENOENT && result.error().code != ENODEV)
        log::error("session {:016x} with {} cannot be deleted: {}", session, node_,
                   result.error().what);
    died(session);
}

void SessionKeeper::died(SessionId session)
{
    if (dying_.erase(session) != 0)
        to_close_.push_back(session);
}

void SessionKeeper::lose(const Error& why)
{
    const auto session = current_;
    const bool was_live = live();
    const bool stable = was_live && port_.now() - live_since_ >= kStable;
    drop_current();
    if (!was_live) { // connecting to one of the addresses failed
        if (++address_ < addresses_) {
            last_error_ = why;
            advance();
        } else {
            attempt_failed(why);
        }
        return;
    }
    last_error_ = why;
    listener_.session_lost(session, why);
    if (stable)
        backoff_.reset();
    address_ = 0;
    if (stable || !needed_) {
        advance();
        return;
    }
    set_phase(SessionPhase::waiting);
    port_.arm(NodePort::Timer::session, backoff_.next(port_.random()));
}

void SessionKeeper::try_address()
{
    if (address_ >= addresses_) // the target offers fewer than a moment ago
        address_ = 0;
    const auto address = offer_->addresses[address_];
    const auto timeout =
        std::max(Milliseconds(500), times_.connect / static_cast<long>(addresses_));
    set_phase(SessionPhase::connecting);
    if (auto result = port_.kernel_connect(current_, *offer_, address, timeout); !result)
        lose({result.error().code,
              fmt::format("RDMA address {} of {}: {}", address, node_, result.error().what)});
}

} // namespace smc
