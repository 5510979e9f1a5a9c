/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* Copyright (c) 2026 The SMC authors */
// The second process of a run: an agent behind a socket pair. It is killed and started again as part
// of the test.
#pragma once

#include "agent.hpp"

namespace smc::test {

class Companion {
public:
    Companion(Shadow& shadow, const Paths& paths);
    ~Companion();
    Companion(const Companion&) = delete;
    Companion& operator=(const Companion&) = delete;

    // Forks. `inherited`: this process's agent, whose mappings and files the child gives up.
    void start(Agent* inherited);
    std::string execute(const Command& command);
    // SIGKILL, and a new one: whatever it has stored and not flushed stays behind.
    std::string kill_and_restart(Agent* inherited);
    const Peer& peer() const { return peer_; }

private:
    [[noreturn]] void serve(int fd);
    std::string receive();

    Shadow& shadow_;
    Paths paths_;
    Peer peer_;
    Fd socket_;
};

} // namespace smc::test
