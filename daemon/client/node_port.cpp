// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// Node, as the world of its Binder's decisions: requests to the target and the kernel, clocks.
#include <fnmatch.h>

#include <fmt/format.h>

#include "client/node.hpp"
#include "core/log.hpp"
#include "core/random.hpp"

namespace smc {
namespace {

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
    const auto path = name_ + "/" + name;
    RegionParams params;
    const auto& rules = context_.config.regions;
    for (auto rule = rules.rbegin(); rule != rules.rend(); ++rule)
        if (::fnmatch(rule->match.c_str(), path.c_str(), 0) == 0)
            params.fill_from(rule->params);
    set_params(region, path, grant.hints, SMCFS_ORIGIN_EXPORT);
    set_params(region, path, params, SMCFS_ORIGIN_CONFIG);
    return region;
}

// The kernel keeps what is of a higher origin.
void Node::set_params(RegionId region, const std::string& path, const RegionParams& params,
                      smcfs_origin origin)
{
    if (params == RegionParams{})
        return;
    if (auto set = context_.kernel.region_set(region, params, origin); !set)
        log::warn("{}: parameters of the {} are not set: {}", path,
                  origin == SMCFS_ORIGIN_EXPORT ? "export" : "configuration", set.error().what);
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

} // namespace smc
