// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// The JSON objects of docs/protocol.md: parsing what a stranger sent, and reading keys of it.
// Nothing here throws, whatever the text.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "core/result.hpp"

namespace smc {

using Json = nlohmann::json;

inline constexpr int kJsonDepthMax = 16;

// EPROTO: no JSON, no object, nested too deeply.
Result<Json> parse_object(std::string_view text);
// Bytes that are no UTF-8 are replaced, not an error.
std::string dump(const Json& json);

// What a message is.
struct Envelope {
    enum class Kind { request, reply, notice };
    Kind kind = Kind::notice;
    std::uint64_t id = 0; // of requests and replies
    std::string type;     // of requests and notices
};
// EPROTO: neither type nor ok, or an id that is no unsigned integer.
Result<Envelope> read_envelope(const Json& object);

Json make_request(std::uint64_t id, std::string_view type, Json body);
Json make_reply(std::uint64_t id, Json result);
Json make_error_reply(std::uint64_t id, const Error& error);
// The error that a reply carries; nullopt when it is ok.
std::optional<Error> reply_error(const Json& reply);

// Keys of an object; EINVAL names the key and what it must be.
Result<std::string> get_string(const Json& object, std::string_view key);
Result<std::uint64_t> get_unsigned(const Json& object, std::string_view key, std::uint64_t max);
Result<std::uint64_t> get_identity(const Json& object, std::string_view key); // not 0
Result<bool> get_bool(const Json& object, std::string_view key);
// The default when the key is absent; a wrong type is an error all the same.
Result<std::uint64_t> get_unsigned_or(const Json& object, std::string_view key, std::uint64_t max,
                                      std::uint64_t absent);
Result<bool> get_bool_or(const Json& object, std::string_view key, bool absent);

// Null for an empty one.
Json text_or_null(const std::string& text);
// 16 lower-case hexadecimal digits.
std::string identity_text(std::uint64_t identity);
std::string hex_text(const std::uint8_t* bytes, std::size_t count);
// EINVAL unless the string is exactly the hexadecimal digits of count bytes.
Result<void> parse_hex(std::string_view text, std::uint8_t* bytes, std::size_t count);

// What another machine or program sent, fit for a log line: cut, control characters replaced.
std::string printable(std::string_view text);

} // namespace smc
