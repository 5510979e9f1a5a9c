// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// Requests, answers and notices (docs/protocol.md) over a Stream, in both directions.
//
// Owns: the stream, the seal, calls that wait for an answer.
// Lifetime: shared by its owner and, weakly, by the Responders of requests that are being served:
// an answer to a connection that has ended goes nowhere. May be released from within callbacks.
// Failure: a violation of the protocol ends the channel after an `error` notice. When it ends, every
// call fails, then on_end is called, once; both from the loop.
#pragma once

#include <map>
#include <memory>
#include <optional>

#include "control/message.hpp"
#include "control/seal.hpp"
#include "control/stream.hpp"

namespace smc {

class Channel : public std::enable_shared_from_this<Channel> {
public:
    static constexpr std::size_t kCallsMax = 1024; // of ours that wait for an answer
    static constexpr std::size_t kServingMax = 64; // of theirs; further ones are not read

    using Answer = std::function<void(Result<Json>)>;

    // Answers one request. A copy that answers second is ignored; when none answers the request
    // is answered with EIO once the last copy goes.
    class Responder {
    public:
        Responder(std::weak_ptr<Channel> channel, std::uint64_t id);
        void ok(Json result = Json::object()) const;
        void error(const Error& error) const;
        template <class T>
        void from(const Result<T>& result, Json json) const
        {
            if (result)
                ok(std::move(json));
            else
                error(result.error());
        }

    private:
        struct State;
        std::shared_ptr<State> state_; // shared by the copies in callbacks of one request
    };

    struct Request {
        std::string type;
        Json body;
        Responder responder;
    };

    struct Callbacks {
        std::function<void(Request)> on_request; // may be empty: EOPNOTSUPP
        std::function<void(const std::string& type, const Json& body)> on_notice; // may be empty
        std::function<void(const Error&)> on_end;
    };

    static Result<std::shared_ptr<Channel>> create(EventLoop& loop, Fd socket,
                                                   std::unique_ptr<Seal> seal, Callbacks callbacks);
    Channel(const Channel&) = delete;
    Channel& operator=(const Channel&) = delete;
    ~Channel();

    // answer is called once: with the result, the other side's error, ETIMEDOUT, or the channel's
    // end. Never from within call(), and not when the channel is destroyed before.
    void call(std::string_view type, Json body, Milliseconds timeout, Answer answer);
    void notify(std::string_view type, Json body);
    // False from the moment it ends: already when the calls fail.
    [[nodiscard]] bool open() const { return !ended_; }
    // No call waits for an answer.
    [[nodiscard]] bool idle() const { return calls_.empty(); }
    // Ends without on_end; calls that wait are dropped.
    void close();
    // Ends as if the connection had broken: calls fail, on_end follows, now.
    void abort(const Error& error) { end(error); }
    Fd take_fd() { return stream_->take_fd(); }
    [[nodiscard]] int fd() const { return stream_->fd(); }

private:
    struct Call {
        Answer answer;
        EventLoop::Source timer;
    };

    Channel(EventLoop& loop, std::unique_ptr<Seal> seal, Callbacks callbacks)
        : loop_(loop), seal_(std::move(seal)), callbacks_(std::move(callbacks))
    {}
    void on_frame(const std::string& frame);
    void on_message(const Json& object);
    void serve(Envelope envelope, Json body);
    void finish_call(std::uint64_t id, Result<Json> result);
    void send(const Json& message);
    void reply(std::uint64_t id, const Json& message);
    [[nodiscard]] Error refusal(const Json& notice) const;
    void violation(const Error& error);
    void end(const Error& error);

    EventLoop& loop_;
    std::unique_ptr<Seal> seal_;
    Callbacks callbacks_;
    std::unique_ptr<Stream> stream_;
    std::map<std::uint64_t, Call> calls_;
    std::uint64_t next_id_ = 1;
    std::size_t serving_ = 0;
    bool ended_ = false;
};

} // namespace smc
