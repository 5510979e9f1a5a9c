// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
#include "control/tcp.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "core/log.hpp"

namespace smc {
namespace {

constexpr int kBacklog = 128;
constexpr Milliseconds kAcceptPause{100};
constexpr Milliseconds kAttemptMin{500};

// What a user of the node can do about it, in few words.
std::string explain(int code)
{
    switch (code) {
    case ECONNREFUSED:
        return "connection refused: is smcfsd running there?";
    case ETIMEDOUT:
        return "no answer: is the node up, and does a firewall drop the port?";
    case EHOSTUNREACH:
    case ENETUNREACH:
        return "no route to it: is the node up, is the address right?";
    default:
        return std::strerror(code); // NOLINT(concurrency-mt-unsafe)
    }
}

int unreachable_code(int code)
{
    return code == ENETUNREACH || code == EHOSTDOWN || code == ENETDOWN ? EHOSTUNREACH : code;
}

void set_option(int fd, int level, int name, int value)
{
    if (::setsockopt(fd, level, name, &value, sizeof value) != 0)
        log::debug("setsockopt {}/{}: {}", level, name, std::strerror(errno));
}

} // namespace

std::string to_string(const SocketAddress& address)
{
    std::array<char, INET6_ADDRSTRLEN> text{};
    const void* bytes = nullptr;
    if (address.storage.ss_family == AF_INET6)
        bytes = &reinterpret_cast<const sockaddr_in6&>(address.storage).sin6_addr;
    else
        bytes = &reinterpret_cast<const sockaddr_in&>(address.storage).sin_addr;
    ::inet_ntop(address.storage.ss_family, bytes, text.data(), text.size());
    return text.data();
}

Result<SocketAddress> parse_address(const std::string& text, std::uint16_t port)
{
    SocketAddress address;
    auto& v4 = reinterpret_cast<sockaddr_in&>(address.storage);
    auto& v6 = reinterpret_cast<sockaddr_in6&>(address.storage);
    if (::inet_pton(AF_INET, text.c_str(), &v4.sin_addr) == 1) {
        v4.sin_family = AF_INET;
        v4.sin_port = htons(port);
        address.length = sizeof v4;
    } else if (::inet_pton(AF_INET6, text.c_str(), &v6.sin6_addr) == 1) {
        v6.sin6_family = AF_INET6;
        v6.sin6_port = htons(port);
        address.length = sizeof v6;
    } else {
        return fail(EINVAL, fmt::format("\"{}\" is no IPv4 or IPv6 address", text));
    }
    return address;
}

TcpConnect::TcpConnect(EventLoop& loop, Resolver& resolver, To to, Done done)
    : loop_(loop), to_(std::move(to)), done_(std::move(done))
{
    deadline_ = loop_.add_timer(to_.timeout, [this] {
        finish(
            fail(ETIMEDOUT, fmt::format("{} port {}: {}", to_.host, to_.port, explain(ETIMEDOUT))));
    });
    resolver.resolve(to_.host, to_.port,
                     [this, alive = std::weak_ptr(alive_)](Result<std::vector<SocketAddress>> r) {
                         if (!alive.expired())
                             on_resolved(std::move(r));
                     });
}

TcpConnect::~TcpConnect() = default;

void TcpConnect::on_resolved(Result<std::vector<SocketAddress>> addresses)
{
    if (!addresses) {
        finish(tl::unexpected<Error>(addresses.error()));
        return;
    }
    addresses_ = std::move(*addresses);
    try_next();
}

void TcpConnect::try_next()
{
    source_.reset();
    socket_.reset();
    while (next_ < addresses_.size()) {
        const auto& address = addresses_[next_++];
        socket_ =
            Fd(::socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
        const auto* generic = reinterpret_cast<const sockaddr*>(&address.storage);
        if (!socket_ ||
            (::connect(socket_.get(), generic, address.length) != 0 && errno != EINPROGRESS)) {
            attempt_failed(errno);
            continue;
        }
        auto source =
            loop_.add_fd(socket_.get(), EPOLLOUT, [this](std::uint32_t) { on_writable(); });
        if (!source) {
            last_error_ = source.error();
            continue;
        }
        source_ = std::move(*source);
        // A dead first address leaves time for the second.
        const auto share =
            std::max(kAttemptMin, to_.timeout / static_cast<long>(addresses_.size()));
        attempt_timer_ = loop_.add_timer(share, [this] {
            attempt_failed(ETIMEDOUT);
            try_next();
        });
        return;
    }
    finish(tl::unexpected<Error>(last_error_));
}

void TcpConnect::on_writable()
{
    int code = 0;
    socklen_t length = sizeof code;
    ::getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &code, &length);
    if (code == 0) {
        source_.reset();
        finish(std::move(socket_));
        return;
    }
    attempt_failed(code);
    try_next();
}

void TcpConnect::attempt_failed(int code)
{
    const auto address = to_string(addresses_[next_ - 1]);
    last_error_ = {unreachable_code(code),
                   fmt::format("{}{} port {}: {}", to_.host,
                               address == to_.host ? "" : fmt::format(" ({})", address), to_.port,
                               explain(code))};
}

void TcpConnect::finish(Result<Fd> result)
{
    source_.reset();
    attempt_timer_.reset();
    deadline_.reset();
    if (done_)
        std::exchange(done_, nullptr)(std::move(result));
}

Result<std::unique_ptr<TcpListener>> TcpListener::create(EventLoop& loop,
                                                         const std::vector<std::string>& listen,
                                                         std::uint16_t port, Accepted accepted)
{
    std::unique_ptr<TcpListener> listener(new TcpListener(loop, std::move(accepted)));
    if (listen.empty()) {
        const auto any6 = SMC_TRY(parse_address("::", port));
        if (auto both = listener->listen_on(any6, "::"); both)
            return listener;
        else if (both.error().code != EAFNOSUPPORT && both.error().code != EADDRNOTAVAIL)
            return tl::unexpected<Error>(both.error());
        const auto any4 = SMC_TRY(parse_address("0.0.0.0", port)); // a kernel without IPv6
        SMC_TRY(listener->listen_on(any4, "0.0.0.0"));
        return listener;
    }
    for (const auto& text : listen) {
        const auto address = SMC_TRY(parse_address(text, port));
        SMC_TRY(listener->listen_on(address, text));
    }
    return listener;
}

Result<void> TcpListener::listen_on(const SocketAddress& address, const std::string& text)
{
    const auto port = ntohs(reinterpret_cast<const sockaddr_in&>(address.storage).sin_port);
    const auto failed = [&](int code) {
        return fail(
            code, fmt::format("cannot listen on {} port {}: {}", text, port, std::strerror(code)));
    };
    Fd socket(::socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!socket)
        return failed(errno);
    set_option(socket.get(), SOL_SOCKET, SO_REUSEADDR, 1);
    if (address.storage.ss_family == AF_INET6)
        set_option(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, text == "::" ? 0 : 1);
    const auto* generic = reinterpret_cast<const sockaddr*>(&address.storage);
    if (::bind(socket.get(), generic, address.length) != 0 || ::listen(socket.get(), kBacklog) != 0)
        return failed(errno);
    const int fd = socket.get();
    sources_.push_back(
        SMC_TRY(loop_.add_fd(fd, EPOLLIN, [this, fd](std::uint32_t) { accept_some(fd); })));
    sockets_.push_back(std::move(socket));
    return {};
}

void TcpListener::accept_some(int fd)
{
    SocketAddress from;
    from.length = sizeof from.storage;
    Fd socket(::accept4(fd, reinterpret_cast<sockaddr*>(&from.storage), &from.length,
                        SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (socket) {
        accepted_(std::move(socket), to_string(from));
        return;
    }
    if (errno != EMFILE && errno != ENFILE && errno != ENOBUFS && errno != ENOMEM)
        return;
    // The connection stays in the backlog and the socket readable: wait instead of spinning.
    log::warn("cannot accept connections: {}; raise LimitNOFILE=", std::strerror(errno));
    for (auto& source : sources_)
        source.set_events(0);
    resume_ = loop_.add_timer(kAcceptPause, [this] {
        for (auto& source : sources_)
            source.set_events(EPOLLIN);
    });
}

void configure_tcp(int fd, Milliseconds dead_after)
{
    const int seconds = std::max(1, static_cast<int>(dead_after.count() / 1000));
    set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
    set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
    set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, seconds);
    set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, std::max(1, seconds / 3));
    set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, 3);
    set_option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, static_cast<int>(dead_after.count()));
}

} // namespace smc
