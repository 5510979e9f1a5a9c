/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* Copyright (c) 2026 The SMC authors */
// One process's hands on the region: its descriptors, its two mappings, and how each command is done
// with system calls. Compares what it reads with the model; never changes the model.
//
// Failure: a sentence that says what went wrong, which the runner reports with the command's history.
// SIGBUS ends the process after naming the address.
#pragma once

#include "plan.hpp"
#include "shadow.hpp"

#include <array>
#include <string>
#include <vector>

#include <sys/types.h>

namespace smc::test {

struct Paths {
    std::string region;
    std::string scratch; // empty: none
    bool direct = false; // open the region with O_DIRECT too
};

struct Peer {
    pid_t pid = 0;
    std::array<std::uint8_t*, 2> bases{}; // of its two mappings
};

class Agent {
public:
    Agent(Shadow& shadow, const Paths& paths);
    ~Agent();
    Agent(const Agent&) = delete;
    Agent& operator=(const Agent&) = delete;

    void set_peer(const Peer& peer) { peer_ = peer; }
    std::array<std::uint8_t*, 2> bases() const;

    // Does the command. Empty when all went well and every byte read was right.
    std::string execute(const Command& command);
    // Unmaps and closes everything of the region.
    void close_all();
    // Does not do a store that was asked for: the fault that the test must find.
    void lose_next_store() { lose_store_ = true; }

private:
    struct View {
        Fd fd;
        std::uint8_t* base = nullptr;
    };

    void open_all();
    std::uint8_t* at(const Command& c) const { return views_[c.view].base + c.range.offset; }
    int fd(const Command& c) const { return views_[c.view].fd.get(); }
    std::uint64_t map_length() const { return page_up(shadow_.size()); }
    std::uint8_t* scratch_buffer(std::uint64_t length);

    std::string load(const Command& c);
    std::string store(const Command& c);
    std::string pread_region(const Command& c, int fd);
    std::string pwrite_region(const Command& c, int fd);
    std::string barrier(const Command& c);
    std::string fork_store(const Command& c);
    std::string move_mapping(const Command& c);
    std::string make_hole(const Command& c);
    std::string private_stores(const Command& c);
    std::string protect(const Command& c);
    std::string advise(const Command& c);
    std::string self_copy(const Command& c);
    std::string send_file(const Command& c);
    std::string stream(const Command& c);
    std::string vm_transfer(const Command& c);
    std::string direct_in(const Command& c);
    std::string direct_out(const Command& c);

    Shadow& shadow_;
    Paths paths_;
    Peer peer_;
    std::array<View, 2> views_;
    Fd direct_;
    Fd scratch_;
    std::uint8_t* buffer_ = nullptr; // page-aligned, grows
    std::uint64_t buffer_length_ = 0;
    bool lose_store_ = false;
};

} // namespace smc::test
