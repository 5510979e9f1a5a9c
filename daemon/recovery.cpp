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

void SessionKeeper::adopt(const std::vector<KernelSession>& sessions)
{
    for (const auto& session : sessions) {
        if (session.state == SMCFS_SESSION_LIVE && phase_ == SessionPhase::idle) {
            current_ = session.session;
            adopted_ = false;
            live_since_ = port_.now();
            set_phase(SessionPhase::live);
        } else {
            dying_.insert(session.session);
            kernel_delete(session.session);
        }
    }
    if (phase_ == SessionPhase::idle && !dying_.empty())
        advance();
    if (!live())
        return;
    port_.link_open();
    if (!needed_) {
        lingering_ = true;
        port_.arm(NodePort::Timer::session, linger_);
    }
}

void SessionKeeper::resync(const std::vector<KernelSession>& sessions)
{
    const auto find = [&](SessionId id) {
        return std::find_if(sessions.begin(), sessions.end(),
                            [id](const auto& session) { return session.session == id; });
    };
    for (const auto id : std::set<SessionId>(dying_)) {
        if (const auto found = find(id);
            found == sessions.end() || found->state == SMCFS_SESSION_DEAD)
            on_kernel_event({id, node_, SMCFS_SESSION_DEAD});
    }
    if (phase_ != SessionPhase::connecting && phase_ != SessionPhase::live)
        return;
    const auto found = find(current_);
    if (found == sessions.end())
        on_kernel_event({current_, node_, SMCFS_SESSION_DEAD, ENOTCONN, "the kernel lost it"});
    else
        on_kernel_event(*found);
}

void SessionKeeper::kernel_gone()
{
    needed_ = false;
    lingering_ = false;
    failing_ = false;
    port_.disarm(NodePort::Timer::session);
    for (const auto session : std::exchange(dying_, {}))
        to_close_.push_back(session);
    if (current_ != 0 && phase_ != SessionPhase::opening)
        to_close_.push_back(std::exchange(current_, 0));
    offer_.reset();
    if (phase_ != SessionPhase::opening && phase_ != SessionPhase::closing &&
        phase_ != SessionPhase::linking && phase_ != SessionPhase::idle)
        advance();
}

void SessionKeeper::on_link_up()
{
    if (phase_ == SessionPhase::linking)
        advance();
    else if (live() && !adopted_)
        port_.session_adopt(current_);
}

void SessionKeeper::on_link_failed(const Error& error)
{
    last_error_ = error;
    if (phase_ == SessionPhase::linking)
        attempt_failed(error);
    else if (live() && !lingering_)
        port_.arm(NodePort::Timer::session, backoff_.next(port_.random()));
}

void SessionKeeper::on_link_lost(const Error& error)
{
    // What was asked over it fails by itself. A live session needs no control connection, but wants
    // one: for revocations, and so that the target keeps it.
    if (!live())
        return;
    last_error_ = error;
    adopted_ = false;
    if (!lingering_)
        port_.arm(NodePort::Timer::session, backoff_.next(port_.random()));
}

void SessionKeeper::on_offer(SessionId session, const Result<SessionOffer>& offer)
{
    if (phase_ != SessionPhase::opening || session != current_)
        return;
    if (!offer) {
        current_ = 0;
        // Whether the target opened it is not known when the answer is missing: close it first.
        to_close_.push_back(session);
        attempt_failed(offer.error());
        return;
    }
    offer_ = *offer;
    addresses_ = offer->addresses.size();
    if (!needed_ || addresses_ == 0) {
        current_ = 0;
        to_close_.push_back(session);
        if (needed_)
            attempt_failed({ENODEV, fmt::format("{} offers no RDMA address: does it have an RDMA "
                                                "device that is up? Set [rdma] addresses there",
                                                node_)});
        else
            advance();
        return;
    }
    try_address();
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

void SessionKeeper::on_closed(SessionId session, const Result<void>& result)
{
    if (phase_ != SessionPhase::closing || to_close_.empty() || session != to_close_.front())
        return;
    // An error that the target decided means that it has no such session. Without an answer its
    // QPs may still be there.
    const bool unanswered = !result && (result.error().code == ETIMEDOUT || !port_.link_up());
    if (!unanswered) {
        to_close_.pop_front();
        advance();
    } else if (needed_) {
        attempt_failed(result.error());
    } else {
        to_close_.clear();
        advance();
    }
}

void SessionKeeper::on_adopted(SessionId session, const Result<void>& result)
{
    if (!live() || session != current_)
        return;
    if (!result && result.error().code == ETIMEDOUT && port_.link_up()) {
        port_.session_adopt(current_); // the heartbeat decides whether the node lives
        return;
    }
    if (!result && port_.link_up()) {
        lose({result.error().code,
              fmt::format("{} does not know the session: {}", node_, result.error().what)});
        return;
    }
    if (!result)
        return; // the link was lost again
    adopted_ = true;
    listener_.session_reachable(session);
}

void SessionKeeper::on_kernel_event(const KernelSession& event)
{
    if (dying_.contains(event.session)) {
        if (event.state != SMCFS_SESSION_DEAD)
            return;
        died(event.session);
        if (dying_.empty() && phase_ == SessionPhase::deleting)
            advance();
        return;
    }
    if (event.session != current_ || current_ == 0)
        return;
    if (event.state == SMCFS_SESSION_LIVE && phase_ == SessionPhase::connecting) {
        live_since_ = port_.now();
        failing_ = false;
        set_phase(SessionPhase::live);
        listener_.session_live(current_);
        if (!needed_ && live() && !lingering_) {
            lingering_ = true;
            port_.arm(NodePort::Timer::session, linger_);
        }
    } else if (event.state == SMCFS_SESSION_DRAINING || event.state == SMCFS_SESSION_DEAD) {
        const auto what = event.reason.empty() ? "the RDMA connection failed" : event.reason;
        lose({event.error != 0 ? event.error : ECONNRESET,
              phase_ == SessionPhase::connecting && offer_
                  ? fmt::format("RDMA address {} of {}: {}", offer_->addresses[address_], node_,
                                what)
                  : fmt::format("the session with {} was lost: {}", node_, what)});
    }
}

void SessionKeeper::on_timer()
{
    if (phase_ == SessionPhase::waiting) {
        advance();
    } else if (live() && lingering_) {
        drop_current();
        advance();
    } else if (live() && !port_.link_up()) {
        port_.link_open();
    }
}

void SessionKeeper::on_broken(SessionId session, const Error& why)
{
    if (session == current_ && (live() || phase_ == SessionPhase::connecting))
        lose(why);
}

} // namespace smc
