// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
#include "control/message.hpp"

#include <catch2/catch.hpp>

using Kind = smc::Envelope::Kind;

TEST_CASE("what is no JSON object of bounded depth is refused", "[message]")
{
    CHECK(smc::parse_object("{}"));
    for (const auto* bad :
         {"", "1", "[]", "\"x\"", "{", "{\"a\":}", "{} x", "{\"a\":\"\xff\"}", "nul"})
        CHECK(smc::parse_object(bad).error().code == EPROTO);
    const auto nested = [](int depth) {
        return "{\"a\":" + std::string(depth - 1, '[') + std::string(depth - 1, ']') + "}";
    };
    CHECK(smc::parse_object(nested(smc::kJsonDepthMax)));
    CHECK_FALSE(smc::parse_object(nested(smc::kJsonDepthMax + 1)));
    CHECK(smc::parse_object("{\"a\":\"[[[[[[[[[[[[[[[[[[[[[[\\\"[[[[\"}"));
}

TEST_CASE("an envelope is a request, an answer or a notice", "[message]")
{
    const auto kind = [](const char* text) {
        return smc::read_envelope(*smc::parse_object(text))->kind;
    };
    CHECK(kind(R"({"id":1,"type":"x"})") == Kind::request);
    CHECK(kind(R"({"type":"x"})") == Kind::notice);
    CHECK(kind(R"({"id":1,"ok":true})") == Kind::reply);
    for (const auto* bad :
         {"{}", R"({"id":-1,"type":"x"})", R"({"id":"1","type":"x"})", R"({"type":1})",
          R"({"ok":true})", R"({"id":1,"ok":1})", R"({"id":1.5,"type":"x"})"})
        CHECK(smc::read_envelope(*smc::parse_object(bad)).error().code == EPROTO);
}

TEST_CASE("keys are read with type and range, and named when wrong", "[message]")
{
    const auto object = *smc::parse_object(
        R"({"s":"x","n":7,"neg":-1,"f":1.0,"b":true,"i":"00000000000000ff","z":"0000000000000000"})");
    CHECK(*smc::get_string(object, "s") == "x");
    CHECK(*smc::get_unsigned(object, "n", 7) == 7);
    CHECK_FALSE(smc::get_unsigned(object, "n", 6));
    CHECK_FALSE(smc::get_unsigned(object, "neg", 10));
    CHECK_FALSE(smc::get_unsigned(object, "f", 10));
    CHECK(*smc::get_bool(object, "b"));
    CHECK(*smc::get_identity(object, "i") == 255);
    CHECK_FALSE(smc::get_identity(object, "z"));
    CHECK_FALSE(smc::get_identity(object, "s"));
    CHECK(*smc::get_unsigned_or(object, "absent", 9, 4) == 4);
    CHECK_FALSE(smc::get_unsigned_or(object, "s", 9, 4));
    const auto missing = smc::get_string(object, "absent");
    CHECK(missing.error().code == EINVAL);
    CHECK_THAT(missing.error().what, Catch::Contains("\"absent\""));
}

TEST_CASE("identities and tokens survive their text", "[message]")
{
    CHECK(smc::identity_text(0x1f) == "000000000000001f");
    const std::array<std::uint8_t, 3> bytes{0, 0xab, 0xff};
    CHECK(smc::hex_text(bytes.data(), bytes.size()) == "00abff");
    std::array<std::uint8_t, 3> back{};
    REQUIRE(smc::parse_hex("00abff", back.data(), back.size()));
    CHECK(back == bytes);
    for (const auto* bad : {"", "00abf", "00abff0", "00abfg", "0x0000", " 0abff"})
        CHECK_FALSE(smc::parse_hex(bad, back.data(), back.size()));
}

TEST_CASE("an error answer gives code and text, cleaned", "[message]")
{
    const auto text = smc::dump(smc::make_error_reply(1, {ENOENT, "no \x1b[31mred"}));
    const auto error = smc::reply_error(*smc::parse_object(text));
    REQUIRE(error);
    CHECK(error->code == ENOENT);
    CHECK(error->what == "no ?[31mred");
    CHECK_FALSE(smc::reply_error(smc::make_reply(1, {})));
    CHECK(smc::reply_error(*smc::parse_object(R"({"ok":false,"errno":-5})"))->code == EPROTO);
    CHECK(smc::reply_error(*smc::parse_object(R"({"ok":false,"errno":0})"))->code == EPROTO);
}

TEST_CASE("text that is no UTF-8 is replaced when written", "[message]")
{
    CHECK(smc::parse_object(smc::dump({{"a", "\xff"}})));
}
