// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// model-target FILE PORT [OFFSET LENGTH]: answers what the bytes of exported memory are, and changes
// them, as an accelerator program would: it maps the same file that the daemon exports.
//
// Owns: the mapping; one child process per connection, so that a slow client blocks no other.
// Failure: a request outside the mapping is answered with ERANGE; a broken connection ends its child.
#include "common.hpp"
#include "target.hpp"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <string>

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>

using namespace smc::test;

namespace {

struct Memory {
    std::uint8_t* bytes;
    std::uint64_t size;
};

Memory map_file(const char* path, std::uint64_t offset, std::uint64_t length)
{
    Fd fd{open(path, O_RDWR | O_CLOEXEC)};
    struct stat st {};
    if (!fd || fstat(fd.get(), &st) < 0)
        die(path, errno);
    auto size = static_cast<std::uint64_t>(st.st_size);
    if (offset > size || length > size - offset)
        die(std::string(path) + " is shorter than OFFSET + LENGTH");
    void* at = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
    if (at == MAP_FAILED)
        die(std::string("cannot map ") + path, errno);
    return {static_cast<std::uint8_t*>(at) + offset, length ? length : size - offset};
}

bool answer(int fd, const Memory& memory, const TargetRequest& request)
{
    bool inside = request.offset <= memory.size && request.length <= memory.size - request.offset &&
                  request.length <= kTargetTransferMax;
    std::uint8_t* at = memory.bytes + (inside ? request.offset : 0);
    TargetAnswer head{inside ? 0U : static_cast<std::uint32_t>(ERANGE), 0};

    switch (request.op) {
    case TargetOp::kSize:
        head = {0, sizeof memory.size};
        return send_all(fd, &head, sizeof head) && send_all(fd, &memory.size, sizeof memory.size);
    case TargetOp::kRead:
        head.length = inside ? request.length : 0;
        return send_all(fd, &head, sizeof head) && send_all(fd, at, head.length);
    case TargetOp::kWrite:
        if (!inside) {
            send_all(fd, &head, sizeof head);
            return false; // the body that follows cannot be told from the next request
        }
        return receive_all(fd, at, request.length) && send_all(fd, &head, sizeof head);
    }
    return false;
}

void serve(int fd, const Memory& memory)
{
    int one = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    TargetRequest request{};
    while (receive_all(fd, &request, sizeof request) && answer(fd, memory, request)) {}
}

// On every address; a kernel without IPv6 has IPv4 alone.
Fd listen_on(std::uint16_t port)
{
    sockaddr_in6 any6{};
    any6.sin6_family = AF_INET6;
    any6.sin6_port = htons(port);
    sockaddr_in any4{};
    any4.sin_family = AF_INET;
    any4.sin_port = htons(port);

    Fd listener{socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    bool ipv6 = static_cast<bool>(listener);
    if (!ipv6)
        listener = Fd{socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    auto address = ipv6 ? reinterpret_cast<sockaddr*>(&any6) : reinterpret_cast<sockaddr*>(&any4);
    socklen_t length = ipv6 ? sizeof any6 : sizeof any4;
    int one = 1;
    setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (!listener || bind(listener.get(), address, length) < 0 || listen(listener.get(), 16) < 0)
        die("port " + std::to_string(port), errno);
    return listener;
}

} // namespace

int main(int argc, char** argv)
{
    if (argc != 3 && argc != 5)
        die("usage: model-target FILE PORT [OFFSET LENGTH]");
    Memory memory = map_file(argv[1], argc == 5 ? parse_number("OFFSET", argv[3]) : 0,
                             argc == 5 ? parse_number("LENGTH", argv[4]) : 0);

    Fd listener = listen_on(static_cast<std::uint16_t>(parse_number("PORT", argv[2])));
    signal(SIGCHLD, SIG_IGN);
    std::printf("model-target: %s, %llu bytes, port %s\n", argv[1],
                static_cast<unsigned long long>(memory.size), argv[2]);
    std::fflush(stdout);

    for (;;) {
        Fd fd{accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC)};
        if (!fd)
            continue;
        pid_t child = fork();
        if (child == 0) {
            serve(fd.get(), memory);
            std::_Exit(0);
        }
        if (child < 0)
            std::fprintf(stderr, "model-target: fork: %s\n", std::strerror(errno));
    }
}
