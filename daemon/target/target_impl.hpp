// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// What is behind Target. target.cpp has its life and its exports, target_sessions.cpp its sessions.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "core/log.hpp"
#include "target/export_registry.hpp"
#include "target/listener.hpp"
#include "target/session.hpp"
#include "target/target.hpp"

namespace smc {

class Target::Impl {
public:
    Impl(EventLoop& loop, TargetOptions options, TargetEvents& events);
    ~Impl();
    Impl(const Impl&) = delete;
    Impl& operator=(const Impl&) = delete;
    Result<void> start();

    // --- target.cpp ---
    Result<ExportInfo> add_export(ExportSpec spec);
    void remove_export(const std::string& name, Done<void> done);
    [[nodiscard]] ExportInfo info(const ExportEntry& entry) const;
    [[nodiscard]] std::vector<RdmaPortInfo> rdma_ports() const;
    Result<std::vector<std::string>> offered_addresses();
    Result<void> listen();
    Result<verbs::Device*> device(const std::string& name);
    [[nodiscard]] bool serves(const std::string& device) const;
    void device_removed(const std::string& name);

    // --- target_sessions.cpp ---
    Result<SessionOffer> session_open(SessionId id, const std::string& node);
    Result<ProbeOffer> probe_open(const std::string& node);
    void session_close(SessionId id, Done<void> done);
    Result<void> session_adopt(SessionId id);
    void session_disown(SessionId id);
    void grant(SessionId id, const std::string& name, Done<Grant> done);
    void grant_release(SessionId id, const std::string& name, Done<void> done);
    Result<void> writer_acquire(SessionId id, const std::string& name);
    Result<void> writer_release(SessionId id, const std::string& name);
    [[nodiscard]] std::vector<SessionInfo> session_infos() const;
    Result<Session*> require_session(SessionId id) const; // ESTALE: unknown or lost
    void lose(Session& session, const std::string& reason);

    // Runs from the loop, unless the Target is gone by then.
    void defer(std::function<void()> callback);
    template <class T>
    void answer(Done<T> done, Result<T> result)
    {
        defer([done = std::move(done), result = std::move(result)] { done(result); });
    }

    EventLoop& loop_;
    const TargetOptions options_;
    TargetEvents& events_;
    // In this order: destroyed from the end. Ids of sessions use the listener's channel.
    std::unique_ptr<Listener> listener_;
    std::map<std::string, std::unique_ptr<verbs::Device>> devices_;
    ExportRegistry exports_;
    std::optional<memory::Memory> probe_memory_;
    std::map<SessionId, std::unique_ptr<Session>> sessions_;
    log::RateLimit reject_log_;
    std::shared_ptr<int> alive_ =
        std::make_shared<int>(0); // shared with nobody: watched by defer()

private:
    Result<Session*> add_session(SessionParams params);
    void erase_session(SessionId id);
    void on_connect(IncomingConnection incoming);
    Result<void> connect(IncomingConnection& incoming);
    void on_timer(Session& session);
    void release_writers(SessionId id);
    void finish_removal(const std::string& name, const Done<void>& done);
};

} // namespace smc
