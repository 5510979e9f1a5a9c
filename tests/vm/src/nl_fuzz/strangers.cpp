// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// Requests of those who may not. Each kind of stranger is a child process, since there is no way
// back from giving rights up; its exit code is the number of expectations that were not met.
#include "cases.hpp"

#include <cerrno>
#include <cstdio>

#include <linux/netlink.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

namespace smc::test {

namespace {

constexpr uid_t kNobodyUid = 65534;

template <typename Body>
int in_child(const char* who, Body body)
{
    std::fflush(stdout);
    pid_t child = fork();
    if (child < 0)
        die("fork", errno);
    if (child == 0) {
        int failed = body();
        std::fflush(stdout);
        _exit(failed > 100 ? 100 : failed);
    }
    int status = 0;
    if (waitpid(child, &status, 0) != child)
        die("waitpid", errno);
    return expect(who, WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

// Every command that changes something is refused, every other one answered.
int ask_all(const World& world, Socket& socket)
{
    int failed = 0;
    for (int command = SMCFS_CMD_DAEMON_HELLO; command <= SMCFS_CMD_LIST_RESULT; command++)
        failed += expect("stranger, command " + std::to_string(command),
                         socket.ask(world.addressed(Message(command))), EPERM);
    failed += expect("stranger, a right region", socket.ask(world.attach("stranger")), EPERM);
    Answer info = socket.ask(world.addressed(Message(SMCFS_CMD_INFO_GET)));
    failed += expect("stranger, info", info, 0);
    failed += expect("version in info",
                     info.messages.size() == 1 && info.messages[0].text(SMCFS_A_VERSION));
    for (int command :
         {SMCFS_CMD_PEER_GET, SMCFS_CMD_SESSION_GET, SMCFS_CMD_REGION_GET, SMCFS_CMD_LATENCY_GET}) {
        Answer dump = socket.dump(world.addressed(Message(command)));
        failed += expect("stranger, dump", dump.error == 0 && !dump.messages.empty());
        if (command == SMCFS_CMD_LATENCY_GET)
            failed += expect("all latencies of each region",
                             dump.messages.size() % SMCFS_LATENCY_MAX == 0);
        for (const Received& message : dump.messages)
            failed += expect("no token in a dump", !message.number(SMCFS_A_TOKEN_READ) &&
                                                       !message.number(SMCFS_A_TOKEN_BULK) &&
                                                       !message.text(SMCFS_A_EXTENTS));
    }
    return failed;
}

int as_nobody(const World& world)
{
    if (setgid(kNobodyUid) || setuid(kNobodyUid))
        die("giving root up", errno);
    Socket socket;
    int failed = ask_all(world, socket);
    return failed + expect("stranger joins the events", socket.join(world.events) == EPERM);
}

// A socket that root opened, used by somebody else: the right of both is needed.
int with_borrowed_socket(const World& world)
{
    Socket socket;
    if (setgid(kNobodyUid) || setuid(kNobodyUid))
        die("giving root up", errno);
    return expect("borrowed socket", socket.ask(world.attach("stranger")), EPERM);
}

// Root of a user namespace of its own, in the first network namespace.
int as_root_of_namespace(const World& world)
{
    if (unshare(CLONE_NEWUSER))
        die("unshare(CLONE_NEWUSER)", errno);
    Socket socket;
    return expect("root of a user namespace", socket.ask(world.attach("stranger")), EPERM);
}

// In another network namespace there is no such family, not even by its number.
int in_other_network(const World& world)
{
    if (unshare(CLONE_NEWNET))
        die("unshare(CLONE_NEWNET)", errno);
    Socket socket;
    std::uint32_t group = 0;
    int failed = expect("family in another network namespace",
                        !socket.family(SMCFS_GENL_NAME, SMCFS_GENL_MCGRP_EVENTS, &group));
    Answer answer = socket.ask(world.addressed(Message(SMCFS_CMD_INFO_GET)));
    return failed + expect("another network namespace", answer.error == ENOENT);
}

} // namespace

int check_strangers(World& world)
{
    int failed = expect("a region to be seen", world.ask(world.attach("seen")), 0);
    failed += in_child("another user", [&] { return as_nobody(world); });
    failed +=
        in_child("another user with root's socket", [&] { return with_borrowed_socket(world); });
    failed += in_child("root of a user namespace", [&] { return as_root_of_namespace(world); });
    failed += in_child("another network namespace", [&] { return in_other_network(world); });
    world.clean(true);
    return failed;
}

} // namespace smc::test
