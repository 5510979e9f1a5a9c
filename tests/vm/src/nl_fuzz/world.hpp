/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* Copyright (c) 2026 The SMC authors */
// What requests need to mean something: peers, a target, a live session; and a request of each
// command that succeeds (or would, if the thing that it names existed).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <linux/smcfs.h>
#include <netinet/in.h>

#include "acceptor.hpp"
#include "socket.hpp"

namespace smc::test {

constexpr const char* kNode = "fuzz-node";       // has the live session
constexpr const char* kOtherNode = "fuzz-other"; // a peer without one
constexpr std::uint64_t kSession = 0x5e5510;

class World {
public:
    explicit World(const std::string& address);

    Socket control;
    std::uint16_t family = 0;
    std::uint32_t events = 0; // id of the multicast group

    Answer ask(Message message) { return control.ask(addressed(std::move(message))); }
    Message addressed(Message message) const
    {
        message.type = family;
        return message;
    }

    // Memory that every session can read and write from now on; returns its key.
    std::uint32_t share(std::span<std::uint8_t> memory) { return target_.share(memory); }
    // Starts it and waits until it is LIVE; dies if that does not happen.
    void connect(std::uint64_t session, const char* node);
    bool live(std::uint64_t session);
    std::vector<std::uint64_t> ids(int dump_command, int attr);
    // Deletes the sessions and regions that there are, but for kSession if it is kept. Waits for
    // the end of the sessions.
    void clean(bool keep_session);
    // clean() and the peers: afterwards the kernel knows nothing, else the claim is refuted.
    void finish();

    // Requests that are right.
    Message attach(const std::string& name, std::uint64_t size = 1 << 21) const;
    Message session_connect(std::uint64_t session, const char* node) const;
    sockaddr_in target4(std::uint16_t port) const; // an address that cannot be reached: TEST-NET
    static Message region(int command, std::uint64_t id);
    static Message peer(int command, const std::string& node);

private:
    Acceptor target_;
    Bytes address_; // of the target, with port
};

std::vector<smcfs_extent> one_extent(std::uint64_t size);
std::span<const std::uint8_t> bytes_of(const std::vector<smcfs_extent>& extents);
template <typename T>
std::span<const std::uint8_t> bytes_of(const T& value)
{
    return {reinterpret_cast<const std::uint8_t*>(&value), sizeof(value)};
}

} // namespace smc::test
