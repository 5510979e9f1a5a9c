// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
#include "client/node.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "control/protocol.hpp"
#include "core/log.hpp"
#include "core/names.hpp"

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
