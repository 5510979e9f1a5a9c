// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
#include "world.hpp"

#include <chrono>
#include <cstring>
#include <thread>

#include <arpa/inet.h>
#include <linux/netlink.h>

namespace smc::test {

namespace {

constexpr int kConnectMs = 20000;
constexpr int kRequestMs = 20000; // guests share processors with other work
constexpr int kGoneMs = 60000;

// Polls what has no event for this socket.
template <typename Condition>
bool eventually(int timeout_ms, Condition condition)
{
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(timeout_ms);
    while (!condition()) {
        if (std::chrono::steady_clock::now() > end)
            return false;
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return true;
}

Bytes address_bytes(const std::string& address, std::uint16_t port)
{
    sockaddr_in v4{};
    sockaddr_in6 v6{};
    v4.sin_family = AF_INET;
    v4.sin_port = port;
    v6.sin6_family = AF_INET6;
    v6.sin6_port = port;
    std::span<const std::uint8_t> bytes = bytes_of(v4);
    if (inet_pton(AF_INET6, address.c_str(), &v6.sin6_addr) == 1)
        bytes = bytes_of(v6);
    else if (inet_pton(AF_INET, address.c_str(), &v4.sin_addr) != 1)
        die("'" + address + "' is no address");
    return {bytes.begin(), bytes.end()};
}

} // namespace

std::vector<smcfs_extent> one_extent(std::uint64_t size)
{
    return {{.offset = 0, .length = size, .addr = 0x10000, .rkey_read = 1, .rkey_bulk = 2}};
}

std::span<const std::uint8_t> bytes_of(const std::vector<smcfs_extent>& extents)
{
    return {reinterpret_cast<const std::uint8_t*>(extents.data()),
            extents.size() * sizeof(smcfs_extent)};
}

World::World(const std::string& address)
    : target_(address), address_(address_bytes(address, target_.port()))
{
    family = control.family(SMCFS_GENL_NAME, SMCFS_GENL_MCGRP_EVENTS, &events).value_or(0);
    if (!family || !events)
        die("no generic netlink family smcfs: load the module");
    for (const char* node : {kNode, kOtherNode})
        if (ask(peer(SMCFS_CMD_PEER_ADD, node)).error != 0)
            die("cannot add a peer: this wants root, and a module that nobody uses");
    connect(kSession, kNode);
}

void World::connect(std::uint64_t session, const char* node)
{
    Answer answer = ask(session_connect(session, node));
    if (answer.error != 0)
        leave(kRefuted, "SESSION_CONNECT: " + answer.why, answer.error.value_or(0));
    if (!eventually(kConnectMs, [&] { return live(session); }))
        die("the session to the target in this program does not become LIVE");
}

bool World::live(std::uint64_t session)
{
    for (const Received& message : control.dump(addressed(Message(SMCFS_CMD_SESSION_GET))).messages)
        if (message.number(SMCFS_A_SESSION_ID) == session)
            return message.number(SMCFS_A_STATE) == SMCFS_SESSION_LIVE;
    return false;
}

std::vector<std::uint64_t> World::ids(int dump_command, int attr)
{
    std::vector<std::uint64_t> found;
    for (const Received& message : control.dump(addressed(Message(dump_command))).messages)
        found.push_back(message.number(attr).value_or(0));
    return found;
}

void World::clean(bool keep_session)
{
    for (std::uint64_t id : ids(SMCFS_CMD_REGION_GET, SMCFS_A_REGION_ID))
        ask(region(SMCFS_CMD_REGION_DETACH, id).u32(SMCFS_A_FLAGS, SMCFS_DETACH_FORCE));
    auto others = [&] {
        std::vector<std::uint64_t> found = ids(SMCFS_CMD_SESSION_GET, SMCFS_A_SESSION_ID);
        std::erase_if(found, [&](std::uint64_t id) { return keep_session && id == kSession; });
        return found;
    };
    for (std::uint64_t id : others())
        ask(Message(SMCFS_CMD_SESSION_DEL).u64(SMCFS_A_SESSION_ID, id));
    if (!eventually(kGoneMs, [&] { return others().empty(); }))
        leave(kRefuted, "a deleted session does not go");
}

void World::finish()
{
    clean(false);
    for (const Received& message : control.dump(addressed(Message(SMCFS_CMD_PEER_GET))).messages)
        ask(peer(SMCFS_CMD_PEER_DEL, message.text(SMCFS_A_NODE).value_or("")));
    for (int command : {SMCFS_CMD_REGION_GET, SMCFS_CMD_SESSION_GET, SMCFS_CMD_PEER_GET}) {
        Answer rest = control.dump(addressed(Message(command)));
        if (rest.error != 0 || !rest.messages.empty())
            leave(kRefuted, "something is left in dump " + std::to_string(command));
    }
}

Message World::attach(const std::string& name, std::uint64_t size) const
{
    Message message(SMCFS_CMD_REGION_ATTACH);
    message.text(SMCFS_A_NODE, kNode)
        .text(SMCFS_A_NAME, name)
        .u64(SMCFS_A_SESSION_ID, kSession)
        .u64(SMCFS_A_GENERATION, 7)
        .u64(SMCFS_A_SIZE, size)
        .u32(SMCFS_A_MODE, 0640)
        .u32(SMCFS_A_UID, 0)
        .u32(SMCFS_A_GID, 0)
        .u32(SMCFS_A_WRITERS, SMCFS_WRITERS_EXCLUSIVE)
        .u32(SMCFS_A_FLAGS, 0)
        .raw(SMCFS_A_EXTENTS, bytes_of(one_extent(size)));
    return addressed(message);
}

Message World::session_connect(std::uint64_t session, const char* node) const
{
    const std::uint8_t token[SMCFS_TOKEN_BYTES] = {1, 2, 3};
    Message message(SMCFS_CMD_SESSION_CONNECT);
    message.u64(SMCFS_A_SESSION_ID, session)
        .text(SMCFS_A_NODE, node)
        .raw(SMCFS_A_DST_ADDR, address_)
        .raw(SMCFS_A_TOKEN_READ, token)
        .raw(SMCFS_A_TOKEN_BULK, token)
        .u32(SMCFS_A_REQUEST_TIMEOUT_MS, kRequestMs)
        .u32(SMCFS_A_CONNECT_TIMEOUT_MS, kConnectMs);
    return addressed(message);
}

sockaddr_in World::target4(std::uint16_t port) const
{
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(0xc0000201); // 192.0.2.1
    return address;
}

Message World::region(int command, std::uint64_t id)
{
    return Message(command).u64(SMCFS_A_REGION_ID, id);
}

Message World::peer(int command, const std::string& node)
{
    return Message(command).text(SMCFS_A_NODE, node);
}

} // namespace smc::test
