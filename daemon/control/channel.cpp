// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
#include "control/channel.hpp"

#include <fmt/format.h>

#include "core/log.hpp"

namespace smc {

struct Channel::Responder::State {
    std::weak_ptr<Channel> channel;
    std::uint64_t id;
    bool answered = false;

    State(std::weak_ptr<Channel> to, std::uint64_t request) : channel(std::move(to)), id(request) {}
    State(const State&) = delete;
    State& operator=(const State&) = delete;
    ~State() { answer(make_error_reply(id, {EIO, "the request was dropped"})); }

    void answer(const Json& message)
    {
        if (std::exchange(answered, true))
            return;
        if (const auto to = channel.lock())
            to->reply(id, message);
    }
};

Channel::Responder::Responder(std::weak_ptr<Channel> channel, std::uint64_t id)
    : state_(std::make_shared<State>(std::move(channel), id))
{}

void Channel::Responder::ok(Json result) const
{
    state_->answer(make_reply(state_->id, std::move(result)));
}

void Channel::Responder::error(const Error& error) const
{
    state_->answer(make_error_reply(state_->id, error));
}

Result<std::shared_ptr<Channel>> Channel::create(EventLoop& loop, Fd socket,
                                                 std::unique_ptr<Seal> seal, Callbacks callbacks)
{
    std::shared_ptr<Channel> channel(new Channel(loop, std::move(seal), std::move(callbacks)));
    auto* raw = channel.get();
    channel->stream_ =
        SMC_TRY(Stream::create(loop, std::move(socket),
                               {[raw](const std::string& frame) { raw->on_frame(frame); },
                                [raw](const Error& error) { raw->end(error); }}));
    return channel;
}

Channel::~Channel() = default;

void Channel::call(std::string_view type, Json body, Milliseconds timeout, Answer answer)
{
    if (ended_ || calls_.size() >= kCallsMax) {
        Error error =
            ended_ ? Error{ECONNRESET, "the connection has ended"}
                   : Error{EBUSY, fmt::format("{} requests wait for an answer already", kCallsMax)};
        loop_.defer([answer = std::move(answer), error = std::move(error)] {
            answer(tl::unexpected<Error>(error));
        });
        return;
    }
    const auto id = next_id_++;
    auto timer = loop_.add_timer(timeout, [this, id, type = std::string(type), timeout] {
        finish_call(id, fail(ETIMEDOUT,
                             fmt::format("no answer to {} within {} ms", type, timeout.count())));
    });
    calls_.emplace(id, Call{std::move(answer), std::move(timer)});
    send(make_request(id, type, std::move(body)));
}

void Channel::notify(std::string_view type, Json body)
{
    body["type"] = type;
    send(body);
}

void Channel::close()
{
    ended_ = true;
    calls_.clear();
    stream_->close();
}

void Channel::on_frame(const std::string& frame)
{
    const auto self = shared_from_this(); // a callback may release the owner's reference
    const auto message = seal_->unwrap(frame);
    if (!message) {
        // A peer with another idea of `auth` says so in plain text. It proves nothing, but the
        // channel ends anyway.
        const auto plain = parse_object(frame);
        const auto type = plain ? get_string(*plain, "type") : Result<std::string>("");
        if (plain && type && *type == "error")
            end(refusal(*plain));
        else
            violation(message.error());
        return;
    }
    const auto object = parse_object(*message);
    if (!object)
        violation(object.error());
    else
        on_message(*object);
}

void Channel::on_message(const Json& object)
{
    auto envelope = read_envelope(object);
    if (!envelope) {
        violation(envelope.error());
        return;
    }
    switch (envelope->kind) {
    case Envelope::Kind::request:
        serve(std::move(*envelope), object);
        break;
    case Envelope::Kind::reply: {
        const auto error = reply_error(object);
        finish_call(envelope->id,
                    error ? Result<Json>(tl::unexpected<Error>(*error)) : Result<Json>(object));
        break;
    }
    case Envelope::Kind::notice:
        if (envelope->type == "error")
            end(refusal(object));
        else if (callbacks_.on_notice)
            callbacks_.on_notice(envelope->type, object);
        break;
    }
}

void Channel::serve(Envelope envelope, Json body)
{
    if (++serving_ >= kServingMax)
        stream_->pause(true);
    Responder responder(weak_from_this(), envelope.id);
    if (!callbacks_.on_request)
        responder.error({EOPNOTSUPP, "this side of the connection serves no requests"});
    else
        callbacks_.on_request({std::move(envelope.type), std::move(body), std::move(responder)});
}

void Channel::finish_call(std::uint64_t id, Result<Json> result)
{
    // An answer that nobody waits for (any more) is no violation: the call may have timed out.
    auto call = calls_.extract(id);
    if (!call.empty())
        call.mapped().answer(std::move(result));
}

void Channel::reply(std::uint64_t id, const Json& message)
{
    if (serving_-- >= kServingMax)
        stream_->pause(false);
    if (ended_)
        return;
    const auto text = seal_->wrap(dump(message));
    const auto sent = text ? stream_->send(*text) : Result<void>(tl::unexpected(text.error()));
    if (sent)
        return;
    Error error = sent.error();
    if (error.code == EMSGSIZE)
        error.what = "the answer is longer than a message can be: " + error.what;
    const auto fallback = seal_->wrap(dump(make_error_reply(id, error)));
    if (!fallback || !stream_->send(*fallback))
        log::error("an answer could not be sent: {}", error.what);
}

void Channel::send(const Json& message)
{
    if (ended_)
        return;
    const auto frame = seal_->wrap(dump(message));
    const auto sent = frame ? stream_->send(*frame) : Result<void>(fail(0, ""));
    if (frame && sent)
        return;
    const Error error = frame ? sent.error() : frame.error();
    loop_.defer([self = weak_from_this(), error] {
        if (const auto channel = self.lock())
            channel->end(error);
    });
}

// What an `error` notice means here. It is not sealed, so only one errno is taken over.
Error Channel::refusal(const Json& notice) const
{
    const auto theirs = get_string(notice, "auth");
    if (theirs && *theirs != to_string(seal_->auth()) && (*theirs == "munge" || *theirs == "none"))
        return auth_mismatch(*theirs, seal_->auth());
    const auto given = *reply_error(notice);
    return {given.code == EACCES ? EACCES : EPROTO, "the other side refuses: " + given.what};
}

void Channel::violation(const Error& error)
{
    const Json notice{{"type", "error"},
                      {"errno", error.code},
                      {"error", error.what},
                      {"auth", to_string(seal_->auth())}};
    // Unsealed: whoever broke the protocol may not be able to read a sealed one.
    if (auto sent = stream_->send(dump(notice)); !sent)
        log::debug("an error notice could not be sent: {}", sent.error().what);
    end(error);
}

void Channel::end(const Error& error)
{
    if (std::exchange(ended_, true))
        return;
    const auto self = shared_from_this();
    stream_->close();
    auto calls = std::move(calls_);
    calls_.clear();
    for (auto& [id, call] : calls)
        call.answer(tl::unexpected<Error>(error));
    callbacks_.on_end(error);
}

} // namespace smc
