// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
#include "client/link.hpp"

#include <fmt/format.h>

#include "control/protocol.hpp"
#include "core/log.hpp"

namespace smc {

const char* to_string(Link::State state)
{
    switch (state) {
    case Link::State::idle:
        return "idle";
    case Link::State::connecting:
        return "connecting";
    case Link::State::up:
        return "up";
    case Link::State::failed:
        return "failed";
    }
    return "unknown";
}

Link::Link(Context context, PeerConfig peer, LinkEvents& events)
    : context_(std::move(context)), peer_(std::move(peer)), events_(events)
{
    ticker_ = context_.loop.add_timer(Milliseconds(-1), [this] { tick(); });
}

// One that is up stays while it is of use: what it leads to is the same node, for all that is known.
void Link::configure(PeerConfig peer, Milliseconds connect_timeout)
{
    const bool moved = peer.address != peer_.address || peer.port != peer_.port;
    peer_ = std::move(peer);
    context_.connect_timeout = connect_timeout;
    if (!moved)
        return;
    if (state_ == State::up) {
        moved_ = true;
        tick();
    } else if (state_ == State::connecting) { // to where the node is not
        close();
        open();
    }
}

void Link::set_state(State state)
{
    state_ = state;
    since_ = Clock::now();
}

std::uint64_t Link::seconds_in_state() const
{
    return static_cast<std::uint64_t>(
        std::chrono::duration_cast<std::chrono::seconds>(Clock::now() - since_).count());
}

void Link::open()
{
    if (state_ == State::connecting || state_ == State::up)
        return;
    set_state(State::connecting);
    moved_ = false;
    connect_ = std::make_unique<TcpConnect>(
        context_.loop, context_.resolver,
        TcpConnect::To{peer_.address, peer_.port, context_.connect_timeout},
        [this](Result<Fd> socket) { on_connected(std::move(socket)); });
}

void Link::on_connected(Result<Fd> socket)
{
    // This runs inside of TcpConnect, which allows it.
    connect_.reset();
    if (!socket) {
        fail_connect(socket.error());
        return;
    }
    configure_tcp(socket->get(), kPingInterval * kPingsMissed);
    auto channel = Channel::create(
        context_.loop, std::move(*socket), make_seal(context_.control, SealSide::initiator),
        {{},
         [this](const std::string& type, const Json& body) { events_.on_link_notice(type, body); },
         [this](const Error& error) { on_end(error); }});
    if (!channel) {
        fail_connect(channel.error());
        return;
    }
    channel_ = std::move(*channel);
    channel_->call("peer.hello",
                   {{"version", kProtocolVersion},
                    {"node", context_.node},
                    {"software", "smcfsd " SMC_VERSION}},
                   context_.connect_timeout,
                   [this](const Result<Json>& answer) { on_hello(answer); });
}

void Link::on_hello(const Result<Json>& answer)
{
    if (state_ != State::connecting)
        return;
    if (!answer) {
        fail_connect(
            {answer.error().code, fmt::format("{} ({} port {}): {}", peer_.name, peer_.address,
                                              peer_.port, answer.error().what)});
        return;
    }
    remote_name_ = printable(get_string(*answer, "node").value_or(""));
    if (remote_name_ != peer_.name)
        log::debug("the peer {} calls itself {}", peer_.name, remote_name_);
    error_.clear();
    set_state(State::up);
    used_ = Clock::now();
    pings_unanswered_ = 0;
    ticker_.rearm(kPingInterval);
    events_.on_link_up();
}

void Link::fail_connect(const Error& error)
{
    if (channel_)
        channel_->close();
    channel_.reset();
    connect_.reset();
    error_ = error.what;
    set_state(State::failed);
    events_.on_link_failed(error);
}

void Link::on_end(const Error& error)
{
    if (!channel_)
        return; // its hello failed a moment ago, by the same end
    const Error named{error.code,
                      fmt::format("control connection to {}: {}", peer_.name, error.what)};
    if (state_ == State::connecting) {
        fail_connect(named);
        return;
    }
    channel_.reset();
    ticker_.disarm();
    error_ = named.what;
    set_state(State::failed);
    events_.on_link_lost(named);
}

void Link::close()
{
    if (channel_)
        channel_->close();
    channel_.reset();
    connect_.reset();
    ticker_.disarm();
    set_state(State::idle);
}

void Link::call(std::string_view type, Json body, Milliseconds timeout, Channel::Answer answer)
{
    used_ = Clock::now();
    if (up()) {
        channel_->call(type, std::move(body), timeout, std::move(answer));
        return;
    }
    context_.loop.defer([answer = std::move(answer), name = peer_.name] {
        answer(fail(ECONNRESET, fmt::format("no control connection to {}", name)));
    });
}

void Link::tick()
{
    if (!up())
        return;
    if (pings_unanswered_ >= kPingsMissed) {
        channel_->abort({ETIMEDOUT, fmt::format("{} heartbeats were not answered", kPingsMissed)});
        return;
    }
    if (!wanted_ && channel_->idle() && (moved_ || Clock::now() - used_ > kIdleTimeout)) {
        close();
        return;
    }
    ticker_.rearm(kPingInterval);
    if (!wanted_)
        return;
    ++pings_unanswered_;
    channel_->call("peer.ping", Json::object(), kPingInterval * kPingsMissed,
                   [this](const Result<Json>& answer) {
                       if (answer)
                           pings_unanswered_ = 0;
                   });
}

} // namespace smc
