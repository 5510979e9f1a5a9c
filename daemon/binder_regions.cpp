// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// Binder, for regions that are attached: bound again under a new session, the writing right, the end.
#include "binder.hpp"

#include <algorithm>

namespace smc {

// --- the same memory under a new session ---------------------------------------------------------

void Binder::regrant(const std::string& name, Region& region, const Result<Grant>& grant)
{
    if (!grant) {
        if (is_gone(grant.error())) {
            log::warn("{}:{} is exported no more: its pages are discarded", node_, name);
            region.step = Step::wanting;
            port_.kernel_revoke(region.id);
        } else if (wants_new_session(grant.error())) {
            region.step = Step::wanting;
            keeper_.on_broken(keeper_.session(), grant.error());
        } else {
            retry_rebind(name, region, grant.error());
        }
        return;
    }
    if (grant->generation != region.generation) {
        log::warn("{}:{} is other memory than before: the old region ends, its pages are discarded",
                  node_, name);
        region.step = Step::wanting;
        port_.kernel_revoke(region.id);
        return;
    }
    region.grant = *grant;
    if (region.writer || region.asking) {
        // Before the pages are sent: another node may have got the right meanwhile.
        region.step = Step::acquiring;
        port_.writer_acquire(keeper_.session(), name);
        return;
    }
    reattach(name, region);
}

void Binder::reattach(const std::string& name, Region& region)
{
    const auto grant = std::exchange(region.grant, std::nullopt);
    const auto id = port_.kernel_attach(keeper_.session(), name, *grant);
    if (!id) {
        retry_rebind(name, region, id.error());
        return;
    }
    region.id = *id;
    region.session = keeper_.session();
    region.step = Step::bound;
    log::info("{}:{} is bound again", node_, name);
}

void Binder::retry_rebind(const std::string& name, Region& region, const Error& error)
{
    region.step = Step::wanting;
    region.grant.reset();
    if (log_limit_.allow())
        log::warn("{}:{} cannot be bound again yet: {}", node_, name, error.what);
    port_.arm(NodePort::Timer::rebind, rebind_backoff_.next(port_.random()));
}

void Binder::on_rebind_timer()
{
    if (!keeper_.live() || !port_.link_up())
        return; // session_live() or session_reachable() come back to it
    for (auto& [name, region] : regions_) {
        if (region.step != Step::wanting)
            continue;
        region.step = Step::granting;
        port_.grant(keeper_.session(), name);
    }
}

// --- the writing right ---------------------------------------------------------------------------

void Binder::on_writer_wanted(RegionId id, const std::string& name)
{
    const auto found = regions_.find(name);
    if (found == regions_.end() || found->second.id != id) {
        port_.kernel_writer_result(id, ESTALE);
        return;
    }
    auto& region = found->second;
    region.asking = true;
    owed_writers_.erase(name);
    if (region.step == Step::bound && keeper_.live() && port_.link_up())
        port_.writer_acquire(keeper_.session(), name);
    else if (failure_ && port_.now() < failure_until_)
        answer_writer(region, failure_->code);
    // else: when the region is bound again, or the kernel's patience ends
}

void Binder::on_writer(SessionId session, const std::string& name, const Result<void>& result)
{
    const auto found = regions_.find(name);
    if (found == regions_.end() || session != keeper_.session())
        return;
    auto& region = found->second;
    if (!result && result.error().code == EBUSY)
        log::info("{}:{}: {}", node_, name, result.error().what);
    if (result)
        region.writer = region.asking || region.writer;
    if (region.asking && (result || port_.link_up()))
        answer_writer(region, result ? 0 : result.error().code);
    if (region.step != Step::acquiring)
        return;
    if (result || !region.writer)
        reattach(name, region);
    else if (wants_new_session(result.error()))
        keeper_.on_broken(session, result.error());
    else
        retry_rebind(name, region, result.error());
}

void Binder::answer_writer(Region& region, int error)
{
    region.asking = false;
    port_.kernel_writer_result(region.id, error);
}

void Binder::on_writer_unwanted(RegionId id, const std::string& name)
{
    const auto found = regions_.find(name);
    if (found == regions_.end() || found->second.id != id)
        return;
    found->second.writer = false;
    found->second.asking = false;
    if (keeper_.live() && port_.link_up())
        port_.writer_release(keeper_.session(), name);
    else
        owed_writers_.insert(name);
}

// --- the end -------------------------------------------------------------------------------------

void Binder::on_region_event(const KernelRegion& event)
{
    const auto found = regions_.find(event.name);
    if (found != regions_.end() && found->second.id == event.region &&
        event.state == SMCFS_REGION_FAILED)
        forget(found);
}

void Binder::forget(Regions::iterator at)
{
    const std::string name = at->first;
    regions_.erase(at);
    if (keeper_.live() && port_.link_up()) {
        releasing_.insert(name);
        port_.grant_release(keeper_.session(), name);
    } else {
        owed_.insert(name);
    }
    update_needed();
}

void Binder::on_released(const std::string& name)
{
    releasing_.erase(name);
    if (keeper_.live())
        request_grant(name);
}

void Binder::on_revoked(SessionId session, const std::string& name, Generation generation)
{
    const auto found = regions_.find(name);
    if (found == regions_.end() || found->second.generation != generation ||
        session != keeper_.session())
        return;
    log::warn("{}:{} was revoked by its node", node_, name);
    port_.kernel_revoke(found->second.id);
}

void Binder::adopt(const std::vector<KernelRegion>& regions)
{
    for (const auto& region : regions) {
        if (region.generation == 0 || region.state == SMCFS_REGION_FAILED ||
            region.state == SMCFS_REGION_BINDING)
            continue;
        Region adopted;
        adopted.id = region.region;
        adopted.generation = region.generation;
        adopted.session = region.session;
        adopted.writer = region.writer;
        adopted.step = region.state == SMCFS_REGION_DEGRADED ? Step::wanting : Step::bound;
        regions_.insert_or_assign(region.name, std::move(adopted));
    }
    update_needed();
}

void Binder::resync(const std::vector<KernelRegion>& regions)
{
    std::vector<std::string> gone;
    for (const auto& [name, mine] : regions_)
        if (std::none_of(regions.begin(), regions.end(),
                         [id = mine.id](const KernelRegion& theirs) {
                             return theirs.region == id && theirs.state != SMCFS_REGION_FAILED;
                         }))
            gone.push_back(name);
    for (const auto& name : gone)
        if (const auto found = regions_.find(name); found != regions_.end())
            forget(found);
}

void Binder::kernel_gone()
{
    auto pending = std::move(pending_);
    pending_.clear();
    regions_.clear();
    releasing_.clear();
    owed_.clear();
    owed_writers_.clear();
    failure_.reset(); // it may have been the kernel's that went
    for (const auto& [name, bind] : pending)
        for (const auto& waiter : bind.waiters)
            waiter(fail(ENODEV, "the kernel module smcfs is not connected: modprobe smcfs"));
    keeper_.kernel_gone();
}

std::vector<std::string> Binder::region_names() const
{
    std::vector<std::string> names;
    for (const auto& [name, region] : regions_)
        names.push_back(name);
    return names;
}

std::vector<std::string> Binder::written_names() const
{
    std::vector<std::string> names;
    for (const auto& [name, region] : regions_)
        if (region.writer)
            names.push_back(name);
    return names;
}

std::optional<RegionId> Binder::find(const std::string& name) const
{
    const auto found = regions_.find(name);
    return found == regions_.end() ? std::nullopt : std::optional(found->second.id);
}

} // namespace smc
