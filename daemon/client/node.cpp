// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
#include "client/node.hpp"

#include <fnmatch.h>

#include <algorithm>

#include <fmt/format.h>

#include "control/protocol.hpp"
#include "core/log.hpp"
#include "core/names.hpp"
#include "core/random.hpp"

namespace smc {
namespace {

constexpr std::size_t kWaitersMax = 4096;
constexpr std::size_t kNamesMax = 65536; // of one node's exports

ClientTimes times_of(const Config& config)
{
    return {Milliseconds(config.timeouts.connect_ms), Milliseconds(config.timeouts.bind_ms),
            Milliseconds(config.retry.first_ms), Milliseconds(config.retry.cap_ms),
            Milliseconds(config.retry.window_ms)};
}

Result<void> no_value(const Result<Json>& answer)
{
    return answer ? Result<void>() : Result<void>(tl::unexpected<Error>(answer.error()));
}

template <class T, class Read>
Result<T> read_answer(const Result<Json>& answer, Read read)
{
    return answer ? read(*answer) : Result<T>(tl::unexpected<Error>(answer.error()));
}

} // namespace

Node::Node(const Context& context, PeerConfig peer)
    : context_(context), name_(peer.name),
      link_({context.loop, context.resolver, context.config.control, context.config.node,
             Milliseconds(context.config.timeouts.connect_ms)},
            std::move(peer), *this),
      binder_(name_, *this, times_of(context.config))
{
    const Milliseconds idle(-1);
    session_timer_ = context_.loop.add_timer(idle, [this] { binder_.keeper().on_timer(); });
    bind_timer_ = context_.loop.add_timer(idle, [this] { binder_.on_bind_timer(); });
    rebind_timer_ = context_.loop.add_timer(idle, [this] { binder_.on_rebind_timer(); });
}

void Node::configure(PeerConfig peer)
{
    link_.configure(std::move(peer), Milliseconds(context_.config.timeouts.connect_ms));
    binder_.set_times(times_of(context_.config));
    failure_.reset(); // it may have been what was changed
}

bool Node::unused() const
{
    return waiters_.empty() && link_.state() != Link::State::connecting && !binder_.has_regions() &&
           binder_.keeper().phase() == SessionPhase::idle;
}

void Node::adopt(const std::vector<KernelSession>& sessions,
                 const std::vector<KernelRegion>& regions)
{
    session_since_ = now();
    link_.set_wanted(true);
    // In this order: a session that nobody needs yet is kept for a moment.
    binder_.keeper().adopt(sessions);
    binder_.adopt(regions);
}

// --- the control connection ----------------------------------------------------------------------

void Node::with_link(Memory memory, LinkWaiter waiter)
{
    if (link_.up()) {
        waiter({});
        return;
    }
    if (memory == Memory::used && failure_ && now() < failure_until_) {
        waiter(tl::unexpected<Error>(*failure_));
        return;
    }
    if (waiters_.size() >= kWaitersMax) {
        waiter(fail(EBUSY, fmt::format("too many requests wait for {} already", name_)));
        return;
    }
    waiters_.push_back(std::move(waiter));
    link_.open();
}

void Node::on_link_up()
{
    failure_.reset();
    publish_state("");
    log::info("connected to {} ({} port {})", name_, peer().address, peer().port);
    for (const auto& waiter : std::exchange(waiters_, {}))
        waiter({});
    binder_.keeper().on_link_up();
}

void Node::on_link_failed(const Error& error)
{
    failure_ = error;
    failure_until_ = now() + Binder::kFailureKept;
    publish_state(error.what);
    for (const auto& waiter : std::exchange(waiters_, {}))
        waiter(tl::unexpected<Error>(error));
    binder_.keeper().on_link_failed(error);
}

void Node::on_link_lost(const Error& error)
{
    log::warn("{}", error.what);
    publish_state(error.what);
    binder_.keeper().on_link_lost(error);
}

void Node::on_link_notice(const std::string& type, const Json& body)
{
    const auto session = get_identity(body, "session");
    if (!session)
        return;
    if (type == "peer.revoked") {
        const auto name = get_string(body, "name");
        const auto generation = get_identity(body, "generation");
        if (name && generation)
            binder_.on_revoked(*session, *name, *generation);
    } else if (type == "peer.session_lost") {
        const auto reason = get_string(body, "reason").value_or("no reason given");
        binder_.keeper().on_broken(*session,
                                   {ECONNRESET, fmt::format("{} says that the session is lost: {}",
                                                            name_, printable(reason))});
    }
}

void Node::publish_state(const std::string& reason)
{
    context_.publish({{"kind", "peer"},
                      {"node", name_},
                      {"state", to_string(link_.state())},
                      {"reason", reason.empty() ? Json() : Json(reason)}});
}

void Node::call(std::string_view type, Json body, Channel::Answer answer)
{
    link_.call(type, std::move(body), Milliseconds(context_.config.timeouts.bind_ms),
               std::move(answer));
}

void Node::list(Memory memory, std::function<void(Result<Names>)> done)
{
    with_link(memory, [this, done = std::move(done)](const Result<void>& link) {
        if (link)
            list_page("", {}, done);
        else
            done(tl::unexpected<Error>(link.error()));
    });
}

void Node::list_page(const std::string& after, Names names, std::function<void(Result<Names>)> done)
{
    Json body = Json::object();
    if (!after.empty())
        body["after"] = after;
    call("peer.list", std::move(body),
         [this, after, names = std::move(names),
          done = std::move(done)](const Result<Json>& answer) mutable {
             if (!answer) {
                 done(tl::unexpected<Error>(answer.error()));
                 return;
             }
             const auto page = answer->find("regions");
             const auto more = get_bool_or(*answer, "more", false);
             std::string last = after;
             for (const auto& name : page != answer->end() ? *page : Json::array()) {
                 if (!name.is_string() || !check_region_name(name.get<std::string>()))
                     continue;
                 last = std::max(last, name.get<std::string>());
                 names.push_back(name.get<std::string>());
             }
             if (more.value_or(false) && last > after && names.size() < kNamesMax)
                 list_page(last, std::move(names), std::move(done));
             else
                 done(std::move(names));
         });
}

// --- requests to the target ----------------------------------------------------------------------

void Node::link_open()
{
    // From the loop: whoever asks is in the middle of a decision.
    context_.loop.defer([this, alive = std::weak_ptr(alive_)] {
        if (alive.expired())
            return;
        if (link_.up())
            binder_.keeper().on_link_up();
        else
            link_.open();
    });
}

void Node::session_open(SessionId session)
{
    call("peer.session_open", {{"session", identity_text(session)}, {"node", context_.config.node}},
         [this, session](const Result<Json>& answer) {
             auto offer = read_answer<SessionOffer>(answer, offer_from_json);
             if (offer && !peer().rdma_addresses.empty())
                 offer->addresses = peer().rdma_addresses;
             binder_.keeper().on_offer(session, offer);
         });
}

void Node::session_close(SessionId session)
{
    call("peer.session_close", {{"session", identity_text(session)}},
         [this, session](const Result<Json>& answer) {
             binder_.keeper().on_closed(session, no_value(answer));
         });
}

void Node::session_adopt(SessionId session)
{
    call("peer.session_adopt", {{"session", identity_text(session)}},
         [this, session](const Result<Json>& answer) {
             binder_.keeper().on_adopted(session, no_value(answer));
         });
}

void Node::call_named(std::string_view type, SessionId session, const std::string& name,
                      Channel::Answer answer)
{
    call(type, {{"session", identity_text(session)}, {"name", name}}, std::move(answer));
}

void Node::grant(SessionId session, const std::string& name)
{
    grant_page(session, name, {});
}

void Node::grant_page(SessionId session, const std::string& name, GrantReader so_far)
{
    Json body{{"session", identity_text(session)}, {"name", name}};
    if (so_far.next() != 0)
        body["first"] = so_far.next();
    call("peer.grant", std::move(body),
         [this, session, name, so_far = std::move(so_far)](const Result<Json>& answer) mutable {
             const auto more = read_answer<bool>(
                 answer, [&so_far](const Json& page) { return so_far.add(page); });
             if (!more)
                 binder_.on_grant(session, name, tl::unexpected<Error>(more.error()));
             else if (*more)
                 grant_page(session, name, std::move(so_far));
             else
                 binder_.on_grant(session, name, so_far.take());
         });
}

void Node::grant_release(SessionId session, const std::string& name)
{
    call_named("peer.grant_release", session, name, [this, name](const Result<Json>& answer) {
        if (!answer)
            log::debug("{}:{}: {}", name_, name, answer.error().what);
        binder_.on_released(name);
    });
}

void Node::writer_acquire(SessionId session, const std::string& name)
{
    call_named("peer.writer_acquire", session, name,
               [this, session, name](const Result<Json>& answer) {
                   binder_.on_writer(session, name, no_value(answer));
               });
}

void Node::writer_release(SessionId session, const std::string& name)
{
    call_named("peer.writer_release", session, name, [this, name](const Result<Json>& answer) {
        if (!answer)
            log::debug("{}:{}: {}", name_, name, answer.error().what);
    });
}

// --- requests to the kernel ----------------------------------------------------------------------

Result<void> Node::kernel_connect(SessionId session, const SessionOffer& offer,
                                  const std::string& address, Milliseconds timeout)
{
    session_since_ = now();
    link_.set_wanted(true);
    SessionConnect connect;
    connect.session = session;
    connect.node = name_;
    connect.address = address;
    connect.port = offer.port;
    connect.source_address = peer().source_address;
    connect.token_read = offer.token_read;
    connect.token_bulk = offer.token_bulk;
    connect.request_timeout_ms =
        peer().request_timeout_ms.value_or(context_.config.timeouts.request_ms);
    connect.connect_timeout_ms = static_cast<std::uint32_t>(timeout.count());
    return context_.kernel.session_connect(connect);
}

Result<void> Node::kernel_delete(SessionId session)
{
    link_.set_wanted(false); // the next one sets it again
    return context_.kernel.session_del(session);
}

Result<RegionId> Node::kernel_attach(SessionId session, const std::string& name, const Grant& grant)
{
    const auto region = SMC_TRY(context_.kernel.region_attach({name_, name, session, grant}));
    std::optional<bool> cto;
    std::optional<std::uint32_t> flush_after_ms;
    const auto path = name_ + "/" + name;
    for (const auto& rule : context_.config.regions) {
        if (::fnmatch(rule.match.c_str(), path.c_str(), 0) != 0)
            continue;
        cto = rule.cto.has_value() ? rule.cto : cto;
        flush_after_ms = rule.flush_after_ms.has_value() ? rule.flush_after_ms : flush_after_ms;
    }
    if (cto || flush_after_ms)
        if (auto set = context_.kernel.region_set(region, cto, flush_after_ms); !set)
            log::warn("{}: parameters of the configuration are not set: {}", path,
                      set.error().what);
    return region;
}

void Node::kernel_bind_fail(const std::string& name, int error)
{
    if (auto result = context_.kernel.bind_fail(name_, name, error); !result)
        log::debug("{}:{}: {}", name_, name, result.error().what);
}

void Node::kernel_revoke(RegionId region)
{
    context_.kernel.region_revoke(region, [name = name_,
                                           region](const Result<std::uint64_t>& result) {
        if (!result && result.error().code != ENOENT)
            log::error("region {} of {} cannot be revoked: {}", region, name, result.error().what);
        else if (result && *result > 0)
            log::warn("region {} of {}: {} bytes were discarded", region, name, *result);
    });
}

void Node::kernel_writer_result(RegionId region, int error)
{
    if (auto result = context_.kernel.writer_result(region, error); !result)
        log::debug("region {} of {}: {}", region, name_, result.error().what);
}

// --- clocks --------------------------------------------------------------------------------------

EventLoop::Source& Node::timer(Timer which)
{
    switch (which) {
    case Timer::bind:
        return bind_timer_;
    case Timer::rebind:
        return rebind_timer_;
    case Timer::session:
        break;
    }
    return session_timer_;
}

void Node::arm(Timer which, Milliseconds delay)
{
    timer(which).rearm(delay);
}

void Node::disarm(Timer which)
{
    timer(which).disarm();
}

double Node::random()
{
    return static_cast<double>(random_identity() >> 11) * 0x1p-53;
}

SessionId Node::new_session_id()
{
    return random_identity();
}

Json Node::session_json() const
{
    const auto& keeper = binder_.keeper();
    if (keeper.session() == 0 && keeper.phase() == SessionPhase::idle)
        return {};
    const auto age = std::chrono::duration_cast<std::chrono::seconds>(now() - session_since_);
    Json json{{"session", identity_text(keeper.session())},
              {"node", name_},
              {"state", to_string(keeper.phase())},
              {"age_s", keeper.live() ? static_cast<std::uint64_t>(age.count()) : 0},
              {"reason", keeper.live() || keeper.last_error().what.empty()
                             ? Json()
                             : Json(keeper.last_error().what)}};
    put_names(json, "regions", binder_.region_names());
    put_names(json, "writes", binder_.written_names());
    return json;
}

} // namespace smc
