// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// The names of one other node: first use, use under a new session, the writing right, the end.
// Decisions only; NodePort does.
//
//   bind -> (a session is there) -> grant -> attach -> bound
//   session replaced: each bound region -> grant -> [writing right] -> attach   same memory: as before
//                                                -> revoke                      other memory, or none
//   region gone in the kernel -> grant_release
//
// A name is bound once, whoever waits for it. What an unreachable node was told is remembered for
// kFailureKept, so that a burst of lookups costs one attempt.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "client/node_port.hpp"
#include "core/log.hpp"
#include "recovery.hpp"

namespace smc {

class Binder final : public SessionListener {
public:
    static constexpr Milliseconds kFailureKept{5000};
    static constexpr std::size_t kPendingMax = 4096;
    static constexpr std::size_t kWaitersMax = 256; // of one name
    using Waiter = std::function<void(Result<RegionId>)>;

    Binder(std::string node, NodePort& port, ClientTimes times);
    // For what begins from now on; a node that failed a moment ago may be tried again.
    void set_times(const ClientTimes& times);

    // The kernel asks: answered with attach or bind_fail.
    void bind_for_kernel(const std::string& name);
    // A program asks (smcctl attach): a node that failed a moment ago is tried again.
    void bind_for(const std::string& name, Waiter waiter);
    // What a kernel that was there before this daemon holds: its regions of this node.
    void adopt(const std::vector<KernelRegion>& regions);
    void resync(const std::vector<KernelRegion>& regions);
    void kernel_gone();

    void on_grant(SessionId session, const std::string& name, const Result<Grant>& grant);
    void on_released(const std::string& name);
    void on_writer(SessionId session, const std::string& name, const Result<void>& result);
    void on_writer_wanted(RegionId region, const std::string& name);
    void on_writer_unwanted(RegionId region, const std::string& name);
    void on_region_event(const KernelRegion& event);
    void on_revoked(SessionId session, const std::string& name, Generation generation);
    void on_bind_timer();
    void on_rebind_timer();

    void session_live(SessionId session) override;
    void session_lost(SessionId session, const Error& why) override;
    void session_failed(const Error& why) override;
    void session_reachable(SessionId session) override;

    [[nodiscard]] SessionKeeper& keeper() { return keeper_; }
    [[nodiscard]] const SessionKeeper& keeper() const { return keeper_; }
    [[nodiscard]] bool has_regions() const { return !regions_.empty() || !pending_.empty(); }
    [[nodiscard]] std::vector<std::string> region_names() const;
    [[nodiscard]] std::vector<std::string> written_names() const;
    [[nodiscard]] std::optional<RegionId> find(const std::string& name) const;

private:
    using Time = NodePort::Clock::time_point;

    struct Pending { // a first use under way
        bool kernel_waits = false;
        std::vector<Waiter> waiters;
        Time deadline;
        bool granting = false;
    };
    enum class Step { bound, wanting, granting, acquiring };
    struct Region { // attached in the kernel
        RegionId id = 0;
        Generation generation = 0;
        SessionId session = 0; // that it was last attached under
        Step step = Step::bound;
        bool writer = false;        // holds the writing right, or is to get it again
        bool asking = false;        // the kernel waits for the answer
        std::optional<Grant> grant; // while the writing right is acquired
    };
    using Regions = std::map<std::string, Region>;

    static bool wants_new_session(const Error& error);
    static bool is_gone(const Error& error);
    bool start(const std::string& name);
    void request_grant(const std::string& name);
    void finish(const std::string& name, const Result<RegionId>& result);
    void update_needed();
    void arm_bind_timer();
    void bound(const std::string& name, const Grant& grant);
    void regrant(const std::string& name, Region& region, const Result<Grant>& grant);
    void reattach(const std::string& name, Region& region);
    void retry_rebind(const std::string& name, Region& region, const Error& error);
    void forget(Regions::iterator at);
    void answer_writer(Region& region, int error);
    void log_failure(const std::string& name, const Error& error);

    std::string node_;
    NodePort& port_;
    ClientTimes times_;
    SessionKeeper keeper_;
    std::map<std::string, Pending> pending_;
    Regions regions_;
    std::set<std::string> releasing_;    // a grant_release is under way
    std::set<std::string> owed_;         // grant_releases for when the target can be reached
    std::set<std::string> owed_writers_; // the same of writing rights
    std::optional<Error> failure_;
    Time failure_until_;
    Backoff rebind_backoff_;
    log::RateLimit log_limit_{10, Milliseconds(10000)};
};

} // namespace smc
