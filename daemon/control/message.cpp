// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
#include "control/message.hpp"

#include <charconv>

#include <fmt/format.h>

namespace smc {
namespace {

constexpr std::size_t kIdentityDigits = 16;
constexpr std::size_t kPrintableMax = 400;
constexpr int kErrnoMax = 4095; // as the kernel bounds it

// Before the parser sees it: a document that is nested too deeply costs nothing.
bool is_too_deep(std::string_view text)
{
    int depth = 0;
    bool in_string = false;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        if (in_string) {
            if (c == '\\')
                ++i;
            else if (c == '"')
                in_string = false;
        } else if (c == '"') {
            in_string = true;
        } else if (c == '{' || c == '[') {
            if (++depth > kJsonDepthMax)
                return true;
        } else if (c == '}' || c == ']') {
            --depth;
        }
    }
    return false;
}

tl::unexpected<Error> bad_key(std::string_view key, std::string_view wanted)
{
    return fail(EINVAL, fmt::format("key \"{}\" must be {}", key, wanted));
}

const Json* find(const Json& object, std::string_view key)
{
    const auto found = object.find(key);
    return found == object.end() ? nullptr : &*found;
}

} // namespace

Result<Json> parse_object(std::string_view text)
{
    if (is_too_deep(text))
        return fail(EPROTO, fmt::format("nested deeper than {}", kJsonDepthMax));
    Json object = Json::parse(text, nullptr, false);
    if (object.is_discarded() || !object.is_object())
        return fail(EPROTO, "no JSON object");
    return object;
}

std::string dump(const Json& json)
{
    return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Result<Envelope> read_envelope(const Json& object)
{
    Envelope envelope;
    const auto* id = find(object, "id");
    const auto* type = find(object, "type");
    const auto* ok = find(object, "ok");
    if (id != nullptr) {
        if (!id->is_number_unsigned())
            return fail(EPROTO, "\"id\" must be an unsigned integer");
        envelope.id = id->get<std::uint64_t>();
    }
    if (ok != nullptr) {
        if (id == nullptr || !ok->is_boolean())
            return fail(EPROTO, "an answer needs \"id\", and true or false as \"ok\"");
        envelope.kind = Envelope::Kind::reply;
        return envelope;
    }
    if (type == nullptr || !type->is_string())
        return fail(EPROTO, "\"type\" must be a string");
    envelope.type = type->get<std::string>();
    envelope.kind = id != nullptr ? Envelope::Kind::request : Envelope::Kind::notice;
    return envelope;
}

Json make_request(std::uint64_t id, std::string_view type, Json body)
{
    if (!body.is_object())
        body = Json::object();
    body["id"] = id;
    body["type"] = type;
    return body;
}

Json make_reply(std::uint64_t id, Json result)
{
    if (!result.is_object())
        result = Json::object();
    result["id"] = id;
    result["ok"] = true;
    return result;
}

Json make_error_reply(std::uint64_t id, const Error& error)
{
    return {{"id", id}, {"ok", false}, {"errno", error.code}, {"error", error.what}};
}

std::optional<Error> reply_error(const Json& reply)
{
    const auto* ok = find(reply, "ok");
    if (ok != nullptr && ok->is_boolean() && ok->get<bool>())
        return std::nullopt;
    const auto code = get_unsigned_or(reply, "errno", kErrnoMax, EPROTO);
    const auto what = get_string(reply, "error");
    return Error{code && *code != 0 ? static_cast<int>(*code) : EPROTO,
                 what ? printable(*what) : "no reason given"};
}

Result<std::string> get_string(const Json& object, std::string_view key)
{
    const auto* value = find(object, key);
    if (value == nullptr || !value->is_string())
        return bad_key(key, "a string");
    return value->get<std::string>();
}

Result<std::uint64_t> get_unsigned(const Json& object, std::string_view key, std::uint64_t max)
{
    const auto* value = find(object, key);
    if (value == nullptr || !value->is_number_unsigned() || value->get<std::uint64_t>() > max)
        return bad_key(key, fmt::format("an integer from 0 to {}", max));
    return value->get<std::uint64_t>();
}

Result<std::uint64_t> get_identity(const Json& object, std::string_view key)
{
    constexpr std::string_view kWanted = "a string of 16 lower-case hexadecimal digits, not all 0";
    const auto* value = find(object, key);
    if (value == nullptr || !value->is_string())
        return bad_key(key, kWanted);
    const auto& text = value->get_ref<const std::string&>();
    std::uint64_t identity = 0;
    const auto* end = text.data() + text.size();
    if (text.size() != kIdentityDigits ||
        text.find_first_not_of("0123456789abcdef") != std::string::npos ||
        std::from_chars(text.data(), end, identity, 16).ptr != end || identity == 0)
        return bad_key(key, kWanted);
    return identity;
}

Result<bool> get_bool(const Json& object, std::string_view key)
{
    const auto* value = find(object, key);
    if (value == nullptr || !value->is_boolean())
        return bad_key(key, "true or false");
    return value->get<bool>();
}

Result<std::uint64_t> get_unsigned_or(const Json& object, std::string_view key, std::uint64_t max,
                                      std::uint64_t absent)
{
    return object.contains(key) ? get_unsigned(object, key, max) : absent;
}

Result<bool> get_bool_or(const Json& object, std::string_view key, bool absent)
{
    return object.contains(key) ? get_bool(object, key) : absent;
}

Json text_or_null(const std::string& text)
{
    return text.empty() ? Json() : Json(text);
}

std::string identity_text(std::uint64_t identity)
{
    return fmt::format("{:016x}", identity);
}

std::string hex_text(const std::uint8_t* bytes, std::size_t count)
{
    std::string text;
    for (std::size_t i = 0; i < count; ++i)
        text += fmt::format("{:02x}", bytes[i]);
    return text;
}

Result<void> parse_hex(std::string_view text, std::uint8_t* bytes, std::size_t count)
{
    if (text.size() != 2 * count)
        return fail(EINVAL, fmt::format("{} hexadecimal digits are needed", 2 * count));
    for (std::size_t i = 0; i < count; ++i) {
        const auto* digits = text.data() + 2 * i;
        if (std::from_chars(digits, digits + 2, bytes[i], 16).ptr != digits + 2)
            return fail(EINVAL, fmt::format("{} hexadecimal digits are needed", 2 * count));
    }
    return {};
}

std::string printable(std::string_view text)
{
    std::string shown(text.substr(0, kPrintableMax));
    for (char& c : shown)
        if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) > 0x7e)
            c = '?';
    return shown;
}

} // namespace smc
