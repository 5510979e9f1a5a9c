// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
#include "companion.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>

#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

namespace smc::test {

namespace {

struct Reply {
    std::array<std::uint8_t*, 2> bases; // addresses of the other process
    char wrong[400];                    // empty: all went well
};

} // namespace

Companion::Companion(Shadow& shadow, const Paths& paths) : shadow_(shadow), paths_(paths) {}

Companion::~Companion()
{
    if (peer_.pid > 0) {
        kill(peer_.pid, SIGKILL);
        waitpid(peer_.pid, nullptr, 0);
    }
}

void Companion::serve(int fd)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    Agent agent(shadow_, paths_);
    std::string wrong;
    for (;;) {
        Reply reply{agent.bases(), {}};
        wrong.copy(reply.wrong, sizeof reply.wrong - 1);
        if (send(fd, &reply, sizeof reply, MSG_NOSIGNAL) != sizeof reply)
            std::_Exit(kUntested);
        Command command{};
        if (recv(fd, &command, sizeof command, 0) != sizeof command)
            std::_Exit(kPassed);
        wrong = agent.execute(command);
    }
}

void Companion::start(Agent* inherited)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        die("socketpair", errno);
    socket_ = Fd{pair[0]};
    Fd theirs{pair[1]};
    peer_.pid = fork();
    if (peer_.pid < 0)
        die("fork", errno);
    if (peer_.pid == 0) {
        socket_.reset();
        if (inherited)
            inherited->close_all();
        serve(theirs.get());
    }
    theirs.reset();
    std::string wrong = receive();
    if (!wrong.empty())
        die("the second process: " + wrong);
}

std::string Companion::receive()
{
    Reply reply{};
    ssize_t got = recv(socket_.get(), &reply, sizeof reply, 0);
    if (got == sizeof reply) {
        peer_.bases = reply.bases;
        return reply.wrong;
    }
    int status = 0;
    pid_t pid = std::exchange(peer_.pid, 0);
    waitpid(pid, &status, 0);
    if (WIFSIGNALED(status))
        return std::string("the second process died of ") + strsignal(WTERMSIG(status));
    return "the second process left with status " + std::to_string(WEXITSTATUS(status));
}

std::string Companion::execute(const Command& command)
{
    if (send(socket_.get(), &command, sizeof command, MSG_NOSIGNAL) != sizeof command)
        return "the second process is gone";
    return receive();
}

std::string Companion::kill_and_restart(Agent* inherited)
{
    kill(peer_.pid, SIGKILL);
    int status = 0;
    if (waitpid(peer_.pid, &status, 0) != peer_.pid || !WIFSIGNALED(status))
        return "the second process did not die when killed";
    peer_.pid = 0;
    start(inherited);
    return {};
}

} // namespace smc::test
