// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
#include "target/session.hpp"

#include <cassert>

#include <fmt/format.h>

#include "core/log.hpp"
#include "target/token.hpp"

namespace smc {
namespace {

constexpr Milliseconds kTokenLife{30000};
// A client that nobody speaks for is asked so often whether it lives.
constexpr Milliseconds kAliveInterval{5000};
// So long its writing rights are kept for it after its QPs ended.
constexpr Milliseconds kForgetAfter{60000};

std::uint64_t next_incarnation()
{
    static std::uint64_t last = 0;
    return ++last;
}

constexpr unsigned bit(SessionState state)
{
    return 1U << static_cast<unsigned>(state);
}

// By SessionState: where it may go.
constexpr std::array<unsigned, 4> kNextStates = {
    bit(SessionState::connecting) | bit(SessionState::live) | bit(SessionState::lost), // offered
    bit(SessionState::live) | bit(SessionState::lost),                                 // connecting
    bit(SessionState::lost),                                                           // live
    0,                                                                                 // lost
};

} // namespace

Session::Session(EventLoop& loop, SessionParams params, FailedCallback on_failed,
                 TimerCallback on_timer)
    : incarnation(next_incarnation()), loop_(loop), params_(std::move(params)),
      on_failed_(std::move(on_failed)), claimed_(params_.kind == SessionKind::regions)
{
    for (auto& slot : slots_)
        slot.token = random_token();
    if (params_.kind == SessionKind::probe)
        slot(QpRole::bulk).used = true; // there is none
    timer_ = loop.add_timer(kTokenLife, std::move(on_timer));
}

Session::~Session()
{
    if (state_ != SessionState::lost)
        lose();
}

void Session::set_state(SessionState next)
{
    assert((kNextStates[static_cast<std::size_t>(state_)] & bit(next)) != 0);
    log::debug("session {:016x} of {}: {} -> {}", params_.id, params_.node, to_string(state_),
               to_string(next));
    state_ = next;
    arm_timer();
}

void Session::set_claimed(bool claimed)
{
    claimed_ = claimed;
    arm_timer();
}

// The token's time runs from the offer to the last QP, whoever claims the session.
void Session::arm_timer()
{
    if (state_ == SessionState::live && !claimed_)
        timer_.rearm(kAliveInterval);
    else if (state_ == SessionState::lost && !claimed_)
        timer_.rearm(kForgetAfter);
    else if (state_ == SessionState::live || state_ == SessionState::lost)
        timer_.disarm();
}

Result<void> Session::accept(const ExportEntry::Device& device, const ConnectRequest& request,
                             IncomingConnection& incoming)
{
    auto& slot = this->slot(request.role);
    // The same time and the same answer for a wrong token and one that was used.
    const bool equal = tokens_equal(slot.token, request.token);
    if (!equal || slot.used || state_ == SessionState::lost)
        return fail(EACCES, "wrong or used token");
    slot.used = true;
    slot.token = {};
    SMC_TRY(choose_device(device));
    const auto reply = SMC_TRY(make_reply());

    verbs::AcceptParams params;
    params.remote_access = IBV_ACCESS_REMOTE_READ;
    if (request.role == QpRole::bulk)
        params.remote_access |= IBV_ACCESS_REMOTE_WRITE;
    else if (device->atomics() && params_.kind == SessionKind::regions)
        params.remote_access |= IBV_ACCESS_REMOTE_ATOMIC;
    params.responder_resources = incoming.responder_resources;
    params.initiator_depth = incoming.initiator_depth;
    params.reply = reply;
    slot.endpoint = SMC_TRY(verbs::Endpoint::accept(
        loop_, *device, own_pd_ ? own_pd_.get() : device->pd(), incoming.id, params, on_failed_));

    const bool complete = params_.kind == SessionKind::probe ||
                          (this->slot(QpRole::read).endpoint && this->slot(QpRole::bulk).endpoint);
    set_state(complete ? SessionState::live : SessionState::connecting);
    return {};
}

Result<void> Session::choose_device(const ExportEntry::Device& device)
{
    if (device_ == device)
        return {};
    if (device_ != nullptr)
        return fail(EXDEV, fmt::format("the other QP of this session is on {}", device_->name()));
    if (!device->windows() || params_.kind == SessionKind::probe)
        own_pd_ = SMC_TRY(device->make_pd());
    device_ = device;
    device_name_ = device->name();
    return {};
}

Result<std::vector<std::uint8_t>> Session::make_reply()
{
    if (params_.kind != SessionKind::probe)
        return {};
    verbs::RegistrationParams registration;
    registration.pd = own_pd_.get();
    registration.data = params_.probe_memory->data();
    registration.length_bytes = params_.probe_memory->size();
    registration.access = IBV_ACCESS_REMOTE_READ;
    probe_registration_ = SMC_TRY(verbs::register_memory(registration));
    ProbeMemory memory;
    memory.addr = probe_registration_.front().addr;
    memory.length_bytes = static_cast<std::uint32_t>(probe_registration_.front().extent.length);
    memory.rkey = probe_registration_.front().mr->rkey;
    const auto bytes = encode(memory);
    return std::vector<std::uint8_t>(bytes.begin(), bytes.end());
}

void Session::grant(ExportEntry& entry, Done<Grant> done)
{
    auto& grant = grants_[entry.name];
    if (!grant) {
        const GrantContext context{
            device_,
            own_pd_,
            {slot(QpRole::read).endpoint.get(), slot(QpRole::bulk).endpoint.get()},
            params_.extent_max};
        grant = std::make_unique<RegionGrant>(context, entry);
    }
    grant->obtain(std::move(done));
}

void Session::release(const std::string& name, Done<void> done)
{
    const auto found = grants_.find(name);
    if (found == grants_.end())
        done({});
    else
        found->second->release(std::move(done));
}

void Session::drop_released(const std::string& name)
{
    const auto found = grants_.find(name);
    if (found != grants_.end() && found->second->released())
        grants_.erase(found);
}

void Session::check_alive(verbs::Endpoint::OpDone done)
{
    slot(QpRole::read).endpoint->check_alive(std::move(done));
}

void Session::lose()
{
    for (auto& slot : slots_)
        if (slot.endpoint)
            slot.endpoint->stop();
    for (auto& [name, grant] : grants_)
        grant->drop_windows();
    for (auto& slot : slots_) {
        slot.endpoint.reset();
        slot.used = true;
        slot.token = {};
    }
    grants_.clear();
    probe_registration_.clear();
    own_pd_.reset();
    device_.reset();
    set_state(SessionState::lost);
}

Keys Session::keys() const
{
    // One that had to be a registration says more than the others.
    Keys keys = Keys::none;
    for (const auto& [name, grant] : grants_)
        if (keys != Keys::mr)
            keys = grant->keys();
    return keys;
}

SessionInfo Session::info() const
{
    SessionInfo info;
    info.session = params_.id;
    info.node = params_.node;
    info.state = state_;
    info.keys = keys();
    info.device = device_name_;
    for (const auto& [name, grant] : grants_)
        info.regions.push_back(name);
    info.age_s = static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::seconds>(
                                                std::chrono::steady_clock::now() - created_)
                                                .count());
    return info;
}

} // namespace smc
