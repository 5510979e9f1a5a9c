// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
#include <catch2/catch.hpp>

#include <set>
#include <utility>

extern "C" {
#include "ep_state.h"
}

namespace {

using EpEdges = std::set<std::pair<smcfs_ep_state, smcfs_ep_state>>;
using SessionEdges = std::set<std::pair<smcfs_session_state, smcfs_session_state>>;

// Values past the enum are asked for too: what is no state has no edge.
EpEdges ep_edges()
{
    EpEdges edges;
    for (int from = 0; from <= SMCFS_EP_NR; ++from)
        for (int to = 0; to <= SMCFS_EP_NR; ++to) {
            auto f = static_cast<smcfs_ep_state>(from);
            auto t = static_cast<smcfs_ep_state>(to);
            if (smcfs_ep_may(f, t))
                edges.emplace(f, t);
        }
    return edges;
}

SessionEdges session_edges()
{
    SessionEdges edges;
    for (int from = 0; from <= __SMCFS_SESSION_STATE_MAX; ++from)
        for (int to = 0; to <= __SMCFS_SESSION_STATE_MAX; ++to) {
            auto f = static_cast<smcfs_session_state>(from);
            auto t = static_cast<smcfs_session_state>(to);
            if (smcfs_session_may(f, t))
                edges.emplace(f, t);
        }
    return edges;
}

} // namespace

TEST_CASE("an endpoint has these edges and no others", "[ep_state]")
{
    CHECK(ep_edges() == EpEdges{
                            {SMCFS_EP_NEW, SMCFS_EP_CONNECTING},
                            {SMCFS_EP_NEW, SMCFS_EP_DEAD},
                            {SMCFS_EP_CONNECTING, SMCFS_EP_LIVE},
                            {SMCFS_EP_CONNECTING, SMCFS_EP_DRAINING},
                            {SMCFS_EP_LIVE, SMCFS_EP_DRAINING},
                            {SMCFS_EP_DRAINING, SMCFS_EP_DEAD},
                        });
}

TEST_CASE("a session has these edges and no others", "[ep_state]")
{
    CHECK(session_edges() == SessionEdges{
                                 {SMCFS_SESSION_UNSPEC, SMCFS_SESSION_CONNECTING},
                                 {SMCFS_SESSION_CONNECTING, SMCFS_SESSION_LIVE},
                                 {SMCFS_SESSION_CONNECTING, SMCFS_SESSION_DRAINING},
                                 {SMCFS_SESSION_LIVE, SMCFS_SESSION_DRAINING},
                                 {SMCFS_SESSION_DRAINING, SMCFS_SESSION_DEAD},
                             });
}

TEST_CASE("an endpoint that was connecting or live is drained before it is dead", "[ep_state]")
{
    CHECK_FALSE(smcfs_ep_may(SMCFS_EP_CONNECTING, SMCFS_EP_DEAD));
    CHECK_FALSE(smcfs_ep_may(SMCFS_EP_LIVE, SMCFS_EP_DEAD));
}

TEST_CASE("nothing leads back to a live endpoint or session", "[ep_state]")
{
    for (auto from : {SMCFS_EP_DRAINING, SMCFS_EP_DEAD})
        CHECK_FALSE(smcfs_ep_may(from, SMCFS_EP_LIVE));
    for (auto from : {SMCFS_SESSION_DRAINING, SMCFS_SESSION_DEAD})
        CHECK_FALSE(smcfs_session_may(from, SMCFS_SESSION_LIVE));
}
