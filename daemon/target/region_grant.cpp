// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
#include "target/region_grant.hpp"

#include <utility>

#include <fmt/format.h>

namespace smc {

RegionGrant::RegionGrant(const GrantContext& context, ExportEntry& entry)
    : context_(context), entry_(entry), keys_(entry.keys_on(*context.device))
{}

unsigned RegionGrant::access_of(QpRole role) const
{
    // The bulk QP reads as well: a read after the writes pushes them past PCIe buffers.
    if (role == QpRole::bulk && !entry_.readonly)
        return IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
    // Atomics change memory: they are for whom may write, whichever QP carries them.
    if (role == QpRole::read && atomics())
        return IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
    return IBV_ACCESS_REMOTE_READ;
}

bool RegionGrant::atomics() const
{
    return !entry_.readonly && context_.device->atomics();
}

void RegionGrant::obtain(Done<Grant> done)
{
    switch (state_) {
    case State::idle:
    case State::released:
        grant_waiters_.push_back(std::move(done));
        extents_.clear();
        start();
        break;
    case State::registering:
    case State::binding:
        grant_waiters_.push_back(std::move(done));
        break;
    case State::ready:
        done(make_grant());
        break;
    case State::releasing:
        done(fail(EAGAIN,
                  fmt::format("the keys of \"{}\" are being withdrawn: try again", entry_.name)));
        break;
    }
}

template <class T>
Done<T> RegionGrant::when_alive(Done<T> done) const
{
    return [alive = std::weak_ptr(alive_), done = std::move(done)](Result<T> result) {
        if (!alive.expired())
            done(std::move(result));
    };
}

void RegionGrant::start()
{
    state_ = State::registering;
    const auto to_void = [](const auto& result) {
        return result ? Result<void>() : Result<void>(tl::unexpected(result.error()));
    };
    if (keys_ == Keys::window)
        entry_.registration(
            context_.device, context_.extent_max,
            when_alive<const Registered*>([this, to_void](const Result<const Registered*>& result) {
                registered_ = result.value_or(nullptr);
                registered(to_void(result));
            }));
    else
        entry_.register_for_session(
            context_.device, context_.own_pd, context_.extent_max,
            when_alive<Registered>([this, to_void](Result<Registered> result) {
                const auto outcome = to_void(result);
                if (result)
                    own_ = std::move(*result);
                registered_ = &own_;
                registered(outcome);
            }));
}

void RegionGrant::registered(Result<void> result)
{
    if (!release_waiters_.empty() || entry_.removing)
        result = fail(ENOENT, "it was withdrawn meanwhile");
    if (result && keys_ == Keys::window)
        result = allocate_windows();
    if (!result) {
        auto error = std::move(result).error();
        error.what = fmt::format("cannot grant \"{}\": {}", entry_.name, error.what);
        finish_release();
        answer_grants(tl::unexpected(std::move(error)));
        return;
    }
    extents_.reserve(registered_->size());
    for (const auto& piece : *registered_) {
        smcfs_extent extent{};
        extent.offset = piece.extent.offset;
        extent.length = piece.extent.length;
        extent.addr = piece.addr;
        if (keys_ == Keys::mr)
            extent.rkey_read = extent.rkey_bulk = piece.mr->rkey;
        extents_.push_back(extent);
    }
    outcome_ = {};
    state_ = State::binding;
    outstanding_ = 1; // this function's own, so that nothing ends before all is posted
    post_binds();
    bound();
}

Result<void> RegionGrant::allocate_windows()
{
    ibv_pd* pd = context_.own_pd ? context_.own_pd.get() : context_.device->pd();
    for (std::size_t i = 0; i < registered_->size(); i++) {
        for (const auto role : {QpRole::read, QpRole::bulk}) {
            verbs::Mw mw(ibv_alloc_mw(pd, IBV_MW_TYPE_2));
            if (!mw)
                return fail_errno(errno, fmt::format("ibv_alloc_mw on {} (it has {} windows)",
                                                     context_.device->name(),
                                                     context_.device->attributes().max_mw));
            const auto rkey = ibv_inc_rkey(mw->rkey);
            windows_.push_back({std::move(mw), role, i, rkey, false});
        }
    }
    return {};
}

void RegionGrant::post_binds()
{
    for (auto& window : windows_) {
        const auto& piece = (*registered_)[window.extent];
        ibv_mw_bind_info info{};
        info.mr = piece.mr.get();
        info.addr = piece.addr;
        info.length = piece.extent.length;
        info.mw_access_flags = access_of(window.role);
        outstanding_++;
        context_.endpoints[static_cast<std::size_t>(window.role)]->bind(
            window.mw.get(), window.rkey, info, [this, &window](Result<void> result) {
                if (result) {
                    window.bound = true;
                    window.mw->rkey = window.rkey;
                } else if (outcome_) {
                    outcome_ = std::move(result);
                }
                bound();
            });
    }
}

void RegionGrant::bound()
{
    if (--outstanding_ != 0)
        return;
    for (const auto& window : windows_)
        (window.role == QpRole::read ? extents_[window.extent].rkey_read
                                     : extents_[window.extent].rkey_bulk) = window.rkey;
    if (outcome_ && release_waiters_.empty()) {
        state_ = State::ready;
        answer_grants(make_grant());
        return;
    }
    auto error = outcome_ ? Error{ENOENT, "it was withdrawn meanwhile"} : outcome_.error();
    error.what = fmt::format("cannot grant \"{}\": {}", entry_.name, error.what);
    start_release();
    answer_grants(tl::unexpected(std::move(error)));
}

Grant RegionGrant::make_grant() const
{
    Grant grant;
    grant.generation = entry_.generation;
    grant.size = entry_.memory().size();
    grant.mode = entry_.mode;
    grant.uid = entry_.uid;
    grant.gid = entry_.gid;
    grant.writers = entry_.writers;
    grant.merge_unit = entry_.merge_unit;
    grant.readonly = entry_.readonly;
    grant.atomics = atomics();
    grant.hints = entry_.hints;
    grant.extents = extents_;
    grant.keys = keys_;
    return grant;
}

void RegionGrant::release(Done<void> done)
{
    if (state_ == State::released || state_ == State::idle) {
        state_ = State::released;
        done({});
        return;
    }
    release_waiters_.push_back(std::move(done));
    if (state_ == State::ready)
        start_release();
    // else what is under way goes on: bound() and finish_release() see that somebody waits
}

void RegionGrant::start_release()
{
    state_ = State::releasing;
    outstanding_ = 1;
    for (auto& window : windows_) {
        if (!window.bound)
            continue;
        outstanding_++;
        // When it fails the QP is in error and serves nobody, and deallocation ends the window.
        context_.endpoints[static_cast<std::size_t>(window.role)]->invalidate(
            window.rkey, [this](const Result<void>&) {
                if (--outstanding_ == 0)
                    finish_release();
            });
    }
    if (--outstanding_ == 0)
        finish_release();
}

void RegionGrant::finish_release()
{
    state_ = State::released;
    windows_.clear();
    own_.clear();
    for (auto& done : std::exchange(release_waiters_, {}))
        done({});
}

void RegionGrant::drop_windows()
{
    windows_.clear(); // own registrations wait for the QPs, which may still refer to them
    alive_ = std::make_shared<int>(0);
    if (state_ == State::registering || state_ == State::binding)
        answer_grants(fail(
            ENOTCONN, fmt::format("the session ended before \"{}\" was granted", entry_.name)));
    state_ = State::released;
    for (auto& done : std::exchange(release_waiters_, {}))
        done({});
}

void RegionGrant::answer_grants(const Result<Grant>& result)
{
    for (auto& done : std::exchange(grant_waiters_, {}))
        done(result);
}

} // namespace smc
