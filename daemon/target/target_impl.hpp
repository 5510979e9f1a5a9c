// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// What is behind Target. target.cpp has its life and its devices, target_exports.cpp its exports,
// target_sessions.cpp its sessions.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "core/log.hpp"
#include "core/workers.hpp"
#include "target/export_registry.hpp"
#include "target/listener.hpp"
#include "target/session.hpp"
#include "target/target.hpp"

namespace smc {

class Target::Impl {
    friend class Target;

public:
    Impl(EventLoop& loop, TargetOptions options, TargetEvents& events);
    ~Impl();
    Impl(const Impl&) = delete;
    Impl& operator=(const Impl&) = delete;
    Result<void> start();

    // --- target_exports.cpp ---
    void add_export(ExportSpec spec, Done<ExportInfo> done);
    void remove_export(const std::string& name, Done<void> done);
    [[nodiscard]] ExportInfo info(const ExportEntry& entry) const;

    // --- target.cpp ---
    [[nodiscard]] std::vector<RdmaPortInfo> rdma_ports() const;
    Result<std::vector<std::string>> offered_addresses();
    Result<void> listen();
    Result<ExportEntry::Device> device(const std::string& name);
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

private:
    // A file system that hangs holds up those who use it.
    static constexpr unsigned kOpenersMax = 64;
    static constexpr std::size_t kOpeningsMax = 1024;
    static constexpr unsigned kOpeningsPerUid = 8; // of others than root

    // An export whose file is being opened, by a thread that may never end.
    struct Opening {
        std::uint64_t id = 0;
        Done<ExportInfo> done;
        std::vector<std::function<void()>> grants; // asked for meanwhile: ask again
    };
    struct Preparation; // of an export, on all devices

    EventLoop& loop_;
    const TargetOptions options_;
    TargetEvents& events_;
    // In this order: destroyed from the end. Ids of sessions use the listener's channel.
    std::unique_ptr<Listener> listener_;
    std::map<std::string, ExportEntry::Device> devices_;
    ExportRegistry exports_;
    std::optional<memory::Memory> probe_memory_;
    std::map<SessionId, std::unique_ptr<Session>> sessions_;
    Registrar registrar_;                     // before what its callbacks touch
    std::map<std::string, Opening> openings_; // by name
    std::map<uid_t, unsigned> openings_of_;   // as many, by who asked
    Workers openers_{kOpenersMax, kOpeningsMax};
    log::RateLimit reject_log_;
    std::shared_ptr<int> alive_ =
        std::make_shared<int>(0); // shared with nobody: watched by defer()

    Result<void> open_file(ExportSpec spec, const Done<ExportInfo>& done);
    void opened(std::uint64_t id, const ExportSpec& spec, Result<memory::Memory> memory);
    Done<ExportInfo> end_opening(const std::string& name);
    Result<void> add_memory(const ExportSpec& spec, Result<memory::Memory> memory,
                            const Done<ExportInfo>& done);
    void prepared(const Preparation& preparation);
    Result<Session*> add_session(SessionParams params);
    void erase_session(SessionId id);
    void on_connect(IncomingConnection incoming);
    Result<void> connect(IncomingConnection& incoming);
    void on_timer(Session& session);
    void release_writers(SessionId id);
    void start_removal(ExportEntry& entry, Done<void> done);
    void finish_removal(const std::string& name, const Done<void>& done);
};

} // namespace smc
