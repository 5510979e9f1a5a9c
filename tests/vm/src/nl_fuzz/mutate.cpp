// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
#include "mutate.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <linux/netlink.h>

namespace smc::test {

namespace {

const char* const kNodes[] = {kNode, kNode, kNode, kOtherNode, "fuzz-1", "fuzz-2", "fuzz-3"};
const char* const kNames[] = {"a", "b", "c", "d", "job", "job/params", "job/params/deep", "x.y"};

template <typename T, std::size_t N>
T pick(Random& random, const T (&list)[N])
{
    return list[random.below(N)];
}

std::uint64_t interesting(Random& random)
{
    const std::uint64_t base = std::uint64_t{1} << random.below(64);
    switch (random.below(6)) {
    case 0:
        return 0;
    case 1:
        return ~std::uint64_t{0};
    case 2:
        return base;
    case 3:
        return base - 1;
    case 4:
        return base + 1;
    default:
        return random.next();
    }
}

std::uint64_t some_region(const std::vector<std::uint64_t>& regions, Random& random)
{
    const std::uint64_t any = interesting(random), which = random.next();
    const bool stray = random.one_in(8);
    return stray || regions.empty() ? any : regions[which % regions.size()];
}

// The live session is deleted now and then, too; others come and go.
std::uint64_t some_session(Random& random, std::uint64_t keep_one_in)
{
    return random.one_in(keep_one_in) ? kSession + 1 + random.below(8) : kSession;
}

std::vector<smcfs_extent> some_extents(Random& random, std::uint64_t* size)
{
    std::vector<smcfs_extent> list;
    std::uint64_t offset = 0;
    for (std::uint64_t i = 0, n = 1 + random.below(random.one_in(16) ? 1024 : 4); i < n; i++) {
        std::uint64_t length = SMCFS_EXTENT_MIN + (random.one_in(4) ? random.below(1 << 22) : 0);
        list.push_back({offset, length, random.next() >> 8, 1, 2});
        offset += length;
    }
    *size = offset;
    return list;
}

Message some_attach(const World& world, Random& random)
{
    std::uint64_t size = 0;
    std::vector<smcfs_extent> list = some_extents(random, &size);
    Message message = world.attach(pick(random, kNames), size);
    message.replace(attr_raw(SMCFS_A_EXTENTS, bytes_of(list)));
    message.replace(attr_number(SMCFS_A_GENERATION, 1 + random.below(3)));
    if (random.one_in(4))
        message.replace(attr_number(SMCFS_A_FLAGS, std::uint32_t{SMCFS_RF_READONLY}));
    return message;
}

Message some_connect(const World& world, Random& random)
{
    Message message = world.session_connect(some_session(random, 2), pick(random, kNodes));
    message.replace(attr_number(SMCFS_A_CONNECT_TIMEOUT_MS,
                                static_cast<std::uint32_t>(10 + random.below(2000))));
    if (random.one_in(2))
        message.replace(attr_raw(SMCFS_A_DST_ADDR, bytes_of(world.target4(7451))));
    return message;
}

Message some_list(Random& random)
{
    std::vector<Attr> names;
    for (std::uint64_t i = random.below(random.one_in(32) ? 5000 : 4); i > 0; i--)
        names.push_back(attr_text(SMCFS_A_NAME, pick(random, kNames)));
    return Message(SMCFS_CMD_LIST_RESULT)
        .u64(SMCFS_A_COOKIE, random.below(64))
        .u32(SMCFS_A_ERRNO, random.one_in(4) ? ENOENT : 0)
        .nest(SMCFS_A_NAMES, names);
}

// A right request of each command; what it names may or may not be there.
Message some_request(const World& world, const std::vector<std::uint64_t>& regions, Random& random)
{
    const auto error = static_cast<std::uint32_t>(random.below(140));
    // The first four are what makes the others mean something, so they come more often.
    switch (random.below(20)) {
    case 0:
    case 1:
    case 2:
    case 3:
        return some_attach(world, random);
    case 4:
        return Message(SMCFS_CMD_DAEMON_HELLO);
    case 5:
    case 6:
        return World::peer(SMCFS_CMD_PEER_ADD, pick(random, kNodes));
    case 7:
        return World::peer(SMCFS_CMD_PEER_DEL, pick(random, kNodes));
    case 8:
        return some_connect(world, random);
    case 9:
        return Message(SMCFS_CMD_SESSION_DEL).u64(SMCFS_A_SESSION_ID, some_session(random, 64));
    case 10:
        return World::peer(SMCFS_CMD_BIND_FAIL, pick(random, kNodes))
            .text(SMCFS_A_NAME, pick(random, kNames))
            .u32(SMCFS_A_ERRNO, random.one_in(4) ? EISDIR : error + 1);
    case 11:
        return World::region(SMCFS_CMD_REGION_DETACH, some_region(regions, random))
            .u32(SMCFS_A_FLAGS, static_cast<std::uint32_t>(random.below(2)));
    case 12:
        return World::region(SMCFS_CMD_REGION_REVOKE, some_region(regions, random));
    case 13:
        return World::region(SMCFS_CMD_REGION_SET, some_region(regions, random))
            .u8(SMCFS_A_CTO, static_cast<std::uint8_t>(random.below(2)))
            .u32(SMCFS_A_FLUSH_AFTER_MS, static_cast<std::uint32_t>(1 + random.below(1000)))
            .u32(SMCFS_A_SYNC_MODE, static_cast<std::uint32_t>(1 + random.below(SMCFS_SYNC_MAX)))
            .u32(SMCFS_A_PUSH_DELAY_US, static_cast<std::uint32_t>(random.below(2000)))
            .u32(SMCFS_A_MAX_STALE_US, static_cast<std::uint32_t>(random.below(2) * 3600000000U))
            .u8(SMCFS_A_HOT, static_cast<std::uint8_t>(random.below(2)))
            .u32(SMCFS_A_GRANULE, static_cast<std::uint32_t>(SMCFS_GRANULE << random.below(9)))
            .u8(SMCFS_A_ORIGIN, static_cast<std::uint8_t>(1 + random.below(SMCFS_ORIGIN_MAX)));
    case 14:
        return World::region(SMCFS_CMD_WRITER_RESULT, some_region(regions, random))
            .u32(SMCFS_A_ERRNO, random.one_in(2) ? error : 0);
    case 15:
        return some_list(random);
    case 16:
        return World::region(SMCFS_CMD_REGION_GET, some_region(regions, random));
    case 17:
        return Message(SMCFS_CMD_INFO_GET);
    case 18: {
        const int commands[] = {SMCFS_CMD_PEER_GET, SMCFS_CMD_SESSION_GET, SMCFS_CMD_REGION_GET,
                                SMCFS_CMD_LATENCY_GET};
        Message dump(pick(random, commands));
        if (dump.cmd >= SMCFS_CMD_REGION_GET && random.one_in(2))
            dump.u64(SMCFS_A_REGION_ID, some_region(regions, random));
        dump.flags = NLM_F_REQUEST | NLM_F_DUMP;
        return dump;
    }
    default:
        return Message(static_cast<int>(random.below(SMCFS_CMD_MAX + 3)));
    }
}

void mutate_payload(Bytes& payload, Random& random)
{
    const std::uint64_t value = interesting(random);
    switch (random.below(5)) {
    case 0: // another number of the same size
        std::memcpy(payload.data(), &value, std::min(payload.size(), sizeof(value)));
        break;
    case 1: // a byte somewhere
        if (!payload.empty())
            payload[random.below(payload.size())] = static_cast<std::uint8_t>(value);
        break;
    case 2:
        payload.resize(random.below(payload.size() + 9));
        break;
    case 3: // an aligned number somewhere, as in the middle of an extent
        if (payload.size() >= 16)
            std::memcpy(payload.data() + random.below(payload.size() / 8) * 8, &value, 8);
        break;
    default: // a letter that means something in a name
        if (!payload.empty())
            payload[random.below(payload.size())] =
                static_cast<std::uint8_t>("/.\0\n\x7f\xff"[random.below(6)]);
        break;
    }
}

void mutate_attrs(std::vector<Attr>& attrs, Random& random)
{
    const std::size_t at = attrs.empty() ? 0 : random.below(attrs.size());
    const auto begin = attrs.begin() + static_cast<std::ptrdiff_t>(at);
    switch (attrs.empty() ? 4 : random.below(9)) {
    case 0:
    case 1:
        mutate_payload(attrs[at].payload, random);
        break;
    case 2:
        attrs.erase(begin);
        break;
    case 3:
        attrs.insert(begin, Attr(attrs[random.below(attrs.size())]));
        break;
    case 4: { // one more, of any type
        const std::uint64_t value = interesting(random);
        attrs.insert(begin, attr_number(static_cast<int>(random.below(SMCFS_A_MAX + 4)), value));
        break;
    }
    case 5:
        attrs[at].type = static_cast<std::uint16_t>(random.below(SMCFS_A_MAX + 2));
        break;
    case 6:
        attrs[at].type ^= random.one_in(2) ? NLA_F_NESTED : NLA_F_NET_BYTEORDER;
        break;
    case 7:
        attrs[at].length_error = static_cast<int>(random.below(32)) - 16;
        break;
    default: { // nested, more and more
        Attr inner = attrs[at];
        for (std::uint64_t depth = 1 + random.below(200); depth > 0; depth--) {
            Bytes bytes = encode_attrs({inner});
            if (bytes.size() > 60000)
                break;
            inner = attr_raw(attrs[at].type | NLA_F_NESTED, bytes);
        }
        attrs[at] = inner;
        break;
    }
    }
}

void mutate_header(Message& message, Random& random)
{
    switch (random.below(6)) {
    case 0:
        message.length_error = static_cast<int>(random.below(64)) - 32;
        break;
    case 1:
        message.flags = static_cast<std::uint16_t>(random.next());
        break;
    case 2:
        message.reserved = static_cast<std::uint16_t>(random.next());
        break;
    case 3:
        message.version = static_cast<std::uint8_t>(random.next());
        break;
    case 4:
        message.cmd = static_cast<std::uint8_t>(random.next());
        break;
    // Only messages of netlink itself: other families are not ours to disturb.
    default:
        message.type = static_cast<std::uint16_t>(random.below(NLMSG_MIN_TYPE));
        break;
    }
}

// Any bytes but those that say which family is asked.
void mutate_bytes(Bytes& datagram, Random& random)
{
    if (random.one_in(2)) {
        datagram.resize(random.below(datagram.size() + 16));
        return;
    }
    for (std::uint64_t i = 1 + random.below(4); i > 0; i--) {
        const std::size_t at = random.below(datagram.size());
        const auto type = offsetof(nlmsghdr, nlmsg_type);
        if (at < type || at >= type + sizeof(nlmsghdr::nlmsg_type))
            datagram[at] = static_cast<std::uint8_t>(random.next());
    }
}

// A length in the first header that is not the message's own can make a header of the bytes that
// follow, and that of any family.
bool reaches_others(const Bytes& datagram, std::uint16_t family)
{
    for (std::size_t at = 0; at + NLMSG_HDRLEN <= datagram.size();) {
        nlmsghdr header;
        std::memcpy(&header, datagram.data() + at, sizeof(header));
        if (header.nlmsg_type >= NLMSG_MIN_TYPE && header.nlmsg_type != family)
            return true;
        if (header.nlmsg_len < NLMSG_HDRLEN || header.nlmsg_len > datagram.size() - at)
            return false;
        at += NLMSG_ALIGN(header.nlmsg_len);
    }
    return false;
}

} // namespace

Mutant make_mutant(const World& world, const std::vector<std::uint64_t>& regions, Random random)
{
    Mutant mutant{{}, 0, random.one_in(32)};
    const std::uint64_t messages = random.one_in(16) ? 2 + random.below(4) : 1;
    for (std::uint64_t i = 0; i < messages; i++) {
        Message message = world.addressed(some_request(world, regions, random));
        mutant.command = message.cmd;
        for (std::uint64_t n = random.below(4); n > 0; n--) {
            if (random.one_in(8))
                mutate_header(message, random);
            else
                mutate_attrs(message.attrs, random);
        }
        Bytes bytes = message.encode(1);
        bytes.resize(NLMSG_ALIGN(bytes.size()));
        mutant.datagram.insert(mutant.datagram.end(), bytes.begin(), bytes.end());
    }
    if (random.one_in(8))
        mutate_bytes(mutant.datagram, random);
    if (reaches_others(mutant.datagram, world.family))
        mutant.datagram.resize(NLMSG_HDRLEN);
    return mutant;
}

} // namespace smc::test
