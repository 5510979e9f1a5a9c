// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
#include "control/frame.hpp"

#include <endian.h>

#include <fmt/format.h>

namespace smc {

Result<std::string> encode_frame(std::string_view payload)
{
    if (payload.empty() || payload.size() > kFrameMax)
        return fail(EMSGSIZE, fmt::format("a message of {} bytes does not fit into a frame of 1 to "
                                          "{} bytes",
                                          payload.size(), kFrameMax));
    const std::uint32_t length = htobe32(static_cast<std::uint32_t>(payload.size()));
    std::string frame(kFrameHeaderBytes, '\0');
    std::memcpy(frame.data(), &length, kFrameHeaderBytes);
    frame += payload;
    return frame;
}

Result<std::optional<std::string>> FrameDecoder::next()
{
    const auto rest = std::string_view(buffer_).substr(start_);
    if (rest.size() >= kFrameHeaderBytes) {
        std::uint32_t length = 0;
        std::memcpy(&length, rest.data(), kFrameHeaderBytes);
        length = be32toh(length);
        if (length == 0 || length > kFrameMax)
            return fail(EPROTO,
                        fmt::format("a frame of {} bytes: 1 to {} are allowed", length, kFrameMax));
        if (rest.size() - kFrameHeaderBytes >= length) {
            start_ += kFrameHeaderBytes + length;
            return std::string(rest.substr(kFrameHeaderBytes, length));
        }
    }
    buffer_.erase(0, start_);
    start_ = 0;
    return std::nullopt;
}

} // namespace smc
