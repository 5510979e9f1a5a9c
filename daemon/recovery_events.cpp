// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// SessionKeeper, what it hears: from the kernel, the control connection, the target, the clock.
#include "recovery.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace smc {

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
