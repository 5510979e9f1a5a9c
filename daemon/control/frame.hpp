// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// Frames on a byte stream: a 4-byte big-endian length, 1 to kFrameMax, and so many bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/result.hpp"

namespace smc {

inline constexpr std::size_t kFrameMax = 65536;
inline constexpr std::size_t kFrameHeaderBytes = 4;

// EMSGSIZE when the payload is empty or too long.
Result<std::string> encode_frame(std::string_view payload);

// Cuts what arrives into frames. Holds one frame at most, and what append() was last given.
class FrameDecoder {
public:
    void append(std::string_view bytes) { buffer_ += bytes; }
    // The next whole frame, or nothing yet. After an error the stream is of no more use.
    Result<std::optional<std::string>> next();

private:
    std::string buffer_;
    std::size_t start_ = 0; // of what next() has not returned yet
};

} // namespace smc
