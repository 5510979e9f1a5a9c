/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* Copyright (c) 2026 The SMC authors */
// One run: draws commands, has them done, keeps the model in step, and compares.
//
// What is compared and when: every read with what this node should see; after every barrier the pages
// that it flushed with the target's memory; O_DIRECT writes with the target at once; now and then, and
// at the end, all of the target's memory whose content is known.
#pragma once

#include "agent.hpp"
#include "companion.hpp"
#include "plan.hpp"
#include "shadow.hpp"
#include "target.hpp"

#include <array>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace smc::test {

// A fault put in on purpose, in the middle of the run: the run must then fail.
enum class Sabotage {
    kNone,
    kStore,   // a store is not done
    kBarrier, // what a barrier flushed is not on the target
    kClobber, // the target's memory changes where nobody wrote
};

struct Options {
    std::uint64_t seed = 1;
    std::uint64_t ops = 100000;
    double seconds_max = 0; // 0: only the count ends the run
    std::string target;
    Paths paths;
    Abilities abilities;
    Sabotage sabotage = Sabotage::kNone;
    bool eager = false;     // the region's mode: pwrite returns when it is acknowledged
    bool hand_over = false; // who lets the target write to a page acquires it first
    bool verbose = false;
};

class Runner {
public:
    explicit Runner(const Options& options);
    int run();

private:
    // `done`: false when the command could not be, without breaking a promise.
    std::string step(const Command& command, bool& done);
    std::string execute(const Command& command);
    std::string before_write(const Command& command, Range range);
    std::string target_write(const Command& command, bool& done);
    std::string system_knob(const Command& command);
    void update_model(const Command& command);
    std::string compare_barrier(const Command& command);
    std::string compare_target(const std::vector<Range>& ranges);
    std::string compare_everything();
    std::string finish();
    void report(const Command& command, const std::string& wrong) const;
    void progress(std::uint64_t done) const;
    void print_counts() const;
    std::string check_counts(std::uint64_t commands) const;
    void read_initial_content();

    Options options_;
    std::unique_ptr<Target> target_;
    std::unique_ptr<Shadow> shadow_;
    std::unique_ptr<Companion> companion_;
    std::unique_ptr<Agent> agent_;
    std::unique_ptr<Plan> plan_;
    std::vector<Command> history_;
    std::array<std::uint64_t, static_cast<std::size_t>(Op::kCount)> counts_{};
    std::array<double, static_cast<std::size_t>(Op::kCount)> seconds_{};
    double target_seconds_ = 0; // of these, asking the target
    std::uint64_t barriers_ = 0;
    std::uint64_t compared_bytes_ = 0;
    bool sabotage_due_ = false;
    bool sabotaged_ = false;
    std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

} // namespace smc::test
