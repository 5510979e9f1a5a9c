// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// Contexts: the caller's thread; every wait has a deadline. No SIGPIPE, no signal handling.
#include "daemon_client.hpp"

#include <algorithm>
#include <array>

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

namespace smc::client {
namespace {

using std::chrono::steady_clock;

// A listening socket whose backlog is full refuses at once (EAGAIN) instead of making us wait.
constexpr std::chrono::milliseconds kBacklogRetry{20};

std::string seconds_text(std::chrono::milliseconds time)
{
    double seconds = static_cast<double>(time.count()) / 1000.0;
    std::array<char, 32> text{};
    snprintf(text.data(), text.size(), "%.3g s", seconds);
    return text.data();
}

tl::unexpected<Error> connect_failed(int code, const std::string& path)
{
    switch (code) {
    case ENOENT:
    case ECONNREFUSED:
        return fail(ENOTCONN, "the daemon smcfsd is not running (nobody listens on " + path +
                                  "): start it with systemctl start smcfsd");
    case EACCES:
        return fail(EACCES, "no permission to speak to the daemon on " + path +
                                ": ask the administrator for access to this socket");
    case EAGAIN:
        return fail(ETIMEDOUT, "the daemon smcfsd accepts no connection on " + path +
                                   ": see journalctl -u smcfsd");
    default:
        return fail_errno(code, "cannot connect to the daemon on " + path);
    }
}

} // namespace

Result<DaemonClient> DaemonClient::connect(const std::string& path, Milliseconds timeout)
{
    sockaddr_un addr{};
    addr.sun_family = AF_UNIX;
    if (path.empty() || path.size() >= sizeof(addr.sun_path))
        return fail(EINVAL, "\"" + path + "\" is no path of a socket: it must have 1 to " +
                                std::to_string(sizeof(addr.sun_path) - 1) + " bytes");
    std::copy(path.begin(), path.end(), addr.sun_path);

    Fd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!fd)
        return fail_errno(errno, "cannot make a socket");
    const auto deadline = steady_clock::now() + timeout;
    while (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&addr), sizeof(addr)) < 0) {
        int code = errno;
        if (code == EINTR)
            continue;
        if (code != EAGAIN || steady_clock::now() >= deadline)
            return connect_failed(code, path);
        poll(nullptr, 0, static_cast<int>(kBacklogRetry.count()));
    }
    return DaemonClient(std::move(fd), path);
}

Result<bool> DaemonClient::wait(short events, Deadline deadline, int stop_fd)
{
    for (;;) {
        auto left = std::chrono::ceil<Milliseconds>(deadline - steady_clock::now()).count();
        pollfd fds[] = {{fd_.get(), events, 0}, {stop_fd, POLLIN, 0}};
        int ready = poll(fds, 2, static_cast<int>(std::clamp<int64_t>(left, 0, INT32_MAX)));
        if (ready < 0 && errno != EINTR)
            return fail_errno(errno, "poll");
        if (ready > 0 && fds[1].revents != 0)
            return false;
        if (ready > 0)
            return true;
        if (ready == 0 && left <= INT32_MAX)
            return false;
    }
}

Result<void> DaemonClient::send(const Json& message, Deadline deadline)
{
    std::string body;
    try {
        body = message.dump();
    } catch (const Json::exception&) {
        return fail(EILSEQ, "the request holds text that is no UTF-8");
    }
    if (body.size() > kFrameBytesMax)
        return fail(EMSGSIZE, "the request is longer than a frame may be");
    auto length = static_cast<uint32_t>(body.size());
    std::string frame = {static_cast<char>(length >> 24), static_cast<char>(length >> 16),
                         static_cast<char>(length >> 8), static_cast<char>(length)};
    frame += body;
    for (size_t sent = 0; sent < frame.size();) {
        ssize_t n = ::send(fd_.get(), frame.data() + sent, frame.size() - sent, MSG_NOSIGNAL);
        if (n >= 0) {
            sent += static_cast<size_t>(n);
        } else if (errno == EAGAIN) {
            if (!SMC_TRY(wait(POLLOUT, deadline)))
                return fail(ETIMEDOUT, "the daemon smcfsd does not read its socket " + path_);
        } else if (errno == EPIPE || errno == ECONNRESET) {
            break; // an error frame may be waiting; if not, receive() says what happened
        } else if (errno != EINTR) {
            return fail_errno(errno, "cannot send to the daemon");
        }
    }
    return {};
}

