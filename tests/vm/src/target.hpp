/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* Copyright (c) 2026 The SMC authors */
// The region as the target sees it, from wherever the test runs.
//
// `tcp:HOST:PORT` asks a model-target program there; `file:PATH` maps a local file, which makes the
// test programs testable without SMC. A test that cannot reach its target dies: no comparison is
// ever left out in silence.
//
// On the wire, integers in host byte order (both ends are the same machine type):
//     request   u32 operation, u32 length, u64 offset, then `length` bytes for kWrite
//     answer    u32 errno, u32 length, then `length` bytes for kRead; kSize: 8 bytes
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace smc::test {

enum class TargetOp : std::uint32_t { kSize = 1, kRead = 2, kWrite = 3 };

struct TargetRequest {
    TargetOp op;
    std::uint32_t length;
    std::uint64_t offset;
};

struct TargetAnswer {
    std::uint32_t error;
    std::uint32_t length;
};

constexpr std::uint32_t kTargetTransferMax = 1U << 20;

struct Piece {
    std::uint64_t offset;
    std::uint64_t length;
};

class Target {
public:
    virtual ~Target() = default;
    virtual std::uint64_t size() = 0;
    virtual std::vector<std::uint8_t> read(std::uint64_t offset, std::uint64_t length) = 0;
    // The same for several pieces, in one round trip where there is one.
    virtual std::vector<std::vector<std::uint8_t>> read_all(std::span<const Piece> pieces) = 0;
    virtual void write(std::uint64_t offset, std::span<const std::uint8_t> bytes) = 0;
};

// `spec`: "tcp:HOST:PORT" or "file:PATH". Dies when it cannot be reached.
std::unique_ptr<Target> open_target(const std::string& spec);

// Whole transfers, or false with errno (0: the other side hung up).
bool send_all(int fd, const void* bytes, std::size_t length);
bool receive_all(int fd, void* bytes, std::size_t length);

} // namespace smc::test
