// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
#include <fmt/format.h>

#include "core/random.hpp"
#include "target/target_impl.hpp"

namespace smc {

Result<Session*> Target::Impl::add_session(SessionParams params)
{
    if (params.id == 0)
        return fail(EINVAL, "session 0 is none");
    if (sessions_.count(params.id) != 0)
        return fail(EEXIST,
                    fmt::format("session {:016x} exists already: close it or choose another "
                                "id",
                                params.id));
    if (sessions_.size() >= options_.sessions_max)
        return fail(EUSERS, fmt::format("{} sessions, which is the limit", options_.sessions_max));

    const auto id = params.id;
    // By id, since what fails is acted on later, when the session may be another one.
    const auto incarnation = std::make_shared<std::uint64_t>(0);
    auto with_session = [this, id, incarnation](auto&& action) {
        const auto found = sessions_.find(id);
        if (found != sessions_.end() && found->second->incarnation == *incarnation)
            action(*found->second);
    };
    auto session = std::make_unique<Session>(
        loop_, std::move(params),
        [this, with_session](const std::string& reason) {
            defer([this, with_session, reason] {
                with_session([&](Session& failed) { lose(failed, reason); });
            });
        },
        [this, with_session] {
            defer([this, with_session] { with_session([this](Session& due) { on_timer(due); }); });
        });
    *incarnation = session->incarnation;
    return sessions_.emplace(id, std::move(session)).first->second.get();
}

Result<SessionOffer> Target::Impl::session_open(SessionId id, const std::string& node)
{
    SessionOffer offer;
    offer.addresses = SMC_TRY(offered_addresses());
    SessionParams params;
    params.id = id;
    params.node = node;
    params.extent_max = options_.extent_bytes_max;
    const auto* session = SMC_TRY(add_session(std::move(params)));
    offer.port = options_.port;
    offer.token_read = session->token(QpRole::read);
    offer.token_bulk = session->token(QpRole::bulk);
    return offer;
}

Result<ProbeOffer> Target::Impl::probe_open(const std::string& node)
{
    ProbeOffer offer;
    offer.addresses = SMC_TRY(offered_addresses());
    SessionParams params;
    params.id = random_identity();
    params.node = node;
    params.kind = SessionKind::probe;
    params.probe_memory = &*probe_memory_;
    const auto* session = SMC_TRY(add_session(std::move(params)));
    offer.port = options_.port;
    offer.session = session->id();
    offer.token = session->token(QpRole::read);
    return offer;
}

void Target::Impl::on_connect(IncomingConnection incoming)
{
    if (auto connected = connect(incoming); !connected) {
        if (reject_log_.allow())
            log::warn("refused an RDMA connection from {} on {}: {}{}", incoming.peer,
                      incoming.device, connected.error().what,
                      reject_log_.suppressed() != 0
                          ? fmt::format(" ({} more refused)", reject_log_.suppressed())
                          : "");
        reject(std::move(incoming.id));
    }
}

Result<void> Target::Impl::connect(IncomingConnection& incoming)
{
    const auto request = SMC_TRY(parse_connect_request(incoming.private_data));
    const auto found = sessions_.find(request.session);
    if (found == sessions_.end())
        return fail(ESTALE, fmt::format("unknown session {:016x}", request.session));
    if (!serves(incoming.device))
        return fail(EACCES, "the configuration excludes this RDMA device");
    const auto device = SMC_TRY(this->device(incoming.device));
    auto& session = *found->second;
    if (auto accepted = session.accept(device, request, incoming); !accepted)
        return fail(accepted.error().code,
                    fmt::format("session {:016x} of {}, {} QP: {}", session.id(), session.node(),
                                to_string(request.role), accepted.error().what));
    if (session.state() == SessionState::live)
        log::info("session {:016x} of {} is live on {}", session.id(), session.node(),
                  session.device());
    return {};
}

void Target::Impl::lose(Session& session, const std::string& reason)
{
    if (session.state() == SessionState::lost)
        return;
    session.lose();
    if (session.kind() == SessionKind::probe) {
        erase_session(session.id());
        return;
    }
    log::warn("session {:016x} of {} is lost: {}", session.id(), session.node(), reason);
    defer([this, id = session.id(), reason] { events_.session_lost(id, reason); });
}

void Target::Impl::on_timer(Session& session)
{
    switch (session.state()) {
    case SessionState::offered:
    case SessionState::connecting:
        lose(session, "the client did not connect both QPs in time");
        break;
    case SessionState::live:
        if (session.claimed())
            break;
        // No answer takes the QP to error. One that came: ask again.
        session.check_alive([&session](const Result<void>& alive) {
            if (alive)
                session.arm_timer();
        });
        break;
    case SessionState::lost:
        if (session.claimed())
            break;
        log::info("session {:016x} of {} is forgotten", session.id(), session.node());
        erase_session(session.id());
        break;
    }
}

void Target::Impl::release_writers(SessionId id)
{
    for (const auto& [name, entry] : exports_.entries())
        if (entry->writer == id)
            entry->writer.reset();
}

void Target::Impl::erase_session(SessionId id)
{
    release_writers(id);
    sessions_.erase(id);
}

void Target::Impl::session_close(SessionId id, Done<void> done)
{
    if (const auto found = sessions_.find(id); found != sessions_.end()) {
        if (found->second->state() != SessionState::lost)
            found->second->lose(); // QPs are destroyed when this returns
        erase_session(id);
        log::info("session {:016x} is closed", id);
    }
    answer<void>(std::move(done), {});
}

Result<Session*> Target::Impl::require_session(SessionId id) const
{
    const auto found = sessions_.find(id);
    if (found == sessions_.end() || found->second->state() == SessionState::lost ||
        found->second->kind() == SessionKind::probe)
        return fail(ESTALE, fmt::format("session {:016x} is {} here: open a new one", id,
                                        found == sessions_.end() ? "unknown" : "lost"));
    return found->second.get();
}

Result<void> Target::Impl::session_adopt(SessionId id)
{
    SMC_TRY(require_session(id))->set_claimed(true);
    return {};
}

void Target::Impl::session_disown(SessionId id)
{
    const auto found = sessions_.find(id);
    if (found == sessions_.end())
        return;
    if (found->second->kind() == SessionKind::probe)
        session_close(id, [](const Result<void>&) {});
    else
        found->second->set_claimed(false);
}

void Target::Impl::grant(SessionId id, const std::string& name, Done<Grant> done)
{
    if (const auto opening = openings_.find(name); opening != openings_.end()) {
        opening->second.grants.push_back([this, id, name, done] { grant(id, name, done); });
        return;
    }
    const auto start = [&]() -> Result<void> {
        auto* session = SMC_TRY(require_session(id));
        auto* entry = SMC_TRY(exports_.require(name));
        if (session->state() != SessionState::live)
            return fail(ENOTCONN, fmt::format("the QPs of session {:016x} are not connected", id));
        session->grant(*entry, [this, id, name, done](Result<Grant> result) {
            defer([this, id, name, done, result = std::move(result)] {
                if (const auto found = sessions_.find(id); !result && found != sessions_.end())
                    found->second->drop_released(name);
                done(result);
            });
        });
        return {};
    };
    if (auto started = start(); !started)
        answer<Grant>(std::move(done), tl::unexpected(std::move(started).error()));
}

void Target::Impl::grant_release(SessionId id, const std::string& name, Done<void> done)
{
    const auto found = sessions_.find(id);
    if (found == sessions_.end()) {
        answer<void>(std::move(done), {});
        return;
    }
    found->second->release(name, [this, id, name, done](const Result<void>& result) {
        defer([this, id, name, done, result] {
            if (const auto session = sessions_.find(id); session != sessions_.end())
                session->second->drop_released(name);
            // After the keys: who gets it next must not meet writes of this session.
            if (auto* entry = exports_.find(name); entry != nullptr && entry->writer == id)
                entry->writer.reset();
            done(result);
        });
    });
}

Result<void> Target::Impl::writer_acquire(SessionId id, const std::string& name)
{
    SMC_TRY(require_session(id));
    auto* entry = SMC_TRY(exports_.require(name));
    if (entry->readonly)
        return fail(EROFS, fmt::format("\"{}\" is exported read-only", name));
    if (entry->writer && *entry->writer != id) {
        const auto holder = sessions_.find(*entry->writer);
        return fail(EBUSY,
                    fmt::format("node {} holds the writing right of \"{}\"",
                                holder != sessions_.end() ? holder->second->node() : "?", name));
    }
    entry->writer = id;
    return {};
}

Result<void> Target::Impl::writer_release(SessionId id, const std::string& name)
{
    auto* entry = SMC_TRY(exports_.require(name));
    if (entry->writer == id)
        entry->writer.reset();
    return {};
}

std::vector<SessionInfo> Target::Impl::session_infos() const
{
    std::vector<SessionInfo> infos;
    for (const auto& [id, session] : sessions_) {
        if (session->kind() == SessionKind::probe)
            continue;
        auto info = session->info();
        for (const auto& [name, entry] : exports_.entries())
            if (entry->writer == id)
                info.writes.push_back(name);
        infos.push_back(std::move(info));
    }
    return infos;
}

// --- the class itself ----------------------------------------------------------------------------

Result<SessionOffer> Target::session_open(SessionId session, const std::string& node)
{
    return impl_->session_open(session, node);
}

Result<ProbeOffer> Target::probe_open(const std::string& node)
{
    return impl_->probe_open(node);
}

void Target::session_close(SessionId session, Done<void> done)
{
    impl_->session_close(session, std::move(done));
}

Result<void> Target::session_adopt(SessionId session)
{
    return impl_->session_adopt(session);
}

void Target::session_disown(SessionId session)
{
    impl_->session_disown(session);
}

void Target::grant(SessionId session, const std::string& name, Done<Grant> done)
{
    impl_->grant(session, name, std::move(done));
}

void Target::grant_release(SessionId session, const std::string& name, Done<void> done)
{
    impl_->grant_release(session, name, std::move(done));
}

Result<void> Target::writer_acquire(SessionId session, const std::string& name)
{
    return impl_->writer_acquire(session, name);
}

Result<void> Target::writer_release(SessionId session, const std::string& name)
{
    return impl_->writer_release(session, name);
}

std::vector<SessionInfo> Target::sessions() const
{
    return impl_->session_infos();
}

} // namespace smc
