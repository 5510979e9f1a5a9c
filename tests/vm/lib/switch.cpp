// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// switch FD...: an Ethernet switch between guests, which loses no frame.
//
// Each FD is a stream socket to one guest's network card: frames, each after its length (32 bits, big
// endian), as QEMU's `-netdev stream` has them. Standard input tells what happens to guests:
//
//     drop PORT    it has been stopped: what is sent to it vanishes, as in a switch whose port is full
//     pass PORT    it runs again
//
// Each line is answered with one on standard output, `ok`, when it holds. The end of the input ends the
// program. PORT counts from 0.
//
// Flow: a port that cannot take more holds up those that send to it, and nobody else: their sockets
// fill, and their guests' cards wait. That is why a busy machine makes the network slow, but not lossy.
// Failure: a port whose guest has ended takes everything, and sends nothing; anything else that
// should not happen ends the program, and with it the run.
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <string>
#include <unordered_map>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

namespace {

constexpr std::size_t kHeaderBytes = 4;
constexpr std::size_t kFrameBytesMax = 64 << 10; // jumbo frames, and some room
constexpr std::size_t kQueueBytesMax = 256 << 10;
constexpr std::size_t kReadBytes = 128 << 10;
constexpr std::size_t kWriteFrames = 64;
constexpr std::size_t kNowhere = SIZE_MAX;

[[noreturn]] void die(const char* what)
{
    std::fprintf(stderr, "switch: %s: %s\n", what, std::strerror(errno));
    std::exit(1);
}

using Bytes = std::vector<std::uint8_t>;

struct Port {
    int fd = -1;
    bool open = true;
    bool drop = false;

    Bytes in;              // what came and was not passed on yet
    std::deque<Bytes> out; // with their headers
    std::size_t out_bytes = 0;
    std::size_t sent = 0; // of the first of them
    bool blocked = false; // its next frame goes to a port that is full

    bool full() const { return open && !drop && out_bytes >= kQueueBytesMax; }
};

class Switch {
public:
    explicit Switch(const std::vector<int>& fds)
    {
        for (int fd : fds) {
            ports_.emplace_back().fd = fd;
            if (fcntl(fd, F_SETFL, O_NONBLOCK) < 0)
                die("not a socket");
        }
    }

    void run()
    {
        std::vector<pollfd> polled(ports_.size() + 1);
        do {
            polled[0] = {STDIN_FILENO, POLLIN, 0};
            for (std::size_t i = 0; i < ports_.size(); i++) {
                const Port& port = ports_[i];
                short events = 0;
                if (!port.blocked)
                    events |= POLLIN;
                if (!port.out.empty())
                    events |= POLLOUT;
                polled[i + 1] = {port.open ? port.fd : -1, events, 0};
            }
            if (poll(polled.data(), polled.size(), -1) < 0 && errno != EINTR)
                die("poll");
            for (std::size_t i = 0; i < ports_.size(); i++)
                if (polled[i + 1].revents & (POLLIN | POLLHUP | POLLERR))
                    receive(ports_[i]);
            pass_on();
        } while (!polled[0].revents || obey());
    }

private:
    void receive(Port& port)
    {
        std::size_t had = port.in.size();
        port.in.resize(had + kReadBytes);
        ssize_t got = read(port.fd, port.in.data() + had, kReadBytes);
        port.in.resize(had + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
        if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR))
            close_port(port);
    }

    void close_port(Port& port)
    {
        port.open = false;
        port.in.clear();
        port.out.clear();
        port.out_bytes = port.sent = 0;
        close(port.fd);
    }

    // Frames to queues and queues to sockets, until nothing moves.
    void pass_on()
    {
        for (bool moved = true; moved;) {
            moved = false;
            for (std::size_t i = 0; i < ports_.size(); i++)
                moved |= forward(i);
            for (Port& port : ports_)
                moved |= transmit(port);
        }
    }

