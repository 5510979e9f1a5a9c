// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
#include "target/connect_request.hpp"

#include <random>

#include <catch2/catch.hpp>

#include "target/token.hpp"

using namespace smc;

namespace {

ConnectRequest example()
{
    return {QpRole::bulk, 0x0123456789abcdef, random_token()};
}

std::vector<std::uint8_t> bytes_of(const ConnectRequest& request)
{
    const auto bytes = encode(request);
    return {bytes.begin(), bytes.end()};
}

} // namespace

TEST_CASE("a connect request survives the wire and its padding", "[connect]")
{
    const auto request = example();
    auto bytes = bytes_of(request);
    bytes.resize(56, 0); // what rdma_cm makes of it
    const auto parsed = parse_connect_request(bytes);
    REQUIRE(parsed);
    CHECK(parsed->role == request.role);
    CHECK(parsed->session == request.session);
    CHECK(parsed->token == request.token);
}

TEST_CASE("a connect request is little endian, field by field", "[connect]")
{
    ConnectRequest request{QpRole::bulk, 0x0102030405060708, {}};
    request.token[0] = 0xaa;
    const auto bytes = bytes_of(request);
    const std::vector<std::uint8_t> wanted{'S', 'M', 'C', '1', 1, 0, 1, 0,   8,
                                           7,   6,   5,   4,   3, 2, 1, 0xaa};
    CHECK(std::vector<std::uint8_t>(bytes.begin(), bytes.begin() + 17) == wanted);
}

TEST_CASE("a connect request that is no such is refused", "[connect]")
{
    const auto good = bytes_of(example());
    for (std::size_t length = 0; length < good.size(); length++) {
        CAPTURE(length);
        CHECK_FALSE(parse_connect_request({good.data(), length}));
    }
    const auto with = [&](std::size_t at, std::uint8_t value) {
        auto bytes = good;
        bytes[at] = value;
        const auto parsed = parse_connect_request(bytes);
        return parsed ? 0 : parsed.error().code;
    };
    CHECK(with(0, 'T') == EPROTO);        // magic
    CHECK(with(4, 2) == EPROTONOSUPPORT); // version
    CHECK(with(6, 2) == EPROTO);          // role
    CHECK(with(7, 1) == EPROTO);
    auto zero = example();
    zero.session = 0;
    CHECK_FALSE(parse_connect_request(bytes_of(zero)));
}

TEST_CASE("random private data never gets through", "[connect]")
{
    std::mt19937 random(1);
    for (int i = 0; i < 100000; i++) {
        std::vector<std::uint8_t> bytes(random() % 64);
        for (auto& byte : bytes)
            byte = static_cast<std::uint8_t>(random());
        if (parse_connect_request(bytes))
            FAIL("round " << i);
        if (parse_probe_memory(bytes))
            FAIL("round " << i);
    }
}

TEST_CASE("the place of the probe memory survives the wire", "[connect]")
{
    const ProbeMemory memory{0xfedcba9876543210, 1 << 20, 0x12345678};
    const auto bytes = encode(memory);
    const auto parsed = parse_probe_memory(bytes);
    REQUIRE(parsed);
    CHECK(parsed->addr == memory.addr);
    CHECK(parsed->length_bytes == memory.length_bytes);
    CHECK(parsed->rkey == memory.rkey);
    CHECK_FALSE(parse_probe_memory({bytes.data(), bytes.size() - 1}));
}

TEST_CASE("tokens differ, and equal only themselves", "[token]")
{
    const auto token = random_token();
    CHECK(tokens_equal(token, token));
    CHECK_FALSE(tokens_equal(token, random_token()));
    for (std::size_t i = 0; i < token.size(); i++) {
        auto other = token;
        other[i] ^= 0x80;
        CHECK_FALSE(tokens_equal(token, other));
    }
}
