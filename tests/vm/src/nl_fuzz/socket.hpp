/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* Copyright (c) 2026 The SMC authors */
// A generic netlink socket without a library between the test and the kernel.
//
// Requests are handled inside sendto(), so what there is to receive for one is there when it
// returns: nothing has to be waited for, and silence is an answer.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common.hpp"
#include "message.hpp"

namespace smc::test {

struct Received {
    std::uint8_t cmd = 0;
    Bytes attrs;

    std::optional<std::uint64_t> number(int attr) const; // of 1, 4 or 8 bytes
    std::optional<std::string> text(int attr) const;
};

struct Answer {
    int sent = 0;             // 0, or the errno of sendto()
    std::optional<int> error; // of the last acknowledgement or end of dump, 0: success
    int acks = 0;
    std::string why; // the kernel's text with it
    std::vector<Received> messages;
};

class Socket {
public:
    Socket();
    // With a port of its own choice; nullopt: another socket has it.
    static std::optional<Socket> with_port(std::uint32_t port);

    // Looks the family up; nullopt: there is none in this network namespace.
    std::optional<std::uint16_t> family(const char* name, const char* group,
                                        std::uint32_t* group_id);
    int join(std::uint32_t group); // 0 or errno
    // How much may wait to be received, as far as the system allows.
    static constexpr int kRoom = 1 << 20;
    void set_room(int bytes);

    // One datagram, any bytes; then receives until there is nothing.
    Answer send(const Bytes& datagram);
    Answer ask(const Message& message) { return send(message.encode(++seq_)); }
    Answer dump(Message message);

    // The next message that came unasked (an upcall, an event), within the time.
    std::optional<Received> wait(int timeout_ms);
    void close() { fd_.reset(); }

private:
    explicit Socket(Fd fd);

    bool receive(Answer& answer, bool block);
    void parse(const std::uint8_t* data, std::size_t size, Answer& answer);

    Fd fd_;
    std::uint32_t seq_ = 0;
    std::vector<Received> unasked_;
    Bytes buffer_ = Bytes(1 << 17);
};

} // namespace smc::test