    // The frames that a port has sent. True when one was passed on.
    bool forward(std::size_t from)
    {
        Port& port = ports_[from];
        std::size_t at = 0;
        port.blocked = false;
        while (port.in.size() - at >= kHeaderBytes) {
            const std::uint8_t* head = port.in.data() + at;
            std::size_t length = std::size_t{head[0]} << 24 | std::size_t{head[1]} << 16 |
                                 std::size_t{head[2]} << 8 | head[3];
            if (length > kFrameBytesMax) {
                errno = EMSGSIZE;
                die("a frame");
            }
            if (port.in.size() - at < kHeaderBytes + length)
                break;
            port.blocked = !deliver(from, {head, head + kHeaderBytes + length});
            if (port.blocked)
                break;
            at += kHeaderBytes + length;
        }
        port.in.erase(port.in.begin(), port.in.begin() + static_cast<std::ptrdiff_t>(at));
        return at > 0;
    }

    static std::uint64_t address(const std::uint8_t* at)
    {
        std::uint64_t value = 0;
        for (int i = 0; i < 6; i++)
            value = value << 8 | at[i];
        return value;
    }

    // False when a port that has to get it is full.
    bool deliver(std::size_t from, Bytes frame)
    {
        std::size_t to = kNowhere; // known only where one card has that address
        if (frame.size() >= kHeaderBytes + 12) {
            const std::uint8_t* ethernet = frame.data() + kHeaderBytes;
            places_[address(ethernet + 6)] = from;
            auto found = places_.find(address(ethernet));
            if (!(ethernet[0] & 1) && found != places_.end())
                to = found->second;
        }
        auto wanted = [&](std::size_t i) { return i != from && (to == kNowhere || to == i); };
        for (std::size_t i = 0; i < ports_.size(); i++)
            if (wanted(i) && ports_[i].full())
                return false;
        for (std::size_t i = 0; i < ports_.size(); i++) {
            Port& port = ports_[i];
            if (!wanted(i) || !port.open || port.drop)
                continue;
            port.out_bytes += frame.size();
            port.out.push_back(frame);
        }
        return true;
    }

    // True when something was sent.
    bool transmit(Port& port)
    {
        if (!port.open || port.out.empty())
            return false;
        std::array<iovec, kWriteFrames> parts{};
        std::size_t count = 0;
        for (Bytes& frame : port.out) {
            std::size_t skip = count == 0 ? port.sent : 0;
            parts[count++] = {frame.data() + skip, frame.size() - skip};
            if (count == parts.size())
                break;
        }
        msghdr message{};
        message.msg_iov = parts.data();
        message.msg_iovlen = count;
        ssize_t sent = sendmsg(port.fd, &message, MSG_NOSIGNAL);
        if (sent < 0) {
            if (errno != EAGAIN && errno != EINTR)
                close_port(port);
            return false;
        }
        port.sent += static_cast<std::size_t>(sent);
        while (!port.out.empty() && port.sent >= port.out.front().size()) {
            port.sent -= port.out.front().size();
            port.out_bytes -= port.out.front().size();
            port.out.pop_front();
        }
        return true;
    }

    // What waits for a port that will not take it goes, but for the frame that is half out.
    void discard(Port& port)
    {
        if (!port.out.empty())
            port.out.resize(port.sent > 0 ? 1 : 0);
        port.out_bytes = port.out.empty() ? 0 : port.out.front().size();
    }

    // Lines of the driver. False at the end of the input.
    bool obey()
    {
        char text[256];
        ssize_t got = read(STDIN_FILENO, text, sizeof text);
        if (got <= 0)
            return got < 0 && errno == EINTR;
        orders_.append(text, static_cast<std::size_t>(got));
        for (std::size_t end; (end = orders_.find('\n')) != std::string::npos;) {
            char verb[8] = "";
            std::size_t number = kNowhere;
            if (std::sscanf(orders_.c_str(), "%7s %zu", verb, &number) != 2 ||
                number >= ports_.size()) {
                errno = EINVAL;
                die(orders_.c_str());
            }
            ports_[number].drop = std::strcmp(verb, "drop") == 0;
            if (ports_[number].drop)
                discard(ports_[number]);
            orders_.erase(0, end + 1);
            std::puts("ok");
            std::fflush(stdout);
        }
        pass_on();
        return true;
    }

    std::vector<Port> ports_;
    std::unordered_map<std::uint64_t, std::size_t> places_; // address to port
    std::string orders_;
};

} // namespace

int main(int argc, char** argv)
{
    std::vector<int> fds;
    for (int i = 1; i < argc; i++)
        fds.push_back(std::atoi(argv[i]));
    Switch(fds).run();
    return 0;
}
