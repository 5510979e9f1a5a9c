// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// The keys that one session has for one region.
//
//     registering -> binding --all bound--> ready --release()--> releasing --all dead--> released
//      |   ^           |                                          ^                       |  ^
//      |   |           `---- one failed, or release() meanwhile --'                       |  |
//      |   `--------------------------------- obtain() -----------------------------------'  |
//      `------------------------------- the same --------------------------------------------'
//
// Owns: the windows, or the session's own registrations.
// Contexts: the event loop's thread. Callbacks run from completions, or at once when there is
// nothing to wait for.
// Lifetime: not destroyed while binding or releasing, unless both endpoints are stopped. The order
// of an end by force: stop the endpoints, drop_windows(), destroy the endpoints, destroy this. A
// registration under way ends later, and nobody learns its key.
// Failure: a bind that fails takes its QP down, and so the session.
#pragma once

#include <array>
#include <vector>

#include "core/result.hpp"
#include "target/connect_request.hpp"
#include "target/export_registry.hpp"
#include "target/types.hpp"
#include "verbs/endpoint.hpp"

namespace smc {

struct GrantContext {
    ExportEntry::Device device;
    std::shared_ptr<ibv_pd> own_pd; // of the session; null where its QPs are in the device's
    std::array<verbs::Endpoint*, kQpRoles> endpoints; // by QpRole
    std::uint64_t extent_max;
};

class RegionGrant {
public:
    RegionGrant(const GrantContext& context, ExportEntry& entry);

    // The grant, now or when the keys are there. May be called again.
    void obtain(Done<Grant> done);
    // done: the keys are dead. May be called again.
    void release(Done<void> done);
    // The endpoints are stopped: nothing completes any more. Waiting callbacks are answered.
    void drop_windows();

    [[nodiscard]] Keys keys() const { return keys_; }
    [[nodiscard]] bool released() const { return state_ == State::released; }

private:
    enum class State { idle, registering, binding, ready, releasing, released };
    struct Window {
        verbs::Mw mw;
        QpRole role;
        std::size_t extent = 0; // index
        std::uint32_t rkey = 0;
        bool bound = false;
    };

    void start();
    template <class T>
    Done<T> when_alive(Done<T> done) const;
    void registered(Result<void> result);
    Result<void> allocate_windows();
    void post_binds();
    void bound();
    void start_release();
    void finish_release();
    void answer_grants(const Result<Grant>& result);
    [[nodiscard]] Grant make_grant() const;
    [[nodiscard]] unsigned access_of(QpRole role) const;
    [[nodiscard]] bool atomics() const;

    GrantContext context_;
    ExportEntry& entry_;
    Keys keys_;
    State state_ = State::idle;
    std::size_t outstanding_ = 0;
    Result<void> outcome_;
    const Registered* registered_ = nullptr;
    Registered own_;              // Keys::mr
    std::vector<Window> windows_; // Keys::window
    std::vector<smcfs_extent> extents_;
    std::vector<Done<Grant>> grant_waiters_;
    std::vector<Done<void>> release_waiters_;
    // Watched by a registration under way: expires when its outcome is of no more use.
    std::shared_ptr<int> alive_ = std::make_shared<int>(0);
};

} // namespace smc
