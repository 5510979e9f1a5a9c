// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
#include "binder.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace smc {
Binder::Binder(std::string node, NodePort& port, ClientTimes times)
    : node_(std::move(node)), port_(port), times_(times), keeper_(node_, port, *this, times),
      rebind_backoff_(times.retry_first, times.retry_cap)
{}

void Binder::set_times(const ClientTimes& times)
{
    times_ = times;
    rebind_backoff_ = Backoff(times.retry_first, times.retry_cap);
    keeper_.set_times(times);
    failure_.reset();
}

// The target does not know the session, or not its QPs: only a new one helps.
bool Binder::wants_new_session(const Error& error)
{
    return error.code == ESTALE || error.code == ENOTCONN;
}

bool Binder::is_gone(const Error& error)
{
    return error.code == ENOENT || error.code == EISDIR;
}

// --- first use -----------------------------------------------------------------------------------

void Binder::bind_for_kernel(const std::string& name)
{
    if (failure_ && port_.now() < failure_until_) {
        port_.kernel_bind_fail(name, failure_->code);
        return;
    }
    // A region that the kernel asks for is not attached there, whatever its events said.
    if (const auto stale = regions_.find(name); stale != regions_.end())
        forget(stale);
    if (start(name))
        pending_[name].kernel_waits = true;
    else
        port_.kernel_bind_fail(name, EBUSY);
}

void Binder::bind_for(const std::string& name, Waiter waiter)
{
    if (const auto found = regions_.find(name);
        found != regions_.end() && found->second.step == Step::bound && keeper_.live()) {
        waiter(found->second.id);
        return;
    }
    if (regions_.contains(name)) {
        waiter(fail(ENOTCONN, fmt::format("{}:{} is attached, but its node cannot be reached: {}",
                                          node_, name, keeper_.last_error().what)));
        return;
    }
    failure_.reset();
    if (!start(name) || pending_[name].waiters.size() >= kWaitersMax)
        waiter(fail(EBUSY, fmt::format("{}:{}: too many requests wait already", node_, name)));
    else
        pending_[name].waiters.push_back(std::move(waiter));
}

// False: no room. True: the name is pending.
bool Binder::start(const std::string& name)
{
    if (pending_.contains(name))
        return true;
    if (pending_.size() >= kPendingMax)
        return false;
    pending_[name].deadline = port_.now() + times_.bind;
    arm_bind_timer();
    keeper_.set_needed(true);
    if (keeper_.live())
        request_grant(name);
    return true;
}

void Binder::request_grant(const std::string& name)
{
    const auto found = pending_.find(name);
    if (found == pending_.end() || found->second.granting || releasing_.contains(name))
        return;
    if (!port_.link_up())
        return; // session_reachable() comes back here, or the deadline passes
    found->second.granting = true;
    owed_.erase(name);
    port_.grant(keeper_.session(), name);
}

void Binder::on_grant(SessionId session, const std::string& name, const Result<Grant>& grant)
{
    if (const auto found = regions_.find(name); found != regions_.end()) {
        if (session == keeper_.session() && found->second.step == Step::granting)
            regrant(name, found->second, grant);
        return;
    }
    const auto found = pending_.find(name);
    if (found == pending_.end() || session != keeper_.session()) {
        if (grant && session == keeper_.session() && keeper_.live()) {
            releasing_.insert(name); // nobody waits for it any more
            port_.grant_release(session, name);
        }
        return;
    }
    found->second.granting = false;
    if (grant)
        bound(name, *grant);
    else if (wants_new_session(grant.error()))
        keeper_.on_broken(session, grant.error()); // pending until its deadline
    else if (port_.link_up())                      // else session_reachable() asks again
        finish(name, tl::unexpected<Error>(grant.error()));
}

void Binder::bound(const std::string& name, const Grant& grant)
{
    const auto session = keeper_.session();
    const auto id = port_.kernel_attach(session, name, grant);
    if (!id) {
        releasing_.insert(name);
        port_.grant_release(session, name);
        finish(name, id);
        return;
    }
    Region region;
    region.id = *id;
    region.generation = grant.generation;
    region.session = session;
    regions_.insert_or_assign(name, std::move(region));
    finish(name, id);
}

