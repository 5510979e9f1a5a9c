// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
#include "local/local_server.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <chrono>
#include <filesystem>

#include <fmt/chrono.h>
#include <fmt/format.h>

namespace smc {
namespace {

constexpr int kBacklog = 128;
constexpr Milliseconds kAcceptPause{100};

// ISO 8601 in UTC, to the millisecond.
std::string timestamp()
{
    const auto now = std::chrono::system_clock::now();
    const auto ms =
        std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch()).count() %
        1000;
    return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z",
                       fmt::gmtime(std::chrono::system_clock::to_time_t(now)), ms);
}

} // namespace

Result<std::unique_ptr<LocalServer>> LocalServer::create(EventLoop& loop, const std::string& path,
                                                         const LimitConfig& limits, Handler handler)
{
    std::unique_ptr<LocalServer> server(new LocalServer(loop, path, limits, std::move(handler)));
    SMC_TRY(server->listen());
    auto* raw = server.get();
    server->source_ = SMC_TRY(
        loop.add_fd(server->socket_.get(), EPOLLIN, [raw](std::uint32_t) { raw->accept_some(); }));
    return server;
}

Result<void> LocalServer::listen()
{
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path_.size() >= sizeof address.sun_path)
        return fail(ENAMETOOLONG, fmt::format("socket path {} is longer than {} bytes", path_,
                                              sizeof address.sun_path - 1));
    path_.copy(address.sun_path, path_.size());

    std::error_code error;
    std::filesystem::create_directories(std::filesystem::path(path_).parent_path(), error);
    if (error)
        return fail(error.value(), fmt::format("the directory of {}: {}", path_, error.message()));

    // A socket file that nobody serves is left by a daemon that was killed: the lock tells.
    const auto lock_path = path_ + ".lock";
    lock_ = Fd(::open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!lock_)
        return fail_errno(errno, lock_path);
    if (::flock(lock_.get(), LOCK_EX | LOCK_NB) != 0) {
        lock_.reset();
        return fail(EBUSY, fmt::format("another smcfsd serves {}: stop it first", path_));
    }
    ::unlink(path_.c_str());
    socket_ = Fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!socket_ ||
        ::bind(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
        ::chmod(path_.c_str(), 0666) != 0 || // who may do what is decided per request
        ::listen(socket_.get(), kBacklog) != 0)
        return fail_errno(errno, fmt::format("cannot listen on {}", path_));
    return {};
}

LocalServer::~LocalServer()
{
    if (socket_)
        ::unlink(path_.c_str());
}

Result<void> LocalServer::admit(const Credentials& caller) const
{
    if (connections_.size() >= limits_.local_connections && caller.uid != 0)
        return fail(EAGAIN, "too many connections to smcfsd; raise [limits] local_connections");
    const auto own = per_user_.find(caller.uid);
    if (own != per_user_.end() && own->second >= limits_.local_connections_per_uid)
        return fail(EAGAIN, fmt::format("uid {} has {} connections to smcfsd already; raise "
                                        "[limits] local_connections_per_uid",
                                        caller.uid, own->second));
    return {};
}

void LocalServer::accept_some()
{
    Fd socket(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket) {
        if (errno != EMFILE && errno != ENFILE && errno != ENOBUFS && errno != ENOMEM)
            return;
        log::warn("cannot accept local connections: {}; raise LimitNOFILE=", std::strerror(errno));
        source_.set_events(0);
        resume_ = loop_.add_timer(kAcceptPause, [this] { source_.set_events(EPOLLIN); });
        return;
    }
    ucred peer{};
    socklen_t length = sizeof peer;
    if (::getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0)
        return;
    const Credentials caller{peer.pid, peer.uid, peer.gid};
    const auto admitted = admit(caller);

    const auto id = next_id_++;
    auto channel = Channel::create(
        loop_, std::move(socket), make_seal({.auth = Auth::none}, SealSide::acceptor),
        {[this, id](Channel::Request request) { serve(id, std::move(request)); },
         {},
         [this, id](const Error& error) {
             log::debug("local connection {} ended: {}", id, error.what);
             auto connection = connections_.extract(id);
             if (!connection.empty() && --per_user_[connection.mapped().caller.uid] == 0)
                 per_user_.erase(connection.mapped().caller.uid);
         }});
    if (!channel)
        return;
    if (!admitted) {
        (*channel)->notify("error",
                           {{"errno", admitted.error().code}, {"error", admitted.error().what}});
        (*channel)->close();
        if (log_limit_.allow())
            log::warn("a local connection of uid {} is refused: {}", caller.uid,
                      admitted.error().what);
        return;
    }
    ++per_user_[caller.uid];
    connections_[id] = {caller, std::move(*channel), false};
}

void LocalServer::serve(std::uint64_t id, Channel::Request request)
{
    const auto found = connections_.find(id);
    if (found == connections_.end())
        return;
    auto& connection = found->second;
    handler_({connection.caller, std::move(request.type), std::move(request.body),
              std::move(request.responder),
              [channel = std::weak_ptr(connection.channel)] {
                  const auto locked = channel.lock();
                  return locked ? locked->take_fd() : Fd();
              },
              [this, id] {
                  if (const auto again = connections_.find(id); again != connections_.end())
                      again->second.subscribed = true;
              }});
}

void LocalServer::publish(Json event)
{
    event["time"] = timestamp();
    for (const auto& [id, connection] : connections_)
        if (connection.subscribed)
            connection.channel->notify("event", event);
}

} // namespace smc
