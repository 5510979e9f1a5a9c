// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
#include "target.hpp"

#include "common.hpp"

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>

namespace smc::test {

bool send_all(int fd, const void* bytes, std::size_t length)
{
    auto at = static_cast<const char*>(bytes);
    while (length > 0) {
        ssize_t n = send(fd, at, length, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return false;
        at += n;
        length -= static_cast<std::size_t>(n);
    }
    return true;
}

bool receive_all(int fd, void* bytes, std::size_t length)
{
    auto at = static_cast<char*>(bytes);
    while (length > 0) {
        ssize_t n = recv(fd, at, length, 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            if (n == 0)
                errno = 0;
            return false;
        }
        at += n;
        length -= static_cast<std::size_t>(n);
    }
    return true;
}

namespace {

class FileTarget final : public Target {
public:
    explicit FileTarget(const std::string& path)
    {
        Fd fd{open(path.c_str(), O_RDWR | O_CLOEXEC)};
        struct stat st {};
        if (!fd || fstat(fd.get(), &st) < 0)
            die("target file " + path, errno);
        size_ = static_cast<std::uint64_t>(st.st_size);
        void* at = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
        if (at == MAP_FAILED)
            die("cannot map target file " + path, errno);
        bytes_ = static_cast<std::uint8_t*>(at);
    }
    ~FileTarget() override { munmap(bytes_, size_); }
    FileTarget(const FileTarget&) = delete;
    FileTarget& operator=(const FileTarget&) = delete;

    std::uint64_t size() override { return size_; }
    std::vector<std::uint8_t> read(std::uint64_t offset, std::uint64_t length) override
    {
        return {bytes_ + offset, bytes_ + offset + length};
    }
    std::vector<std::vector<std::uint8_t>> read_all(std::span<const Piece> pieces) override
    {
        std::vector<std::vector<std::uint8_t>> all;
        for (const Piece& piece : pieces)
            all.push_back(read(piece.offset, piece.length));
        return all;
    }
    void write(std::uint64_t offset, std::span<const std::uint8_t> bytes) override
    {
        std::memcpy(bytes_ + offset, bytes.data(), bytes.size());
    }

private:
    std::uint8_t* bytes_ = nullptr;
    std::uint64_t size_ = 0;
};

class TcpTarget final : public Target {
public:
    TcpTarget(const std::string& host, const std::string& port)
    {
        addrinfo hints{};
        hints.ai_socktype = SOCK_STREAM;
        addrinfo* found = nullptr;
        int error = getaddrinfo(host.c_str(), port.c_str(), &hints, &found);
        if (error)
            die("target " + host + ": " + gai_strerror(error));
        for (addrinfo* a = found; a && !fd_; a = a->ai_next) {
            Fd fd{socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC, a->ai_protocol)};
            if (fd && connect(fd.get(), a->ai_addr, a->ai_addrlen) == 0)
                fd_ = std::move(fd);
        }
        error = errno;
        freeaddrinfo(found);
        if (!fd_)
            die("target " + host + ":" + port + " (is model-target running there?)", error);
        int one = 1;
        setsockopt(fd_.get(), IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    }

    std::uint64_t size() override
    {
        std::uint64_t size = 0;
        ask({TargetOp::kSize, 0, 0}, nullptr);
        take(&size, sizeof size);
        return size;
    }
    std::vector<std::uint8_t> read(std::uint64_t offset, std::uint64_t length) override
    {
        Piece piece{offset, length};
        return std::move(read_all({&piece, 1})[0]);
    }
    std::vector<std::vector<std::uint8_t>> read_all(std::span<const Piece> pieces) override
    {
        std::vector<std::vector<std::uint8_t>> all;
        std::vector<Part> parts;
        for (const Piece& piece : pieces) {
            std::uint8_t* to = all.emplace_back(piece.length).data();
            for (std::uint64_t done = 0; done < piece.length; done += kTargetTransferMax)
                parts.push_back({{TargetOp::kRead,
                                  static_cast<std::uint32_t>(std::min<std::uint64_t>(
                                      piece.length - done, kTargetTransferMax)),
                                  piece.offset + done},
                                 to + done});
        }
        // So few requests that the socket takes them all while nobody reads the answers.
        constexpr std::size_t kAhead = 256;
        for (std::size_t first = 0; first < parts.size(); first += kAhead) {
            std::size_t end = std::min(first + kAhead, parts.size());
            for (std::size_t i = first; i < end; i++)
                ask(parts[i].request, nullptr);
            for (std::size_t i = first; i < end; i++)
                take(parts[i].to, parts[i].request.length);
        }
        return all;
    }
    void write(std::uint64_t offset, std::span<const std::uint8_t> bytes) override
    {
        for (std::uint64_t done = 0; done < bytes.size();) {
            auto part = static_cast<std::uint32_t>(
                std::min<std::uint64_t>(bytes.size() - done, kTargetTransferMax));
            ask({TargetOp::kWrite, part, offset + done}, bytes.data() + done);
            take(nullptr, 0);
            done += part;
        }
    }

private:
    struct Part {
        TargetRequest request;
        std::uint8_t* to;
    };

    void ask(const TargetRequest& request, const std::uint8_t* body)
    {
        if (!send_all(fd_.get(), &request, sizeof request) ||
            (body && !send_all(fd_.get(), body, request.length)))
            die("model-target hung up", errno);
    }

    void take(void* result, std::uint32_t result_bytes)
    {
        TargetAnswer answer{};
        if (!receive_all(fd_.get(), &answer, sizeof answer))
            die("model-target hung up", errno);
        if (answer.error)
            die("model-target refused", static_cast<int>(answer.error));
        if (answer.length != result_bytes || !receive_all(fd_.get(), result, result_bytes))
            die("model-target gave a short answer", errno);
    }

    Fd fd_;
};

} // namespace

std::unique_ptr<Target> open_target(const std::string& spec)
{
    if (spec.starts_with("file:"))
        return std::make_unique<FileTarget>(spec.substr(5));
    auto colon = spec.rfind(':');
    if (spec.starts_with("tcp:") && colon > 4)
        return std::make_unique<TcpTarget>(spec.substr(4, colon - 4), spec.substr(colon + 1));
    die("target wants file:PATH or tcp:HOST:PORT, not '" + spec + "'");
}

} // namespace smc::test
