// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// Owns: a socket on which the other side of the local protocol is played, in the test's own process.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>

#include <nlohmann/json.hpp>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace smc::test {

inline std::string frame(const std::string& body)
{
    auto length = static_cast<uint32_t>(body.size());
    std::string out = {static_cast<char>(length >> 24), static_cast<char>(length >> 16),
                       static_cast<char>(length >> 8), static_cast<char>(length)};
    return out + body;
}

// One accepted connection, blocking; the peer's end of file reads as an empty object.
class FakeConnection {
public:
    explicit FakeConnection(int fd) : fd_(fd) {}

    nlohmann::json receive()
    {
        std::string head = read(4);
        if (head.size() < 4)
            return nlohmann::json::object();
        size_t length = 0;
        for (unsigned char c : head)
            length = length << 8 | c;
        return nlohmann::json::parse(read(length));
    }
    void send_bytes(const std::string& bytes)
    {
        // The client may have hung up already, which is part of some tests.
        (void)!::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    }
    void send(const nlohmann::json& message) { send_bytes(frame(message.dump())); }
    void answer(const nlohmann::json& request, nlohmann::json result)
    {
        result["id"] = request.at("id");
        result["ok"] = true;
        send(result);
    }
    void refuse(const nlohmann::json& request, int code, const std::string& error)
    {
        send({{"id", request.at("id")}, {"ok", false}, {"errno", code}, {"error", error}});
    }

private:
    std::string read(size_t length)
    {
        std::string out(length, '\0');
        size_t done = 0;
        while (done < length) {
            ssize_t n = ::recv(fd_, out.data() + done, length - done, 0);
            if (n <= 0)
                break;
            done += static_cast<size_t>(n);
        }
        out.resize(done);
        return out;
    }
    int fd_;
};

// Serves connections one after another, each with serve(), until destroyed.
class FakeDaemon {
public:
    explicit FakeDaemon(std::function<void(FakeConnection&)> serve) : serve_(std::move(serve))
    {
        char pattern[] = "/tmp/smc-test-XXXXXX";
        if (!mkdtemp(pattern))
            throw std::runtime_error("mkdtemp");
        directory_ = pattern;
        path_ = directory_ + "/daemon.sock";
        listener_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        sockaddr_un addr{};
        addr.sun_family = AF_UNIX;
        path_.copy(addr.sun_path, sizeof(addr.sun_path) - 1);
        if (listener_ < 0 ||
            ::bind(listener_, reinterpret_cast<sockaddr*>(&addr), sizeof(addr)) < 0 ||
            ::listen(listener_, 8) < 0)
            throw std::runtime_error("cannot listen");
        thread_ = std::thread([this] { run(); });
    }
    FakeDaemon(const FakeDaemon&) = delete;
    FakeDaemon& operator=(const FakeDaemon&) = delete;
    ~FakeDaemon()
    {
        ::shutdown(listener_, SHUT_RDWR); // accept() returns
        thread_.join();
        ::close(listener_);
        std::filesystem::remove_all(directory_);
    }

    [[nodiscard]] const std::string& path() const { return path_; }

private:
    void run()
    {
        for (;;) {
            int fd = ::accept(listener_, nullptr, nullptr);
            if (fd < 0)
                return;
            FakeConnection connection(fd);
            serve_(connection);
            ::close(fd);
        }
    }

    std::function<void(FakeConnection&)> serve_;
    std::string directory_;
    std::string path_;
    int listener_ = -1;
    std::thread thread_;
};

} // namespace smc::test
