// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
#include "target/region_grant.hpp"

#include <utility>

#include <fmt/format.h>

namespace smc {

RegionGrant::RegionGrant(const GrantContext& context, ExportEntry& entry)
    : context_(context), entry_(entry), keys_(entry.keys_on(context.device))
{}

unsigned RegionGrant::access_of(QpRole role) const
{
    // The bulk QP reads as well: a read after the writes pushes them past PCIe buffers.
    if (role == QpRole::bulk && !entry_.readonly)
        return IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
    return IBV_ACCESS_REMOTE_READ;
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

void RegionGrant::start()
{
    outcome_ = keys_ == Keys::window ? allocate_windows() : register_own();
    if (!outcome_) {
        auto error = outcome_.error();
        error.what = fmt::format("cannot grant \"{}\": {}", entry_.name, error.what);
        state_ = State::released;
        windows_.clear();
        own_.clear();
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
    state_ = State::binding;
    outstanding_ = 1; // this function's own, so that nothing ends before all is posted
    post_binds();
    bound();
}

Result<void> RegionGrant::allocate_windows()
{
    registered_ = SMC_TRY(entry_.registration(context_.device, context_.extent_max));
    for (std::size_t i = 0; i < registered_->size(); i++) {
        for (const auto role : {QpRole::read, QpRole::bulk}) {
            verbs::Mw mw(ibv_alloc_mw(context_.pd, IBV_MW_TYPE_2));
            if (!mw)
                return fail_errno(errno, fmt::format("ibv_alloc_mw on {} (it has {} windows)",
                                                     context_.device.name(),
                                                     context_.device.attributes().max_mw));
            const auto rkey = ibv_inc_rkey(mw->rkey);
            windows_.push_back({std::move(mw), role, i, rkey, false});
        }
    }
    return {};
}

Result<void> RegionGrant::register_own()
{
    verbs::RegistrationParams params;
    params.pd = context_.pd;
    params.data = entry_.memory().data();
    params.length_bytes = entry_.memory().size();
    params.extent_max = context_.extent_max;
    params.access = entry_.session_access();
    own_ = SMC_TRY(verbs::register_memory(params));
    registered_ = &own_;
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
    if (state_ == State::binding)
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
