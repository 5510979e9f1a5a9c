// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// One client node on one device of this node: two QPs and the keys of all regions that it uses.
//
// Owns: one-time tokens, endpoints, grants; and, where keys are registrations, a protection domain
// of its own, which keeps its keys from working on other sessions' QPs.
// Contexts: the event loop's thread.
// Lifetime: QPs live from accept() to lose(). A session that lost them stays known until its client
// closed it or was silent for long enough, so that nobody gets its writing rights too early.
// Failure: one QP that ends takes the other with it.
#pragma once

#include <array>
#include <chrono>
#include <map>
#include <memory>
#include <string>

#include "core/result.hpp"
#include "event_loop.hpp"
#include "target/connect_request.hpp"
#include "target/listener.hpp"
#include "target/region_grant.hpp"
#include "target/types.hpp"

namespace smc {

enum class SessionKind { regions, probe };

struct SessionParams {
    SessionId id = 0;
    std::string node;
    SessionKind kind = SessionKind::regions;
    std::uint64_t extent_max = 0;
    const memory::Memory* probe_memory = nullptr; // for SessionKind::probe
};

class Session {
public:
    using FailedCallback = std::function<void(const std::string& reason)>;
    // What time does to a session: see Target's timers.
    using TimerCallback = std::function<void()>;

    Session(EventLoop& loop, SessionParams params, FailedCallback on_failed,
            TimerCallback on_timer);
    ~Session();
    Session(const Session&) = delete;
    Session& operator=(const Session&) = delete;

    [[nodiscard]] const Token& token(QpRole role) const { return slot(role).token; }
    // Checks and uses up the token. The id is the caller's again when this fails.
    Result<void> accept(const ExportEntry::Device& device, const ConnectRequest& request,
                        IncomingConnection& incoming);

    // The session must be live. Callbacks may run at once.
    void grant(ExportEntry& entry, Done<Grant> done);
    void release(const std::string& name, Done<void> done);
    void drop_released(const std::string& name);
    [[nodiscard]] bool has_grant(const std::string& name) const { return grants_.count(name) != 0; }
    void check_alive(verbs::Endpoint::OpDone done);

    // Destroys QPs and keys, in this order of effect: when it returns nothing of the session touches
    // memory any more.
    void lose();

    void set_claimed(bool claimed);
    // For what comes next in this state: the end of the tokens, a check, being forgotten.
    void arm_timer();
    [[nodiscard]] bool claimed() const { return claimed_; }
    [[nodiscard]] SessionId id() const { return params_.id; }
    [[nodiscard]] const std::string& node() const { return params_.node; }
    [[nodiscard]] SessionKind kind() const { return params_.kind; }
    [[nodiscard]] SessionState state() const { return state_; }
    [[nodiscard]] const std::string& device() const { return device_name_; }
    [[nodiscard]] Keys keys() const;
    [[nodiscard]] SessionInfo info() const; // but for the writing rights

    // Distinguishes sessions that had the same id one after the other.
    const std::uint64_t incarnation;

private:
    struct Slot {
        Token token{};
        bool used = false;
        std::unique_ptr<verbs::Endpoint> endpoint;
    };
    Slot& slot(QpRole role) { return slots_[static_cast<std::size_t>(role)]; }
    [[nodiscard]] const Slot& slot(QpRole role) const
    {
        return slots_[static_cast<std::size_t>(role)];
    }
    Result<void> choose_device(const ExportEntry::Device& device);
    Result<std::vector<std::uint8_t>> make_reply();
    void set_state(SessionState next);

    EventLoop& loop_;
    SessionParams params_;
    FailedCallback on_failed_;
    SessionState state_ = SessionState::offered;
    bool claimed_; // by a control connection; a probe's never: it is asked whether it lives
    std::chrono::steady_clock::time_point created_ = std::chrono::steady_clock::now();
    ExportEntry::Device device_; // while there are endpoints
    std::string device_name_;
    // In this order: destroyed from the end.
    std::shared_ptr<ibv_pd> own_pd_; // shared with registrations under way
    std::vector<verbs::RegisteredExtent> probe_registration_;
    std::map<std::string, std::unique_ptr<RegionGrant>> grants_;
    std::array<Slot, kQpRoles> slots_;
    EventLoop::Source timer_;
};

} // namespace smc
