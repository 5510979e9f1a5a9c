// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
#include <netdb.h>

#include <deque>
#include <thread>

#include <fmt/format.h>

#include "control/tcp.hpp"
#include "core/mutex.hpp"

namespace smc {

struct Resolver::State {
    struct Job {
        std::string host;
        std::uint16_t port = 0;
        Done done;
    };

    Mutex mutex;
    EventLoop* loop SMC_GUARDED_BY(mutex) = nullptr; // null once the Resolver has gone
    std::deque<Job> waiting SMC_GUARDED_BY(mutex);
    unsigned threads SMC_GUARDED_BY(mutex) = 0;
    // Expires with the Resolver; used on the loop's thread alone.
    std::shared_ptr<int> alive = std::make_shared<int>(0);
};

namespace {

constexpr std::size_t kAddressesMax = 8; // of one name that are tried

Result<std::vector<SocketAddress>> look_up(const std::string& host, std::uint16_t port)
{
    addrinfo hints{};
    hints.ai_family = AF_UNSPEC;
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_ADDRCONFIG | AI_NUMERICSERV;
    addrinfo* list = nullptr;
    const auto service = std::to_string(port);
    const int error = ::getaddrinfo(host.c_str(), service.c_str(), &hints, &list);
    if (error != 0)
        return fail(EHOSTUNREACH,
                    fmt::format("{} cannot be resolved: {}; correct the name, or give the peer an "
                                "address in the configuration",
                                host, ::gai_strerror(error)));
    std::vector<SocketAddress> addresses;
    for (const auto* entry = list; entry != nullptr && addresses.size() < kAddressesMax;
         entry = entry->ai_next) {
        SocketAddress address;
        address.length = entry->ai_addrlen;
        std::memcpy(&address.storage, entry->ai_addr, entry->ai_addrlen);
        addresses.push_back(address);
    }
    ::freeaddrinfo(list);
    return addresses;
}

} // namespace

Resolver::Resolver(EventLoop& loop) : state_(std::make_shared<State>())
{
    state_->loop = &loop;
}

Resolver::~Resolver()
{
    const MutexLock lock(state_->mutex);
    state_->loop = nullptr;
    state_->waiting.clear();
    state_->alive.reset();
}

void Resolver::resolve(const std::string& host, std::uint16_t port, Done done)
{
    const MutexLock lock(state_->mutex);
    if (auto numeric = parse_address(host, port)) {
        state_->loop->defer(
            [done = std::move(done), address = *numeric, alive = std::weak_ptr(state_->alive)] {
                if (!alive.expired())
                    done(std::vector{address});
            });
        return;
    }
    if (state_->waiting.size() >= kWaitingMax) {
        state_->loop->defer([done = std::move(done), alive = std::weak_ptr(state_->alive)] {
            if (!alive.expired())
                done(fail(EBUSY, "too many host names wait to be resolved: is the DNS server "
                                 "reachable?"));
        });
        return;
    }
    state_->waiting.push_back({host, port, std::move(done)});
    if (state_->threads >= kThreadsMax)
        return;
    ++state_->threads;
    std::thread([state = state_] {
        MutexLock guard(state->mutex);
        while (!state->waiting.empty()) {
            auto job = std::move(state->waiting.front());
            state->waiting.pop_front();
            guard.unlock();
            auto result = look_up(job.host, job.port);
            guard.lock();
            if (state->loop == nullptr)
                break;
            state->loop->post([done = std::move(job.done), result = std::move(result),
                               alive = std::weak_ptr(state->alive)] {
                if (!alive.expired())
                    done(result);
            });
        }
        --state->threads;
    }).detach();
}

} // namespace smc
