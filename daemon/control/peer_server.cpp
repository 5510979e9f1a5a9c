// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
#include "control/peer_server.hpp"

#include <algorithm>
#include <chrono>

#include <fmt/format.h>

#include "control/protocol.hpp"
#include "core/names.hpp"

namespace smc {
namespace {

constexpr Milliseconds kDeadAfter{15000}; // a client node that acknowledges nothing for so long

Result<std::string> region_name(const Json& body)
{
    auto name = SMC_TRY(get_string(body, "name"));
    SMC_TRY(check_region_name(name));
    return name;
}

} // namespace

PeerServer::PeerServer(EventLoop& loop, const Config& config) : loop_(loop), config_(config) {}

PeerServer::~PeerServer() = default;

Result<void> PeerServer::start(Target& target)
{
    target_ = &target;
    listener_ = SMC_TRY(TcpListener::create(
        loop_, config_.control.listen, config_.control.port,
        [this](Fd socket, const std::string& from) { accept(std::move(socket), from); }));
    return {};
}

void PeerServer::stop()
{
    listener_.reset();
    connections_.clear();
    owners_.clear();
}

const std::map<std::string_view, PeerServer::Handler>& PeerServer::handlers()
{
    static const std::map<std::string_view, Handler> table = {
        {"peer.hello", &PeerServer::hello},
        {"peer.ping", &PeerServer::ping},
        {"peer.list", &PeerServer::list},
        {"peer.session_open", &PeerServer::session_open},
        {"peer.probe_open", &PeerServer::probe_open},
        {"peer.session_close", &PeerServer::session_close},
        {"peer.session_adopt", &PeerServer::session_adopt},
        {"peer.grant", &PeerServer::grant},
        {"peer.grant_release", &PeerServer::grant_release},
        {"peer.writer_acquire", &PeerServer::writer_acquire},
        {"peer.writer_release", &PeerServer::writer_release},
    };
    return table;
}

// --- connections ---------------------------------------------------------------------------------

void PeerServer::accept(Fd socket, const std::string& from)
{
    if (connections_.size() >= config_.limits.control_connections) {
        if (log_limit_.allow())
            log::warn("a control connection from {} is refused: there are {} already; raise "
                      "[limits] control_connections",
                      from, connections_.size());
        return;
    }
    configure_tcp(socket.get(), kDeadAfter);
    const auto id = next_id_++;
    auto channel =
        Channel::create(loop_, std::move(socket), make_seal(config_.control, SealSide::acceptor),
                        {[this, id](const Request& request) { on_request(id, request); },
                         {},
                         [this, id](const Error& error) { on_end(id, error); }});
    if (!channel) {
        log::error("a control connection from {}: {}", from, channel.error().what);
        return;
    }
    auto& connection = connections_[id];
    connection.id = id;
    connection.from = from;
    connection.channel = std::move(*channel);
    connection.hello_timer = loop_.add_timer(kHelloTimeout, [this, id] {
        on_end(id, {ETIMEDOUT, "it did not say peer.hello in time"});
    });
}

void PeerServer::on_request(std::uint64_t id, const Request& request)
{
    const auto found = connections_.find(id);
    if (found == connections_.end())
        return;
    auto& connection = found->second;
    const auto handler = handlers().find(request.type);
    if (handler == handlers().end())
        request.responder.error({EOPNOTSUPP, fmt::format("smcfsd {} has no request \"{}\"",
                                                         SMC_VERSION, printable(request.type))});
    else if (!connection.node && handler->second != &PeerServer::hello)
        request.responder.error({EPROTO, "the first request must be peer.hello"});
    else
        (this->*handler->second)(connection, request);
}

void PeerServer::on_end(std::uint64_t id, const Error& error)
{
    const auto found = connections_.find(id);
    if (found == connections_.end())
        return;
    const auto& connection = found->second;
    const auto who = connection.node.value_or("an unknown node");
    if (error.code == ECONNRESET)
        log::debug("control connection of {} ({}) ended: {}", who, connection.from, error.what);
    else if (log_limit_.allow())
        log::warn("control connection of {} ({}) ended: {}", who, connection.from, error.what);
    drop(id);
}

void PeerServer::drop(std::uint64_t id)
{
    auto connection = connections_.extract(id);
    if (connection.empty())
        return;
    for (const auto session : connection.mapped().sessions) {
        owners_.erase(session);
        target_->session_disown(session);
    }
    connection.mapped().channel->close();
}

void PeerServer::claim(Connection& connection, SessionId session)
{
    if (const auto owner = owners_.find(session); owner != owners_.end())
        if (const auto other = connections_.find(owner->second); other != connections_.end())
            other->second.sessions.erase(session);
    owners_[session] = connection.id;
    connection.sessions.insert(session);
}

Result<SessionId> PeerServer::claimed_session(const Connection& connection, const Json& body) const
{
    const auto session = SMC_TRY(get_identity(body, "session"));
    if (!connection.sessions.contains(session))
        return fail(ESTALE, fmt::format("{} has no session {} on this connection: open or adopt it",
                                        *connection.node, identity_text(session)));
    return session;
}

void PeerServer::revoked(SessionId session, const std::string& name, Generation generation)
{
    const auto owner = owners_.find(session);
    if (owner == owners_.end())
        return;
    connections_.at(owner->second)
        .channel->notify("peer.revoked", {{"session", identity_text(session)},
                                          {"name", name},
                                          {"generation", identity_text(generation)}});
}

void PeerServer::session_lost(SessionId session, const std::string& reason)
{
    const auto owner = owners_.find(session);
    if (owner == owners_.end())
        return;
    connections_.at(owner->second)
        .channel->notify("peer.session_lost",
                         {{"session", identity_text(session)}, {"reason", reason}});
}

// --- requests ------------------------------------------------------------------------------------

void PeerServer::hello(Connection& connection, const Request& request)
{
    const auto version = get_unsigned(request.body, "version", UINT32_MAX);
    const auto node = get_string(request.body, "node");
    if (!version || !node) {
        request.responder.error(version ? node.error() : version.error());
        return;
    }
    if (auto valid = check_node_name(*node); !valid) {
        request.responder.error(valid.error());
        return;
    }
    if (*version != kProtocolVersion) {
        request.responder.error(
            {EPROTONOSUPPORT, fmt::format("protocol version {} is not supported, {} is: update "
                                          "smcfsd on one of the nodes",
                                          *version, kProtocolVersion)});
        return;
    }
    connection.node = *node;
    connection.hello_timer.reset();
    log::debug("{} ({}) is connected", *node, connection.from);
    request.responder.ok({{"version", kProtocolVersion},
                          {"node", config_.node},
                          {"software", "smcfsd " SMC_VERSION},
                          {"auth", to_string(config_.control.auth)}});
}

void PeerServer::ping(Connection&, const Request& request)
{
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    request.responder.ok(
        {{"time_us", std::chrono::duration_cast<std::chrono::microseconds>(now).count()}});
}

void PeerServer::list(Connection&, const Request& request)
{
    auto after = request.body.contains("after") ? get_string(request.body, "after")
                                                : Result<std::string>("");
    if (!after) {
        request.responder.error(after.error());
        return;
    }
    auto names = target_->names();
    std::sort(names.begin(), names.end());
    request.responder.ok(names_page(names, *after));
}

void PeerServer::session_open(Connection& connection, const Request& request)
{
    const auto session = get_identity(request.body, "session");
    if (!session) {
        request.responder.error(session.error());
        return;
    }
    const auto offer = target_->session_open(*session, *connection.node);
    if (!offer) {
        request.responder.error(offer.error());
        return;
    }
    claim(connection, *session);
    request.responder.ok(to_json(*offer));
}

void PeerServer::probe_open(Connection& connection, const Request& request)
{
    const auto offer = target_->probe_open(*connection.node);
    request.responder.from(offer, offer ? to_json(*offer) : Json());
}

void PeerServer::session_close(Connection& connection, const Request& request)
{
    // Of any connection: a client that lost its own comes back to close what it had.
    const auto session = get_identity(request.body, "session");
    if (!session) {
        request.responder.error(session.error());
        return;
    }
    if (const auto owner = owners_.find(*session); owner != owners_.end()) {
        connections_.at(owner->second).sessions.erase(*session);
        owners_.erase(owner);
    }
    connection.sessions.erase(*session);
    target_->session_close(*session, [responder = request.responder](const Result<void>& result) {
        responder.from(result, Json::object());
    });
}

void PeerServer::session_adopt(Connection& connection, const Request& request)
{
    const auto session = get_identity(request.body, "session");
    const auto result = session ? target_->session_adopt(*session)
                                : Result<void>(tl::unexpected<Error>(session.error()));
    if (result)
        claim(connection, *session);
    request.responder.from(result, Json::object());
}

void PeerServer::grant(Connection& connection, const Request& request)
{
    const auto session = claimed_session(connection, request.body);
    const auto name = region_name(request.body);
    const auto first = get_unsigned_or(request.body, "first", SMCFS_EXTENTS_MAX, 0);
    if (!session || !name || !first) {
        request.responder.error(!session ? session.error() : !name ? name.error() : first.error());
        return;
    }
    target_->grant(*session, *name,
                   [responder = request.responder, first = *first](const Result<Grant>& grant) {
                       responder.from(grant, grant ? to_json(*grant, first) : Json());
                   });
}

void PeerServer::grant_release(Connection& connection, const Request& request)
{
    const auto session = claimed_session(connection, request.body);
    const auto name = region_name(request.body);
    if (!session || !name) {
        request.responder.error(session ? name.error() : session.error());
        return;
    }
    target_->grant_release(*session, *name,
                           [responder = request.responder](const Result<void>& result) {
                               responder.from(result, Json::object());
                           });
}

void PeerServer::writer_acquire(Connection& connection, const Request& request)
{
    const auto session = claimed_session(connection, request.body);
    const auto name = region_name(request.body);
    if (!session || !name)
        request.responder.error(session ? name.error() : session.error());
    else
        request.responder.from(target_->writer_acquire(*session, *name), Json::object());
}

void PeerServer::writer_release(Connection& connection, const Request& request)
{
    const auto session = claimed_session(connection, request.body);
    const auto name = region_name(request.body);
    if (!session || !name)
        request.responder.error(session ? name.error() : session.error());
    else
        request.responder.from(target_->writer_release(*session, *name), Json::object());
}

} // namespace smc
