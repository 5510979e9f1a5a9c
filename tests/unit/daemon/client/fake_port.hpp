// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// A world for the decisions of Binder and SessionKeeper: it notes what they ask for, and the test
// says what comes of it. Time stands still unless the test moves it.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "binder.hpp"

namespace smc::test {

class FakePort final : public NodePort {
public:
    std::vector<std::string> asked;      // since the last take()
    bool link = false;                   // the control connection is up
    std::set<SessionId> kernel_sessions; // that the kernel knows
    std::optional<Error> connect_error;  // of kernel_connect
    std::optional<Error> attach_error;   // of kernel_attach
    RegionId next_region = 100;
    std::map<std::string, RegionId> attached;
    std::map<Timer, Milliseconds> timers;
    Clock::time_point time{};

    std::vector<std::string> take() { return std::exchange(asked, {}); }
    bool asked_for(const std::string& what) const
    {
        return std::find(asked.begin(), asked.end(), what) != asked.end();
    }

    [[nodiscard]] bool link_up() const override { return link; }
    void link_open() override { note("link_open"); }
    void session_open(SessionId session) override { note("open {}", session); }
    void session_close(SessionId session) override { note("close {}", session); }
    void session_adopt(SessionId session) override { note("adopt {}", session); }
    void grant(SessionId session, const std::string& name) override
    {
        note("grant {} {}", session, name);
    }
    void grant_release(SessionId session, const std::string& name) override
    {
        note("release {} {}", session, name);
    }
    void writer_acquire(SessionId session, const std::string& name) override
    {
        note("acquire {} {}", session, name);
    }
    void writer_release(SessionId session, const std::string& name) override
    {
        note("writer_release {} {}", session, name);
    }
    Result<void> kernel_connect(SessionId session, const SessionOffer&, const std::string& address,
                                Milliseconds) override
    {
        note("connect {} {}", session, address);
        if (connect_error)
            return tl::unexpected<Error>(*connect_error);
        kernel_sessions.insert(session);
        return {};
    }
    Result<void> kernel_delete(SessionId session) override
    {
        note("delete {}", session);
        if (kernel_sessions.erase(session) == 0)
            return fail(ENOENT, "no such session");
        return {};
    }
    Result<RegionId> kernel_attach(SessionId session, const std::string& name,
                                   const Grant&) override
    {
        note("attach {} {}", session, name);
        if (attach_error)
            return tl::unexpected<Error>(*attach_error);
        if (!attached.contains(name))
            attached[name] = next_region++;
        return attached[name];
    }
    void kernel_bind_fail(const std::string& name, int error) override
    {
        note("bind_fail {} {}", name, error);
    }
    void kernel_revoke(RegionId region) override { note("revoke {}", region); }
    void kernel_writer_result(RegionId region, int error) override
    {
        note("writer_result {} {}", region, error);
    }
    void arm(Timer timer, Milliseconds delay) override { timers[timer] = delay; }
    void disarm(Timer timer) override { timers.erase(timer); }
    [[nodiscard]] Clock::time_point now() const override { return time; }
    double random() override { return 1.0; }
    SessionId new_session_id() override { return ++last_session_; }

private:
    template <class... Arguments>
    void note(fmt::format_string<Arguments...> format, Arguments&&... arguments)
    {
        asked.push_back(fmt::format(format, std::forward<Arguments>(arguments)...));
    }
    SessionId last_session_ = 0;
};

// A binder on a fake port, and what the world answers, in few words.
struct World {
    FakePort port;
    Binder binder{"gpu1", port, ClientTimes{}};

    SessionKeeper& keeper() { return binder.keeper(); }

    void link_comes_up()
    {
        port.link = true;
        keeper().on_link_up();
    }
    void link_is_lost()
    {
        port.link = false;
        keeper().on_link_lost({ECONNRESET, "lost"});
    }
    void offer(SessionId session, std::vector<std::string> addresses = {"10.0.0.1"})
    {
        keeper().on_offer(session, SessionOffer{std::move(addresses), 7451, {}, {}});
    }
    void kernel_says(SessionId session, smcfs_session_state state, int error = 0)
    {
        keeper().on_kernel_event({session, "gpu1", state, error, error != 0 ? "broken" : "", ""});
    }
    void granted(SessionId session, const std::string& name, Generation generation = 7)
    {
        Grant grant;
        grant.generation = generation;
        grant.size = 4096;
        binder.on_grant(session, name, grant);
    }
    // Name "r" is bound under session 1.
    void bind_first()
    {
        binder.bind_for_kernel("r");
        link_comes_up();
        offer(1);
        kernel_says(1, SMCFS_SESSION_LIVE);
        granted(1, "r");
        port.take();
    }
    void region_fails(const std::string& name)
    {
        binder.on_region_event({port.attached.at(name), "gpu1", name, SMCFS_REGION_FAILED});
        port.attached.erase(name);
    }
};

using Asked = std::vector<std::string>;

} // namespace smc::test
