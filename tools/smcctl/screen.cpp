// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
#include "screen.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <memory>
#include <string_view>

#include <poll.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

namespace smc::ctl {
namespace {

constexpr std::string_view kEnter = "\x1b[?1049h\x1b[?25l\x1b[2J"; // second screen, no cursor
constexpr std::string_view kLeave = "\x1b[?25h\x1b[?1049l";
constexpr std::string_view kHome = "\x1b[H";
constexpr std::string_view kLineEnd = "\x1b[K";
constexpr std::string_view kRest = "\x1b[J";

void write_all(std::string_view text)
{
    while (!text.empty()) {
        const ssize_t wrote = ::write(STDOUT_FILENO, text.data(), text.size());
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote <= 0)
            return; // the terminal is gone, which poll will tell
        text.remove_prefix(static_cast<size_t>(wrote));
    }
}

sigset_t signals()
{
    sigset_t set;
    sigemptyset(&set);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGWINCH})
        sigaddset(&set, signal);
    return set;
}

} // namespace

bool Screen::possible()
{
    const char* terminal = std::getenv("TERM"); // NOLINT(concurrency-mt-unsafe): nobody sets it
    return ::isatty(STDOUT_FILENO) == 1 && terminal != nullptr && *terminal != '\0' &&
           std::string_view(terminal) != "dumb";
}

Result<std::unique_ptr<Screen>> Screen::open()
{
    std::unique_ptr<Screen> screen(new Screen());
    const sigset_t set = signals();
    screen->signals_ = Fd(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
    if (!screen->signals_)
        return fail_errno(errno, "signalfd");
    ::pthread_sigmask(SIG_BLOCK, &set, &screen->before_);
    screen->keys_ = ::isatty(STDIN_FILENO) == 1 && ::tcgetattr(STDIN_FILENO, &screen->saved_) == 0;
    screen->enter();
    return screen;
}

Screen::~Screen()
{
    if (!entered_)
        return;
    leave();
    // A signal that is waiting still would now end the program a second time.
    signalfd_siginfo info{};
    while (::read(signals_.get(), &info, sizeof(info)) == sizeof(info)) {}
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

Screen::Size Screen::size()
{
    winsize window{};
    Size size;
    if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_row > 0 && window.ws_col > 0)
        size = {window.ws_row, window.ws_col};
    return size;
}

void Screen::enter()
{
    entered_ = true;
    if (keys_) {
        termios raw = saved_;
        raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
        raw.c_cc[VMIN] = 0;
        raw.c_cc[VTIME] = 0;
        ::tcsetattr(STDIN_FILENO, TCSANOW, &raw);
    }
    write_all(kEnter);
}

void Screen::leave()
{
    if (keys_)
        ::tcsetattr(STDIN_FILENO, TCSANOW, &saved_);
    write_all(kLeave);
}

void Screen::draw(const std::vector<std::string>& lines)
{
    const size_t rows = std::min(lines.size(), size().height);
    std::string text(kHome);
    for (size_t i = 0; i < rows; i++) {
        text += lines[i];
        text += kLineEnd;
        if (i + 1 < rows) // behind the last one the screen would roll
            text += "\r\n";
    }
    text += kRest;
    write_all(text);
}

Screen::Happened Screen::on_signal()
{
    signalfd_siginfo info{};
    if (::read(signals_.get(), &info, sizeof(info)) != sizeof(info))
        return {};
    if (info.ssi_signo == SIGWINCH)
        return {Event::redraw, 0};
    if (info.ssi_signo != SIGTSTP)
        return {Event::quit, 0};
    leave();
    ::raise(SIGSTOP); // goes on from here
    enter();
    return {Event::redraw, 0};
}

Screen::Happened Screen::on_key()
{
    char key = 0;
    if (::read(STDIN_FILENO, &key, 1) != 1 || key == 'q' || key == 'Q')
        return {Event::quit, 0};
    return {Event::key, key};
}

Screen::Happened Screen::wait(std::chrono::steady_clock::time_point until)
{
    using std::chrono::steady_clock;
    while (true) {
        const auto left =
            std::chrono::ceil<std::chrono::milliseconds>(until - steady_clock::now()).count();
        pollfd fds[] = {{signals_.get(), POLLIN, 0}, {keys_ ? STDIN_FILENO : -1, POLLIN, 0}};
        const int ready = ::poll(fds, 2, left > 0 ? static_cast<int>(left) : 0);
        if (ready == 0)
            return {};
        if (ready < 0 && errno != EINTR)
            return {Event::quit, 0};
        if (ready > 0 && fds[0].revents != 0)
            return on_signal();
        if (ready > 0 && fds[1].revents != 0)
            return on_key();
    }
}

} // namespace smc::ctl
