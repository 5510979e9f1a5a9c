// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// Owns: the terminal while a verb draws on it: its second screen, its keys, the signals that end or stop
// the program.
//
// Lifetime: the terminal is as it was when the Screen is gone, and while the program is stopped.
// Failure: a terminal that went away is as a key that quits.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include <csignal>
#include <termios.h>

#include "core/fd.hpp"
#include "core/result.hpp"

namespace smc::ctl {

class Screen {
public:
    // Is standard output a terminal that can be drawn on?
    static bool possible();
    static Result<std::unique_ptr<Screen>> open();
    Screen(const Screen&) = delete;
    Screen& operator=(const Screen&) = delete;
    ~Screen();

    struct Size {
        size_t height = 24;
        size_t width = 80;
    };
    [[nodiscard]] static Size size();

    // Lines in place of what is there; more than there is room for are left out.
    void draw(const std::vector<std::string>& lines);

    enum class Event { time, quit, redraw, key };
    struct Happened {
        Event event = Event::time;
        char key = 0;
    };
    // Until something happens, or the time is there.
    Happened wait(std::chrono::steady_clock::time_point until);

private:
    Screen() = default;
    void enter();
    void leave();
    Happened on_signal();
    Happened on_key();

    Fd signals_;
    sigset_t before_{};
    bool keys_ = false; // standard input is a terminal, too
    bool entered_ = false;
    termios saved_{};
};

} // namespace smc::ctl