Result<void> DaemonClient::read_exactly(char* out, size_t length, Deadline deadline)
{
    for (size_t done = 0; done < length;) {
        ssize_t n = recv(fd_.get(), out + done, length - done, 0);
        if (n > 0)
            done += static_cast<size_t>(n);
        else if (n == 0 || errno == ECONNRESET)
            return fail(ECONNRESET, "the daemon smcfsd closed the connection: it stopped or "
                                    "restarted, see journalctl -u smcfsd");
        else if (errno == EAGAIN) {
            if (!SMC_TRY(wait(POLLIN, deadline)))
                return fail(ETIMEDOUT, "the daemon smcfsd did not answer in time");
        } else if (errno != EINTR)
            return fail_errno(errno, "cannot read from the daemon");
    }
    return {};
}

Result<Json> DaemonClient::receive(Deadline deadline)
{
    std::array<unsigned char, 4> head{};
    SMC_TRY(read_exactly(reinterpret_cast<char*>(head.data()), head.size(), deadline));
    size_t length = size_t{head[0]} << 24 | size_t{head[1]} << 16 | size_t{head[2]} << 8 | head[3];
    if (length == 0 || length > kFrameBytesMax)
        return fail(EPROTO, "what answers on " + path_ + " is not smcfsd: a frame of " +
                                std::to_string(length) + " bytes");
    std::string body(length, '\0');
    SMC_TRY(read_exactly(body.data(), length, deadline));
    Json message = Json::parse(body, nullptr, false);
    if (!message.is_object())
        return fail(EPROTO, "what answers on " + path_ + " is not smcfsd: a frame without a JSON " +
                                "object");
    return message;
}

Result<Json> DaemonClient::request(std::string_view type, Json args, Milliseconds timeout)
{
    const auto deadline = steady_clock::now() + timeout;
    const uint64_t id = next_id_++;
    args["type"] = type;
    args["id"] = id;
    SMC_TRY(send(args, deadline));
    for (;;) {
        auto received = receive(deadline);
        if (!received && received.error().code == ETIMEDOUT)
            return fail(ETIMEDOUT, "the daemon smcfsd did not answer \"" + std::string(type) +
                                       "\" within " + seconds_text(timeout));
        Json answer = SMC_TRY(std::move(received));
        auto answered = answer.find("id");
        if (answered == answer.end() && answer.value("type", Json()) == "error")
            return fail(EPROTO, "the daemon smcfsd refused the connection: " +
                                    get_string(answer, "error").value_or("no reason given"));
        if (answered == answer.end() || *answered != id)
            continue; // a notice, or the answer to a request that was given up
        if (answer.value("ok", Json()) == true)
            return answer;
        uint64_t code = get_uint(answer, "errno").value_or(0);
        if (code == 0 || code > 4095)
            code = EPROTO;
        return fail(static_cast<int>(code),
                    get_string(answer, "error").value_or("the daemon gave no reason"));
    }
}

Result<std::optional<Json>> DaemonClient::next_notice(Milliseconds timeout, int stop_fd)
{
    for (;;) {
        if (!SMC_TRY(wait(POLLIN, steady_clock::now() + timeout, stop_fd)))
            return std::nullopt;
        // Once a frame has begun, the rest of it is due soon.
        Json message = SMC_TRY(receive(steady_clock::now() + Milliseconds(5000)));
        if (!message.contains("id"))
            return message;
    }
}

Result<uint64_t> get_uint(const Json& object, const char* key)
{
    auto member = object.find(key);
    if (member == object.end() || !member->is_number_unsigned())
        return fail(EPROTO, std::string("the daemon's answer has no number \"") + key + "\"");
    return member->get<uint64_t>();
}

Result<std::string> get_string(const Json& object, const char* key)
{
    auto member = object.find(key);
    if (member == object.end() || !member->is_string())
        return fail(EPROTO, std::string("the daemon's answer has no text \"") + key + "\"");
    return member->get<std::string>();
}

} // namespace smc::client
