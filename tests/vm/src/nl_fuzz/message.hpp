/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* Copyright (c) 2026 The SMC authors */
// A request of the family as parts that can be wrong one by one: nothing here checks anything.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace smc::test {

using Bytes = std::vector<std::uint8_t>;

struct Attr {
    std::uint16_t type = 0; // with NLA_F_*
    Bytes payload;
    int length_error = 0; // added to nla_len
};

struct Message {
    std::uint16_t type = 0; // of the family, or what a test puts there
    std::uint16_t flags;    // NLM_F_*
    std::uint8_t cmd;
    std::uint8_t version = 1;
    std::uint16_t reserved = 0;
    std::vector<Attr> attrs;
    int length_error = 0; // added to nlmsg_len

    explicit Message(int command);

    Message& raw(int attr, std::span<const std::uint8_t> payload);
    Message& u8(int attr, std::uint8_t value);
    Message& u32(int attr, std::uint32_t value);
    Message& u64(int attr, std::uint64_t value);
    // With its NUL, which a string_view can also hold inside.
    Message& text(int attr, std::string_view value);
    Message& nest(int attr, const std::vector<Attr>& inner);
    // Takes the place of what is there.
    Message& replace(Attr attr);
    Message& drop(int attr);

    [[nodiscard]] Bytes encode(std::uint32_t seq) const;
};

Attr attr_raw(int type, std::span<const std::uint8_t> payload);
Attr attr_text(int type, std::string_view value);
template <typename T>
Attr attr_number(int type, T value)
{
    return attr_raw(type, {reinterpret_cast<const std::uint8_t*>(&value), sizeof(value)});
}

Bytes encode_attrs(const std::vector<Attr>& attrs);

} // namespace smc::test