void Binder::finish(const std::string& name, const Result<RegionId>& result)
{
    auto node = pending_.extract(name);
    if (node.empty())
        return;
    const auto& pending = node.mapped();
    if (!result) {
        log_failure(name, result.error());
        if (pending.kernel_waits)
            port_.kernel_bind_fail(name, result.error().code != 0 ? result.error().code : EIO);
    }
    for (const auto& waiter : pending.waiters)
        waiter(result);
    arm_bind_timer();
    update_needed();
}

void Binder::log_failure(const std::string& name, const Error& error)
{
    if (is_gone(error)) // anybody may look for names that are not there
        log::debug("{}:{} cannot be bound: {}", node_, name, error.what);
    else if (log_limit_.allow())
        log::warn("{}:{} cannot be bound: {}", node_, name, error.what);
}

void Binder::update_needed()
{
    keeper_.set_needed(has_regions());
}

void Binder::arm_bind_timer()
{
    if (pending_.empty()) {
        port_.disarm(NodePort::Timer::bind);
        return;
    }
    const auto first =
        std::min_element(pending_.begin(), pending_.end(), [](const auto& a, const auto& b) {
            return a.second.deadline < b.second.deadline;
        });
    const auto left = std::chrono::ceil<Milliseconds>(first->second.deadline - port_.now());
    port_.arm(NodePort::Timer::bind, std::max(left, Milliseconds(0)));
}

void Binder::on_bind_timer()
{
    std::vector<std::string> late;
    for (const auto& [name, pending] : pending_)
        if (pending.deadline <= port_.now())
            late.push_back(name);
    const auto& last = keeper_.last_error();
    for (const auto& name : late)
        finish(name,
               fail(ETIMEDOUT, fmt::format("not within {} ms: {} ({}{})", times_.bind.count(),
                                           keeper_.live() ? "the target did not grant it"
                                                          : "no session with the node",
                                           to_string(keeper_.phase()),
                                           last.what.empty() ? "" : "; last error: " + last.what)));
    arm_bind_timer();
}

// --- the session comes and goes ------------------------------------------------------------------

void Binder::session_live(SessionId session)
{
    failure_.reset();
    owed_.clear(); // the new session has no grants and no writing rights
    owed_writers_.clear();
    releasing_.clear();
    rebind_backoff_.reset();
    for (auto& [name, region] : regions_) {
        region.step = Step::granting;
        region.session = 0;
        port_.grant(session, name);
    }
    for (auto& [name, pending] : pending_)
        pending.granting = false;
    for (const auto& [name, pending] : std::map<std::string, Pending>(pending_))
        request_grant(name);
}

void Binder::session_lost(SessionId session, const Error& why)
{
    releasing_.clear();
    for (auto& [name, region] : regions_)
        region.step = Step::wanting;
    for (auto& [name, pending] : pending_)
        pending.granting = false;
    if (!regions_.empty())
        log::warn("session {:016x} with {}, {} regions: {}; reconnecting", session, node_,
                  regions_.size(), why.what);
}

void Binder::session_failed(const Error& why)
{
    if (!failure_ || port_.now() >= failure_until_ || failure_->what != why.what)
        log::warn("no session with {}: {}", node_, why.what);
    failure_ = why;
    failure_until_ = port_.now() + kFailureKept;
    auto pending = std::move(pending_);
    pending_.clear();
    arm_bind_timer();
    for (auto& [name, region] : regions_)
        if (region.asking)
            answer_writer(region, why.code);
    for (const auto& [name, bind] : pending) {
        if (bind.kernel_waits)
            port_.kernel_bind_fail(name, why.code != 0 ? why.code : EIO);
        for (const auto& waiter : bind.waiters)
            waiter(tl::unexpected<Error>(why));
    }
    update_needed();
}

void Binder::session_reachable(SessionId session)
{
    for (const auto& name : std::exchange(owed_writers_, {}))
        port_.writer_release(session, name);
    for (const auto& name : std::exchange(owed_, {})) {
        releasing_.insert(name);
        port_.grant_release(session, name);
    }
    for (auto& [name, region] : regions_) {
        if (region.session == session && region.step == Step::bound) {
            if (region.asking)
                port_.writer_acquire(session, name);
        } else if (region.step == Step::wanting || region.session != session) {
            region.step = Step::granting;
            port_.grant(session, name);
        }
    }
    for (const auto& [name, pending] : std::map<std::string, Pending>(pending_))
        request_grant(name);
}

} // namespace smc
