// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// The kernel module, as the rest of the daemon sees it (include/uapi/linux/smcfs.h).
//
//   module loads -> HELLO on the upcall socket -> up, with what the kernel knows already
//   module goes, or a socket breaks            -> down; tried again when the family comes back
//   module goes and comes between two looks    -> down, then up
//
// Owns: three netlink sockets: requests, upcalls, events; and one that watches the family.
// Contexts: the loop's thread. Requests are executed by the kernel within the send: they wait for
// no network, except detach and revoke, which may, and run on helper threads with sockets of their
// own.
// Failure: every request returns the kernel's errno and text; ENODEV while the link is down.
#pragma once

#include <optional>

#include "core/result.hpp"
#include "core/workers.hpp"
#include "event_loop.hpp"
#include "kernel/genl.hpp"
#include "target/types.hpp"

namespace smc {

using RegionId = std::uint64_t;

struct KernelSession {
    SessionId session = 0;
    std::string node;
    smcfs_session_state state = SMCFS_SESSION_UNSPEC;
    int error = 0;
    std::string reason;
    std::string device;
};

struct KernelRegion {
    RegionId region = 0;
    std::string node;
    std::string name;
    smcfs_region_state state = SMCFS_REGION_UNSPEC;
    int error = 0;
    std::string reason;
    Generation generation = 0; // 0: was never bound
    SessionId session = 0;     // 0: none
    bool writer = false;       // this node holds, or asks for, the writing right
};

struct SessionConnect {
    SessionId session = 0;
    std::string node;
    std::string address;
    std::uint16_t port = 0;
    std::optional<std::string> source_address;
    Token token_read{};
    Token token_bulk{};
    std::uint32_t request_timeout_ms = 0;
    std::uint32_t connect_timeout_ms = 0;
};

struct RegionAttach {
    std::string node;
    std::string name;
    SessionId session = 0;
    Grant grant;
};

class KernelEvents {
public:
    virtual ~KernelEvents() = default;
    // The kernel listens to this daemon now. What it holds from before is in sessions() and
    // regions().
    virtual void kernel_up() = 0;
    // The module is gone, and all it knew with it.
    virtual void kernel_down() = 0;
    // Events were lost: read sessions() and regions() anew.
    virtual void kernel_events_lost() = 0;
    virtual void session_event(const KernelSession& session) = 0;
    virtual void region_event(const KernelRegion& region) = 0;
    virtual void upcall_bind(const std::string& node, const std::string& name) = 0;
    virtual void upcall_list(const std::string& node, std::uint64_t cookie) = 0;
    virtual void upcall_writer(RegionId region, const std::string& node,
                               const std::string& name) = 0;
    virtual void upcall_writer_release(RegionId region, const std::string& node,
                                       const std::string& name) = 0;
};

class KernelLink {
public:
    // Without the module the link is down and waits for it.
    static Result<std::unique_ptr<KernelLink>> create(EventLoop& loop, KernelEvents& events);
    KernelLink(const KernelLink&) = delete;
    KernelLink& operator=(const KernelLink&) = delete;
    ~KernelLink();

    [[nodiscard]] bool up() const { return requests_.has_value(); }
    // Why it is down, for `status`.
    [[nodiscard]] const std::string& why_down() const { return why_down_; }

    Result<void> peer_add(const std::string& node);
    Result<void> peer_del(const std::string& node);
    Result<std::vector<std::string>> peers();
    Result<std::vector<KernelSession>> sessions();
    Result<std::vector<KernelRegion>> regions();

    Result<void> session_connect(const SessionConnect& connect);
    Result<void> session_del(SessionId session);
    Result<RegionId> region_attach(const RegionAttach& attach);
    // What is of a higher origin stays as it is.
    Result<void> region_set(RegionId region, const RegionParams& params, smcfs_origin origin);
    Result<void> bind_fail(const std::string& node, const std::string& name, int error);
    Result<void> writer_result(RegionId region, int error);
    Result<void> list_result(std::uint64_t cookie, int error,
                             const std::vector<std::string>& names);

    // done: bytes discarded. Flushes, for as long as that takes.
    void region_detach(RegionId region, bool force, const Done<std::uint64_t>& done);
    void region_revoke(RegionId region, const Done<std::uint64_t>& done);

private:
    KernelLink(EventLoop& loop, KernelEvents& events) : loop_(loop), events_(events) {}
    void on_family();
    void try_up();
    Result<void> bring_up();
    void go_down(const std::string& why);
    void on_upcalls();
    void on_events();
    void dispatch_upcall(std::uint8_t cmd, const kernel::Attributes& attributes);
    void dispatch_event(std::uint8_t cmd, const kernel::Attributes& attributes);
    Result<void> call(kernel::Msg message, const kernel::GenlSocket::Message& on_reply = {});
    void call_on_thread(smcfs_cmd cmd, RegionId region, std::uint32_t flags,
                        const Done<std::uint64_t>& done);

    // A node that is dead holds up its own removals for as long as the kernel's deadlines: many at
    // a time, so that it holds up no other's.
    static constexpr unsigned kRemovalsMax = 256;
    static constexpr std::size_t kRemovalsWaitingMax = 65536;

    EventLoop& loop_;
    KernelEvents& events_;
    std::optional<kernel::FamilyWatch> watch_;
    EventLoop::Source watch_source_;
    EventLoop::Source retry_timer_;
    std::optional<kernel::GenlSocket> requests_; // set exactly while the link is up
    std::optional<kernel::GenlSocket> upcalls_;
    std::optional<kernel::GenlSocket> event_socket_;
    EventLoop::Source upcall_source_;
    EventLoop::Source event_source_;
    std::string why_down_;
    Workers removals_{kRemovalsMax, kRemovalsWaitingMax};
    // Expires with this; the loop's thread alone looks at it.
    std::shared_ptr<int> alive_ = std::make_shared<int>(0);
};

} // namespace smc
