// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// The target side: memory that this node exports, and the sessions of client nodes on it.
//
// Owns: exported memory, RDMA devices, the listener on the RDMA port, sessions with their QPs,
// memory windows and registrations.
// Contexts: the event loop's thread only. Callbacks and events come from the loop, never from within
// the call that caused them, so that the caller may call back at once.
// Lifetime: destroying the Target disconnects and destroys all QPs first; callbacks that have not
// run by then are dropped. The control connections, which know which client speaks, stay with the
// caller: it claims a session by opening or adopting it and disowns it when the connection ends.
// Failure: without an RDMA device the Target lives, offers no address and says why in its errors; a
// device that appears or disappears later is followed.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.hpp"
#include "event_loop.hpp"
#include "target/types.hpp"

namespace smc {

struct TargetOptions {
    std::uint16_t port = 7451;
    std::vector<std::string> devices;   // serve on these only; empty: all
    std::vector<std::string> addresses; // offer these, in this order; empty: those of the devices
    bool windows = true;                // false: an MR per session, also where windows exist
    std::uint64_t extent_bytes_max = 0; // longest extent of a grant; 0: what the device can
    std::uint32_t sessions_max = 1024;
    std::uint32_t exports_max = 4096;
};

class TargetEvents {
public:
    virtual ~TargetEvents() = default;
    // The keys that the session had for this memory are dead. Once per session that had a grant,
    // before the callback of remove_export().
    virtual void revoked(SessionId session, const std::string& name, Generation generation) = 0;
    // Both QPs of a session that was not closed are destroyed. It stays known, with its writing
    // rights, until it is closed, or forgotten 60 s after nobody claims it any more.
    virtual void session_lost(SessionId session, const std::string& reason) = 0;
};

class Target {
public:
    static Result<std::unique_ptr<Target>> create(EventLoop& loop, TargetOptions options,
                                                  TargetEvents& events);
    Target(const Target&) = delete;
    Target& operator=(const Target&) = delete;
    ~Target();

    // done: once its memory is pinned, which may take long; grants of it wait for that, too. EEXIST:
    // the name, or one that it is a directory of or lies below, is exported. EINVAL: bad name, zero
    // size, bad range. EFBIG. ENOMEM, EPERM: names the limit that is too low. ECANCELED: it was
    // removed meanwhile.
    void add_export(ExportSpec spec, Done<ExportInfo> done);
    // done: all keys are dead, memory is unregistered and unmapped. ENOENT at once. Of an export
    // that is not ready yet: as soon as its registration could be stopped.
    void remove_export(const std::string& name, Done<void> done);
    // Of grants from now on; nothing where there is no such export.
    void set_hints(const std::string& name, const RegionParams& hints);
    [[nodiscard]] std::vector<ExportInfo> exports() const;
    [[nodiscard]] std::optional<ExportInfo> find_export(std::string_view name) const;
    // The memory itself, for a process of this node that the caller has authorized.
    Result<Fd> export_fd(const std::string& name) const;

    // EEXIST: the id is in use. ENODEV: no RDMA address. EUSERS: sessions_max.
    Result<SessionOffer> session_open(SessionId session, const std::string& node);
    Result<ProbeOffer> probe_open(const std::string& node);
    // done: both QPs are destroyed. Of an unknown session: at once, without error.
    void session_close(SessionId session, Done<void> done);
    // A new control connection takes over. ESTALE: unknown or lost: open a new one.
    Result<void> session_adopt(SessionId session);
    // Its control connection ended. From now on the target itself checks that the client lives.
    void session_disown(SessionId session);

    // ENOENT, EISDIR, ENOTCONN, ESTALE as in docs/protocol.md. Of a granted region: the same again.
    void grant(SessionId session, const std::string& name, Done<Grant> done);
    // done: keys are dead. The writing right is released. Of no grant: at once, without error.
    void grant_release(SessionId session, const std::string& name, Done<void> done);

    // EBUSY names the node that holds it. EROFS: exported read-only. Idempotent. ENOENT, ESTALE.
    Result<void> writer_acquire(SessionId session, const std::string& name);
    Result<void> writer_release(SessionId session, const std::string& name);

    [[nodiscard]] std::vector<std::string> names() const;
    [[nodiscard]] std::vector<SessionInfo> sessions() const;
    [[nodiscard]] std::vector<RdmaPortInfo> rdma_ports() const;

private:
    class Impl;
    explicit Target(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

} // namespace smc
