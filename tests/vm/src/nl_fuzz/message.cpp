// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
#include "message.hpp"

#include <algorithm>
#include <cstring>

#include <linux/genetlink.h>
#include <linux/netlink.h>

namespace smc::test {

namespace {

template <typename T>
void append(Bytes& out, const T& value)
{
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(&value);
    out.insert(out.end(), bytes, bytes + sizeof(value));
}

} // namespace

Attr attr_raw(int type, std::span<const std::uint8_t> payload)
{
    Attr attr;
    attr.type = static_cast<std::uint16_t>(type);
    attr.payload.assign(payload.begin(), payload.end());
    return attr;
}

Attr attr_text(int type, std::string_view value)
{
    Attr attr = attr_raw(type, {reinterpret_cast<const std::uint8_t*>(value.data()), value.size()});
    attr.payload.push_back(0);
    return attr;
}

Bytes encode_attrs(const std::vector<Attr>& attrs)
{
    Bytes out;
    for (const Attr& attr : attrs) {
        nlattr header{};
        header.nla_type = attr.type;
        header.nla_len =
            static_cast<std::uint16_t>(static_cast<int>(NLA_HDRLEN) +
                                       static_cast<int>(attr.payload.size()) + attr.length_error);
        append(out, header);
        out.insert(out.end(), attr.payload.begin(), attr.payload.end());
        out.resize(NLA_ALIGN(out.size()));
    }
    return out;
}

Message::Message(int command)
    : flags(NLM_F_REQUEST | NLM_F_ACK), cmd(static_cast<std::uint8_t>(command))
{}

Message& Message::raw(int attr, std::span<const std::uint8_t> payload)
{
    attrs.push_back(attr_raw(attr, payload));
    return *this;
}

Message& Message::u8(int attr, std::uint8_t value)
{
    attrs.push_back(attr_number(attr, value));
    return *this;
}

Message& Message::u32(int attr, std::uint32_t value)
{
    attrs.push_back(attr_number(attr, value));
    return *this;
}

Message& Message::u64(int attr, std::uint64_t value)
{
    attrs.push_back(attr_number(attr, value));
    return *this;
}

Message& Message::text(int attr, std::string_view value)
{
    attrs.push_back(attr_text(attr, value));
    return *this;
}

Message& Message::nest(int attr, const std::vector<Attr>& inner)
{
    return raw(attr | NLA_F_NESTED, encode_attrs(inner));
}

Message& Message::replace(Attr attr)
{
    auto at = std::find_if(attrs.begin(), attrs.end(), [&](const Attr& a) {
        return ((a.type ^ attr.type) & NLA_TYPE_MASK) == 0;
    });
    if (at == attrs.end())
        attrs.push_back(std::move(attr));
    else
        *at = std::move(attr);
    return *this;
}

Message& Message::drop(int attr)
{
    std::erase_if(attrs, [&](const Attr& a) { return (a.type & NLA_TYPE_MASK) == attr; });
    return *this;
}

Bytes Message::encode(std::uint32_t seq) const
{
    Bytes body = encode_attrs(attrs);
    nlmsghdr header{};
    genlmsghdr genl{};
    header.nlmsg_len = static_cast<std::uint32_t>(
        static_cast<int>(NLMSG_HDRLEN + GENL_HDRLEN + body.size()) + length_error);
    header.nlmsg_type = type;
    header.nlmsg_flags = flags;
    header.nlmsg_seq = seq;
    genl.cmd = cmd;
    genl.version = version;
    genl.reserved = reserved;
    Bytes out;
    out.reserve(NLMSG_HDRLEN + GENL_HDRLEN + body.size());
    append(out, header);
    append(out, genl);
    out.insert(out.end(), body.begin(), body.end());
    return out;
}

} // namespace smc::test
