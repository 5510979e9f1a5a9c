// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// A generic netlink socket of the family smcfs.
//
// Contexts: each socket is used by one thread.
// Failure: a request fails with the kernel's errno and, where it gives one, its text.
#pragma once

#include <netlink/genl/genl.h>
#include <netlink/netlink.h>

#include <array>
#include <functional>
#include <memory>

#include <linux/smcfs.h>

#include "core/result.hpp"

namespace smc::kernel {

struct MsgDeleter {
    void operator()(nl_msg* message) const { nlmsg_free(message); }
};
using Msg = std::unique_ptr<nl_msg, MsgDeleter>;

// The attributes of one message by type; absent ones are null.
class Attributes {
public:
    // EPROTO when the message is malformed.
    static Result<Attributes> parse(const nlmsghdr* header);

    [[nodiscard]] bool has(smcfs_attr type) const { return table_[type] != nullptr; }
    // 0 and "" when absent or of another length.
    [[nodiscard]] std::uint64_t u64(smcfs_attr type) const;
    [[nodiscard]] std::uint32_t u32(smcfs_attr type) const;
    [[nodiscard]] std::uint8_t u8(smcfs_attr type) const;
    [[nodiscard]] std::string text(smcfs_attr type) const;

private:
    std::array<nlattr*, SMCFS_A_MAX + 1> table_{};
};

class GenlSocket {
public:
    // cmd and attributes of a message that is no answer.
    using Message = std::function<void(std::uint8_t cmd, const Attributes& attributes)>;

    // ENOENT: the family is not there, the module is not loaded.
    static Result<GenlSocket> open();

    // Starts a message; attributes are put with the nla_put family.
    Msg request(smcfs_cmd cmd, int flags = 0) const;
    // Sends it and collects the answer. The kernel has answered when the send returns, so this
    // waits for nothing but the work of the kernel itself.
    Result<void> call(Msg message, const Message& on_reply = {});

    // For a socket whose messages are read from an event loop.
    Result<void> set_nonblocking();
    Result<void> join(const char* group);
    // Everything that has arrived. ENOBUFS: the kernel dropped messages.
    Result<void> receive(const Message& on_message);
    [[nodiscard]] int fd() const { return nl_socket_get_fd(socket_.get()); }
    [[nodiscard]] int family() const { return family_; }

private:
    struct SocketDeleter {
        void operator()(nl_sock* socket) const { nl_socket_free(socket); }
    };
    GenlSocket(nl_sock* socket, int family) : socket_(socket), family_(family) {}

    std::unique_ptr<nl_sock, SocketDeleter> socket_;
    int family_;
};

// Tells when the family comes and goes, whether it is there now or not.
class FamilyWatch {
public:
    static Result<FamilyWatch> open();
    // What the messages that have arrived say at most: some were lost, a family of the name came or
    // went, the one with this id went.
    enum class Change { none, unsure, other, went };
    Change read(int family);
    [[nodiscard]] int fd() const { return nl_socket_get_fd(socket_.get()); }

private:
    struct SocketDeleter {
        void operator()(nl_sock* socket) const { nl_socket_free(socket); }
    };
    explicit FamilyWatch(nl_sock* socket) : socket_(socket) {}
    std::unique_ptr<nl_sock, SocketDeleter> socket_;
};

} // namespace smc::kernel
