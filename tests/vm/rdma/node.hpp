// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// A target in this process: a thread with event loop and Target, and calls into it that wait.
#pragma once

#include <condition_variable>
#include <future>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "event_loop.hpp"
#include "initiator.hpp"
#include "target/target.hpp"

namespace smc::test {

// How long any single step may take, on a busy emulated machine.
inline constexpr std::chrono::seconds kPatience{60};

struct Event {
    std::string kind; // "revoked", "lost"
    SessionId session = 0;
    std::string detail; // region, reason
    bool operator==(const Event&) const = default;
};

class Node final : private TargetEvents {
public:
    explicit Node(TargetOptions options = {});
    ~Node() override;
    Node(const Node&) = delete;
    Node& operator=(const Node&) = delete;

    // Runs on the loop's thread.
    template <class F>
    auto call(F function)
    {
        using R = decltype(function(std::declval<Target&>()));
        std::promise<R> promise;
        auto future = promise.get_future();
        loop_->post([&] {
            if constexpr (std::is_void_v<R>) {
                function(*target_);
                promise.set_value();
            } else {
                promise.set_value(function(*target_));
            }
        });
        return take(future);
    }
    // The same for what answers later: function(target, done).
    template <class T, class F>
    Result<T> wait(F function)
    {
        auto promise = std::make_shared<std::promise<Result<T>>>();
        auto future = promise->get_future();
        loop_->post([&function, this, promise] {
            function(*target_,
                     [promise](Result<T> result) { promise->set_value(std::move(result)); });
        });
        return take(future);
    }

    ExportInfo export_host(const std::string& name, std::uint64_t length_bytes);
    Result<Grant> grant(SessionId session, const std::string& name);
    Result<void> release(SessionId session, const std::string& name);
    Result<void> close(SessionId session);
    Result<void> unexport(const std::string& name);
    // Waits until it happened; false after kPatience.
    bool saw(const Event& event);
    bool saw_lost(SessionId session);
    // An address of the Target, numeric.
    std::string address();

private:
    template <class T>
    T take(std::future<T>& future)
    {
        if (future.wait_for(kPatience) != std::future_status::ready) {
            std::fprintf(stderr, "rdma-target: the target did not answer\n");
            std::abort();
        }
        return future.get();
    }
    void revoked(SessionId session, const std::string& name, Generation generation) override;
    void session_lost(SessionId session, const std::string& reason) override;
    void note(Event event);
    template <class P>
    bool await(P predicate);

    std::unique_ptr<EventLoop> loop_;
    std::unique_ptr<Target> target_;
    std::mutex mutex_; // guards events_
    std::condition_variable changed_;
    std::vector<Event> events_;
    std::thread thread_;
};

// Both QPs of a session, connected.
struct Client {
    SessionId id = 0;
    std::unique_ptr<Initiator> read;
    std::unique_ptr<Initiator> bulk;
};

// Fails the test when it does not connect.
Client connect(Node& node, SessionId id, const std::string& address = {});
std::vector<std::uint8_t> pattern(std::size_t length, unsigned seed);

} // namespace smc::test
