// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
#include "control/frame.hpp"

#include <catch2/catch.hpp>

TEST_CASE("frames come out as they went in, however the bytes were cut", "[frame]")
{
    const std::string big(smc::kFrameMax, 'x');
    const auto bytes =
        *smc::encode_frame("one") + *smc::encode_frame(big) + *smc::encode_frame("3");
    for (const std::size_t step : {1UL, 2UL, 5UL, 4096UL, bytes.size()}) {
        smc::FrameDecoder decoder;
        std::vector<std::string> frames;
        for (std::size_t at = 0; at < bytes.size(); at += step) {
            decoder.append(std::string_view(bytes).substr(at, step));
            while (auto frame = *decoder.next())
                frames.push_back(*frame);
        }
        CHECK(frames == std::vector<std::string>{"one", big, "3"});
    }
}

TEST_CASE("a frame of no bytes or too many is refused on both ends", "[frame]")
{
    CHECK(smc::encode_frame("").error().code == EMSGSIZE);
    CHECK(smc::encode_frame(std::string(smc::kFrameMax + 1, 'x')).error().code == EMSGSIZE);
    smc::FrameDecoder empty;
    empty.append(std::string_view("\0\0\0\0", 4));
    CHECK(empty.next().error().code == EPROTO);
    smc::FrameDecoder huge;
    huge.append(std::string_view("\0\1\0\1", 4));
    CHECK(huge.next().error().code == EPROTO);
}
