// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// The one session of this node with another: opened when it is needed, replaced when it is lost,
// closed when it is not needed for a while. Decisions only; NodePort does.
//
//          needed               link up              offer                 LIVE
//   idle --------> linking -------------> opening ---------> connecting ----------> live
//    ^                ^                      |                   | DEAD              | lost, or
//    |                |                      | error             v                   v unneeded
//    |                |                      |       deleting: the kernel destroys its QPs
//    |                |                      v                   | DEAD
//    |                +---- waiting: back-off <---+              v
//    +------- closing: the target destroys its QPs, and says so <+
//
// Lifetime of a session that was given up: dying_ (until the kernel says DEAD), then to_close_
// (until the target confirms), and only then is the next one opened: a packet of the old session
// must not land after what the new one replays.
// Failure: an attempt that failed is reported to the listener, once, and tried again after a
// back-off for as long as the session is needed. A lost control connection does not end a session.
#pragma once

#include <deque>
#include <optional>
#include <set>

#include "client/node_port.hpp"

namespace smc {

enum class SessionPhase { idle, linking, opening, connecting, live, deleting, closing, waiting };
const char* to_string(SessionPhase phase);

// Exponential, capped, with jitter: between half and all of the nominal delay, so that the clients
// of a target that comes back do not come in one burst.
class Backoff {
public:
    Backoff(Milliseconds first, Milliseconds cap) : first_(first), cap_(cap), next_(first) {}
    Milliseconds next(double random);
    void reset() { next_ = first_; }

private:
    Milliseconds first_;
    Milliseconds cap_;
    Milliseconds next_;
};

class SessionListener {
public:
    virtual ~SessionListener() = default;
    virtual void session_live(SessionId session) = 0;
    virtual void session_lost(SessionId session, const Error& why) = 0;
    // No session at the moment: an attempt to make one failed on all addresses.
    virtual void session_failed(const Error& why) = 0;
    // The control connection is there (again) and the session lives.
    virtual void session_reachable(SessionId session) = 0;
};

class SessionKeeper {
public:
    SessionKeeper(std::string node, NodePort& port, SessionListener& listener, ClientTimes times);

    // For what begins from now on. One that waits to try again does so at once.
    void set_times(const ClientTimes& times);
    // Whether somebody needs a session. Kept for a moment after nobody does.
    void set_needed(bool needed);
    // From now on an unneeded session is closed at once.
    void set_impatient();
    // What a kernel that was there before this daemon holds.
    void adopt(const std::vector<KernelSession>& sessions);
    // After lost events: what the kernel holds now.
    void resync(const std::vector<KernelSession>& sessions);
    void kernel_gone();

    void on_link_up();
    void on_link_failed(const Error& error);
    void on_link_lost(const Error& error);
    void on_offer(SessionId session, const Result<SessionOffer>& offer);
    void on_closed(SessionId session, const Result<void>& result);
    void on_adopted(SessionId session, const Result<void>& result);
    void on_kernel_event(const KernelSession& event);
    void on_timer();
    // The target does not know the session, or says that it is lost.
    void on_broken(SessionId session, const Error& why);

    [[nodiscard]] SessionPhase phase() const { return phase_; }
    [[nodiscard]] SessionId session() const { return current_; }
    [[nodiscard]] bool live() const { return phase_ == SessionPhase::live; }
    [[nodiscard]] const Error& last_error() const { return last_error_; }

private:
    void set_phase(SessionPhase next);
    void advance();
    void attempt_failed(const Error& error);
    void drop_current();
    void kernel_delete(SessionId session);
    void died(SessionId session);
    void try_address();
    void lose(const Error& why);
    void note_window(const Error& error);

    std::string node_;
    NodePort& port_;
    SessionListener& listener_;
    ClientTimes times_;
    Backoff backoff_;

    SessionPhase phase_ = SessionPhase::idle;
    bool needed_ = false;
    SessionId current_ = 0;          // opening, connecting or live
    std::set<SessionId> dying_;      // given up; the kernel's QPs are not destroyed yet
    std::deque<SessionId> to_close_; // the kernel's are; the target's are not known to be
    std::optional<SessionOffer> offer_;
    std::size_t address_ = 0;   // of the offer, which one is tried
    std::size_t addresses_ = 0; // how many the last offer had
    bool adopted_ = true;       // the target knows the control connection of the current session
    Milliseconds linger_{1000}; // an unneeded session is kept so long
    bool lingering_ = false;    // live, not needed, the timer runs
    NodePort::Clock::time_point live_since_{};
    NodePort::Clock::time_point failing_since_{};
    bool failing_ = false;
    bool window_reported_ = false;
    Error last_error_;
};

} // namespace smc
