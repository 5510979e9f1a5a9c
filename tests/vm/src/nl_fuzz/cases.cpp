// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
#include "cases.hpp"

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <limits>
#include <set>

#include <arpa/inet.h>
#include <linux/netlink.h>

namespace smc::test {

namespace {

constexpr std::uint64_t kMiB2 = SMCFS_EXTENT_MIN;
constexpr std::uint64_t kNobody = 0x0123456789abcdef; // no region, session or question

struct Case {
    std::string what;
    Message message;
    int wanted; // errno, 0: must succeed
};

using Cases = std::vector<Case>;

std::string spell(const char* prefix, int number)
{
    return prefix + std::to_string(number);
}

Attr extents(const std::vector<smcfs_extent>& list)
{
    return attr_raw(SMCFS_A_EXTENTS, bytes_of(list));
}

// --- what all commands have in common ------------------------------------------------------

struct Shape {
    Message right;
    std::vector<int> required;
};

std::vector<Shape> shapes(const World& world)
{
    return {
        {World::peer(SMCFS_CMD_PEER_ADD, "fuzz-shape"), {SMCFS_A_NODE}},
        {World::peer(SMCFS_CMD_PEER_DEL, "fuzz-shape"), {SMCFS_A_NODE}},
        {world.session_connect(kNobody, kNode),
         {SMCFS_A_SESSION_ID, SMCFS_A_NODE, SMCFS_A_DST_ADDR, SMCFS_A_TOKEN_READ,
          SMCFS_A_TOKEN_BULK, SMCFS_A_REQUEST_TIMEOUT_MS, SMCFS_A_CONNECT_TIMEOUT_MS}},
        {Message(SMCFS_CMD_SESSION_DEL).u64(SMCFS_A_SESSION_ID, kNobody), {SMCFS_A_SESSION_ID}},
        {world.attach("shape"),
         {SMCFS_A_NODE, SMCFS_A_NAME, SMCFS_A_SESSION_ID, SMCFS_A_GENERATION, SMCFS_A_SIZE,
          SMCFS_A_MODE, SMCFS_A_UID, SMCFS_A_GID, SMCFS_A_WRITERS, SMCFS_A_EXTENTS}},
        {World::peer(SMCFS_CMD_BIND_FAIL, kNode)
             .text(SMCFS_A_NAME, "shape")
             .u32(SMCFS_A_ERRNO, ENOENT),
         {SMCFS_A_NODE, SMCFS_A_NAME, SMCFS_A_ERRNO}},
        {World::region(SMCFS_CMD_REGION_DETACH, kNobody), {SMCFS_A_REGION_ID}},
        {World::region(SMCFS_CMD_REGION_REVOKE, kNobody), {SMCFS_A_REGION_ID}},
        {World::region(SMCFS_CMD_REGION_SET, kNobody).u8(SMCFS_A_CTO, 1), {SMCFS_A_REGION_ID}},
        {World::region(SMCFS_CMD_WRITER_RESULT, kNobody).u32(SMCFS_A_ERRNO, 0),
         {SMCFS_A_REGION_ID, SMCFS_A_ERRNO}},
        {Message(SMCFS_CMD_LIST_RESULT).u64(SMCFS_A_COOKIE, kNobody).u32(SMCFS_A_ERRNO, 0),
         {SMCFS_A_COOKIE, SMCFS_A_ERRNO}},
        {World::region(SMCFS_CMD_REGION_GET, kNobody), {SMCFS_A_REGION_ID}},
        {Message(SMCFS_CMD_DAEMON_HELLO), {}},
        {Message(SMCFS_CMD_INFO_GET), {}},
    };
}

// An attribute that is missing, of the wrong length, of another command or of none; headers.
Cases form_cases(const World& world)
{
    Cases cases;
    for (const Shape& shape : shapes(world)) {
        const std::string name = spell("command ", shape.right.cmd);
        for (int attr : shape.required) {
            cases.push_back({name + spell(" without attribute ", attr),
                             Message(shape.right).drop(attr), EINVAL});
            cases.push_back({name + spell(" with empty attribute ", attr),
                             Message(shape.right).replace(attr_raw(attr, {})),
                             // Binary data may be shorter than its limit, policies with a least
                             // length say ERANGE.
                             attr == SMCFS_A_DST_ADDR || attr == SMCFS_A_TOKEN_READ ||
                                     attr == SMCFS_A_TOKEN_BULK
                                 ? ERANGE
                                 : EINVAL});
        }
        for (int attr : {static_cast<int>(SMCFS_A_PAD), static_cast<int>(SMCFS_A_STATS),
                         SMCFS_A_MAX + 1, 1000})
            cases.push_back({name + spell(" with foreign attribute ", attr),
                             Message(shape.right).u32(attr, 0), EINVAL});
        Message message = shape.right;
        message.reserved = 1;
        cases.push_back({name + " with reserved bits in its header", message, EINVAL});
        message = shape.right;
        message.flags |= NLM_F_APPEND;
        cases.push_back({name + " with a flag that means nothing", message, EINVAL});
    }
    for (int command : {0, 200, 255})
        cases.push_back({spell("unknown command ", command), Message(command), EOPNOTSUPP});
    for (int command = SMCFS_CMD_UPCALL_BIND; command <= SMCFS_CMD_MAX; command++)
        cases.push_back(
            {spell("message of the kernel as command ", command), Message(command), EOPNOTSUPP});
    for (int command : {SMCFS_CMD_PEER_GET, SMCFS_CMD_SESSION_GET})
        cases.push_back({spell("no dump of command ", command), Message(command), EOPNOTSUPP});
    Message dump(SMCFS_CMD_INFO_GET);
    dump.flags |= NLM_F_DUMP;
    cases.push_back({"a dump of what is one", dump, EOPNOTSUPP});
    return cases;
}

// --- names -----------------------------------------------------------------------------------

Cases name_cases(const World& world)
{
    Cases cases;
    const std::string bad_components[] = {"", ".", "..", "a\n", "\x7f", std::string("a\0b", 3)};
    for (const std::string& name : bad_components) {
        cases.push_back({"bad node", World::peer(SMCFS_CMD_PEER_ADD, name), EINVAL});
        cases.push_back({"bad name", world.attach(name), EINVAL});
        cases.push_back({"bad last component", world.attach("job/" + name), EINVAL});
        cases.push_back({"bad first component", world.attach(name + "/params"), EINVAL});
    }
    cases.push_back({"node with a slash", World::peer(SMCFS_CMD_PEER_ADD, "a/b"), EINVAL});
    cases.push_back({"path out of the node", world.attach("a/../../b"), EINVAL});
    cases.push_back({"absolute name", world.attach("/etc/passwd"), EINVAL});
    cases.push_back({"double slash", world.attach("a//b"), EINVAL});
    const std::string node(SMCFS_NODE_NAME_MAX, 'n'), name(SMCFS_REGION_NAME_MAX, 'r');
    cases.push_back({"longest node", World::peer(SMCFS_CMD_PEER_ADD, node), 0});
    cases.push_back({"and away", World::peer(SMCFS_CMD_PEER_DEL, node), 0});
    cases.push_back({"too long node", World::peer(SMCFS_CMD_PEER_ADD, node + "n"), EINVAL});
    cases.push_back({"longest name", world.attach(name), 0});
    cases.push_back({"too long name", world.attach(name + "r"), EINVAL});
    const std::uint8_t letters[] = {'a', 'b', 'c'};
    cases.push_back(
        {"node without NUL", Message(SMCFS_CMD_PEER_ADD).raw(SMCFS_A_NODE, letters), EINVAL});
    cases.push_back({"peer twice", World::peer(SMCFS_CMD_PEER_ADD, kNode), EEXIST});
    cases.push_back({"no such peer", World::peer(SMCFS_CMD_PEER_DEL, "fuzz-nobody"), ENOENT});
    cases.push_back({"peer with regions", World::peer(SMCFS_CMD_PEER_DEL, kNode), EBUSY});
    return cases;
}

// --- regions ---------------------------------------------------------------------------------

Cases extent_cases(const World& world)
{
    auto with = [&](std::uint64_t size, const std::vector<smcfs_extent>& list) {
        return world.attach("extents", size).replace(extents(list));
    };
    const smcfs_extent first{0, kMiB2, 0, 1, 2}, second{kMiB2, kMiB2, kMiB2, 1, 2};
    const std::uint64_t top = std::numeric_limits<std::uint64_t>::max();
    Cases cases{
        {"two extents", with(2 * kMiB2, {first, second}), 0},
        {"extents not sorted", with(2 * kMiB2, {second, first}), EINVAL},
        {"same extent twice", with(2 * kMiB2, {first, first}), EINVAL},
        {"overlap", with(2 * kMiB2, {first, {kMiB2 - 1, kMiB2 + 1, 0, 1, 2}}), EINVAL},
        {"gap", with(2 * kMiB2, {first, {kMiB2 + 1, kMiB2 - 1, 0, 1, 2}}), EINVAL},
        {"not from 0", with(kMiB2, {{1, kMiB2 - 1, 0, 1, 2}}), EINVAL},
        {"too short for the size", with(2 * kMiB2 + 1, {first, second}), EINVAL},
        {"too long for the size", with(2 * kMiB2 - 1, {first, second}), EINVAL},
        {"short extent in the middle",
         with(kMiB2, {{0, 4096, 0, 1, 2}, {4096, kMiB2 - 4096, 0, 1, 2}}), EINVAL},
        {"short last extent", with(kMiB2 + 1, {first, {kMiB2, 1, 0, 1, 2}}), 0},
        {"empty last extent", with(kMiB2, {first, {kMiB2, 0, 0, 1, 2}}), EINVAL},
        {"empty only extent", with(kMiB2, {{0, 0, 0, 1, 2}}), EINVAL},
        {"address wraps", with(kMiB2, {{0, kMiB2, top - kMiB2 + 2, 1, 2}}), EINVAL},
        {"address up to the last byte", with(kMiB2, {{0, kMiB2, top - kMiB2 + 1, 1, 2}}), 0},
        {"offset wraps", with(kMiB2, {{0, top, 0, 1, 2}, {top, kMiB2 + 1, 0, 1, 2}}), EINVAL},
        {"length wraps", with(kMiB2, {{0, top, 1, 1, 2}}), EINVAL},
        {"no extent", with(kMiB2, {}), EINVAL},
        {"half an extent",
         world.attach("extents").replace(attr_raw(
             SMCFS_A_EXTENTS, bytes_of(one_extent(kMiB2)).first(sizeof(smcfs_extent) / 2))),
         EINVAL},
    };
    std::vector<smcfs_extent> most;
    for (std::uint64_t i = 0; i <= SMCFS_EXTENTS_MAX; i++)
        most.push_back({i * kMiB2, kMiB2, i * kMiB2, 1, 2});
    cases.push_back({"too many extents", with(most.size() * kMiB2, most), ERANGE});
    most.pop_back();
    cases.push_back({"most extents", with(most.size() * kMiB2, most), 0});
    return cases;
}

Cases region_cases(const World& world)
{
    auto number = [&](int attr, auto value) {
        return world.attach("numbers").replace(attr_number(attr, value));
    };
    const std::uint32_t none = std::numeric_limits<std::uint32_t>::max();
    return {
        {"size 0", number(SMCFS_A_SIZE, std::uint64_t{0}), ERANGE},
        {"size 16 TiB and 1", world.attach("numbers", SMCFS_REGION_SIZE_MAX + 1), ERANGE},
        {"size 2^64 - 1", number(SMCFS_A_SIZE, ~std::uint64_t{0}), ERANGE},
        {"size 1", world.attach("one-byte", 1), 0},
        {"size 16 TiB", world.attach("largest", SMCFS_REGION_SIZE_MAX), 0},
        {"setuid", number(SMCFS_A_MODE, 04755U), EINVAL},
        {"sticky", number(SMCFS_A_MODE, 01777U), EINVAL},
        {"a device", number(SMCFS_A_MODE, 020666U), EINVAL},
        {"nobody's uid", number(SMCFS_A_UID, none), ERANGE},
        {"nobody's gid", number(SMCFS_A_GID, none), ERANGE},
        {"writers unspecified", number(SMCFS_A_WRITERS, 0U), ERANGE},
        {"writers unknown", number(SMCFS_A_WRITERS, 3U), ERANGE},
        {"units of 2", world.attach("numbers").u32(SMCFS_A_MERGE_UNIT, 2U), ERANGE},
        {"units of 8192", world.attach("numbers").u32(SMCFS_A_MERGE_UNIT, 8192U), ERANGE},
        {"units of 96", world.attach("numbers").u32(SMCFS_A_MERGE_UNIT, 96U), EINVAL},
        {"flags unknown", number(SMCFS_A_FLAGS, SMCFS_RF_ALL + 1U), EINVAL},
        {"generation 0", number(SMCFS_A_GENERATION, std::uint64_t{0}), ERANGE},
        {"session 0", number(SMCFS_A_SESSION_ID, std::uint64_t{0}), ERANGE},
        {"session unknown", number(SMCFS_A_SESSION_ID, kNobody), ENOENT},
        {"session of another node",
         world.attach("numbers").replace(attr_text(SMCFS_A_NODE, kOtherNode)), EINVAL},
        {"size of 32 bits", number(SMCFS_A_SIZE, 4096U), EINVAL},
        {"mode of 64 bits", number(SMCFS_A_MODE, std::uint64_t{0600}), EINVAL},
        {"detach of nothing", World::region(SMCFS_CMD_REGION_DETACH, kNobody), ENOENT},
        {"detach of region 0", World::region(SMCFS_CMD_REGION_DETACH, 0), ERANGE},
        {"detach, flags unknown",
         World::region(SMCFS_CMD_REGION_DETACH, kNobody).u32(SMCFS_A_FLAGS, 2), EINVAL},
        {"revoke of nothing", World::region(SMCFS_CMD_REGION_REVOKE, kNobody), ENOENT},
        {"get of nothing", World::region(SMCFS_CMD_REGION_GET, kNobody), ENOENT},
        {"set of nothing", World::region(SMCFS_CMD_REGION_SET, kNobody).u8(SMCFS_A_CTO, 1), ENOENT},
        {"set nothing", World::region(SMCFS_CMD_REGION_SET, kNobody), EINVAL},
        {"an origin that is none",
         World::region(SMCFS_CMD_REGION_SET, kNobody).u8(SMCFS_A_CTO, 1).u8(SMCFS_A_ORIGIN, 0),
         ERANGE},
        {"close-to-open 2", World::region(SMCFS_CMD_REGION_SET, kNobody).u8(SMCFS_A_CTO, 2),
         ERANGE},
        {"flush after 0 ms",
         World::region(SMCFS_CMD_REGION_SET, kNobody).u32(SMCFS_A_FLUSH_AFTER_MS, 0), ERANGE},
        {"flush after more than an hour",
         World::region(SMCFS_CMD_REGION_SET, kNobody).u32(SMCFS_A_FLUSH_AFTER_MS, 3600001), ERANGE},
        {"mode 0", World::region(SMCFS_CMD_REGION_SET, kNobody).u32(SMCFS_A_SYNC_MODE, 0), ERANGE},
        {"mode unknown",
         World::region(SMCFS_CMD_REGION_SET, kNobody).u32(SMCFS_A_SYNC_MODE, SMCFS_SYNC_MAX + 1),
         ERANGE},
        {"push after more than a second",
         World::region(SMCFS_CMD_REGION_SET, kNobody)
             .u32(SMCFS_A_PUSH_DELAY_US, SMCFS_PUSH_DELAY_US_MAX + 1),
         ERANGE},
        {"neither hot nor not", World::region(SMCFS_CMD_REGION_SET, kNobody).u8(SMCFS_A_HOT, 2),
         ERANGE},
        {"granules of 2 KiB",
         World::region(SMCFS_CMD_REGION_SET, kNobody).u32(SMCFS_A_GRANULE, 2048), EINVAL},
        {"granules of 2 MiB",
         World::region(SMCFS_CMD_REGION_SET, kNobody).u32(SMCFS_A_GRANULE, 2 * SMCFS_GRANULE_MAX),
         EINVAL},
        {"granules of three pages",
         World::region(SMCFS_CMD_REGION_SET, kNobody).u32(SMCFS_A_GRANULE, 12288), EINVAL},
        {"granules of 64 bits",
         World::region(SMCFS_CMD_REGION_SET, kNobody).u64(SMCFS_A_GRANULE, 4096), EINVAL},
        {"a granule of nothing",
         World::region(SMCFS_CMD_REGION_SET, kNobody).u32(SMCFS_A_GRANULE, 4096), ENOENT},
        {"stale for more than an hour",
         World::region(SMCFS_CMD_REGION_SET, kNobody)
             .u32(SMCFS_A_MAX_STALE_US, SMCFS_MAX_STALE_US_MAX + 1),
         ERANGE},
        {"modes of nothing",
         World::region(SMCFS_CMD_REGION_SET, kNobody).u32(SMCFS_A_SYNC_MODE, SMCFS_SYNC_PUSH),
         ENOENT},
        {"pages, but no dump", World::region(SMCFS_CMD_PAGES_GET, kNobody), EOPNOTSUPP},
    };
}

// --- sessions --------------------------------------------------------------------------------

template <typename Address>
Attr address(int attr, const Address& value)
{
    return attr_raw(attr, bytes_of(value));
}

Cases address_cases(const World& world)
{
    const sockaddr_in right = world.target4(7451);
    auto to = [&](const auto& value) {
        return world.session_connect(kNobody, kNode).replace(address(SMCFS_A_DST_ADDR, value));
    };
    auto to4 = [&](const char* text) {
        sockaddr_in value = right;
        inet_pton(AF_INET, text, &value.sin_addr);
        return to(value);
    };
    auto to6 = [&](const char* text) {
        sockaddr_in6 value{};
        value.sin6_family = AF_INET6;
        value.sin6_port = right.sin_port;
        inet_pton(AF_INET6, text, &value.sin6_addr);
        return to(value);
    };
    auto from = [&](const auto& value) {
        return to(right).replace(address(SMCFS_A_SRC_ADDR, value));
    };
    sockaddr_in no_port = right, no_family = right, unix_family = right, any = right;
    no_port.sin_port = 0;
    no_family.sin_family = AF_UNSPEC;
    unix_family.sin_family = AF_UNIX;
    any.sin_port = 0;
    any.sin_addr.s_addr = 0;
    sockaddr_in6 six{}, four_in_six{};
    six.sin6_family = AF_INET6;
    inet_pton(AF_INET6, "2001:db8::1", &six.sin6_addr);
    four_in_six.sin6_family = AF_INET;
    four_in_six.sin6_port = right.sin_port;
    sockaddr_in six_in_four = right;
    six_in_four.sin_family = AF_INET6;
    std::uint8_t one_more[sizeof(right) + 1] = {};
    std::memcpy(one_more, &right, sizeof(right));
    return {
        {"target port 0", to(no_port), EINVAL},
        {"target of no family", to(no_family), EINVAL},
        {"target of another family", to(unix_family), EINVAL},
        {"target 0.0.0.0", to4("0.0.0.0"), EINVAL},
        {"target multicast", to4("239.1.2.3"), EINVAL},
        {"target broadcast", to4("255.255.255.255"), EINVAL},
        {"target ::", to6("::"), EINVAL},
        {"target multicast, IPv6", to6("ff02::1"), EINVAL},
        {"target IPv4 in IPv6", to6("::ffff:192.0.2.1"), EINVAL},
        {"target link-local without scope", to6("fe80::1"), EINVAL},
        {"IPv4 in the length of IPv6", to(four_in_six), EINVAL},
        {"IPv6 in the length of IPv4", to(six_in_four), EINVAL},
        {"address a byte too long", to(one_more), EINVAL},
        {"address of 4 bytes", to(std::uint32_t{AF_INET}), ERANGE},
        {"source with a port", from(right), EINVAL},
        {"source 0.0.0.0", from(any), EINVAL},
        {"source of another family than the target", from(six), EINVAL},
    };
}

Cases session_cases(const World& world)
{
    auto number = [&](int attr, auto value) {
        return world.session_connect(kNobody, kNode).replace(attr_number(attr, value));
    };
    Bytes token(SMCFS_TOKEN_BYTES + 1, 1);
    auto with_token = [&](int attr, std::size_t size) {
        return world.session_connect(kNobody, kNode)
            .replace(attr_raw(attr, std::span(token).first(size)));
    };
    Cases cases = {
        {"session again", world.session_connect(kSession, kNode), EEXIST},
        {"session 0", number(SMCFS_A_SESSION_ID, std::uint64_t{0}), ERANGE},
        {"delete of no session", Message(SMCFS_CMD_SESSION_DEL).u64(SMCFS_A_SESSION_ID, kNobody),
         ENOENT},
    };
    for (int attr : {SMCFS_A_REQUEST_TIMEOUT_MS, SMCFS_A_CONNECT_TIMEOUT_MS})
        for (std::uint32_t value : {0U, 9U, 600001U, ~0U})
            cases.push_back(
                {spell("timeout ", static_cast<int>(value)), number(attr, value), ERANGE});
    for (int attr : {SMCFS_A_TOKEN_READ, SMCFS_A_TOKEN_BULK})
        for (std::size_t size : {SMCFS_TOKEN_BYTES - 1, SMCFS_TOKEN_BYTES + 1})
            cases.push_back({"token a byte off", with_token(attr, size), ERANGE});
    return cases;
}

// --- answers to upcalls ----------------------------------------------------------------------

Cases answer_cases()
{
    auto list = [](const std::vector<Attr>& names) {
        return Message(SMCFS_CMD_LIST_RESULT)
            .u64(SMCFS_A_COOKIE, kNobody)
            .u32(SMCFS_A_ERRNO, 0)
            .nest(SMCFS_A_NAMES, names);
    };
    Message flat = list({attr_text(SMCFS_A_NAME, "a")});
    flat.attrs.back().type = SMCFS_A_NAMES;
    auto bind_fail = [](const char* node, std::uint32_t error) {
        return World::peer(SMCFS_CMD_BIND_FAIL, node)
            .text(SMCFS_A_NAME, "nothing")
            .u32(SMCFS_A_ERRNO, error);
    };
    const Message writer = World::region(SMCFS_CMD_WRITER_RESULT, kNobody);
    return {
        {"list for nobody", list({attr_text(SMCFS_A_NAME, "a")}), ENOENT},
        {"list of a bad name", list({attr_text(SMCFS_A_NAME, "../a")}), EINVAL},
        {"list of a name with NUL", list({attr_text(SMCFS_A_NAME, std::string_view("a\0b", 3))}),
         EINVAL},
        {"list of something else", list({attr_text(SMCFS_A_NODE, "a")}), EINVAL},
        {"list that is not nested", flat, EINVAL},
        {"list, errno 4096",
         Message(SMCFS_CMD_LIST_RESULT).u64(SMCFS_A_COOKIE, 1).u32(SMCFS_A_ERRNO, 4096), ERANGE},
        {"bind failure without an error", bind_fail(kNode, 0), ERANGE},
        {"bind failure, errno 4096", bind_fail(kNode, 4096), ERANGE},
        {"bind failure of no peer", bind_fail("fuzz-nobody", ENOENT), ENOENT},
        {"bind failure of what nobody asked", bind_fail(kNode, ENOENT), ENOENT},
        {"writing right of nothing", Message(writer).u32(SMCFS_A_ERRNO, 0), ENOENT},
        {"writing right, errno 4096", Message(writer).u32(SMCFS_A_ERRNO, 4096), ERANGE},
    };
}

int run(World& world, const Cases& cases)
{
    int failed = 0;
    for (const Case& test : cases)
        failed += expect(test.what, world.ask(test.message), test.wanted);
    return failed;
}

// A message that ends in the middle of an attribute, or of its header.
int check_trailing(World& world)
{
    int failed = 0;
    for (int error : {1, 2, 3}) {
        Message message = world.attach("trailing");
        Bytes datagram = message.encode(1);
        nlmsghdr header;
        std::memcpy(&header, datagram.data(), sizeof(header));
        header.nlmsg_len += static_cast<std::uint32_t>(error);
        std::memcpy(datagram.data(), &header, sizeof(header));
        datagram.resize(datagram.size() + 4);
        failed += expect(spell("bytes left over: ", error), world.control.send(datagram), EINVAL);
    }
    Message longer = world.attach("trailing");
    longer.attrs.back().length_error = 4;
    failed += expect("last attribute too long", world.ask(longer), EINVAL);
    return failed;
}

// A session that is not connected takes no region.
int check_not_live(World& world)
{
    constexpr std::uint64_t kConnecting = kNobody + 1;
    Message start = world.session_connect(kConnecting, kNode);
    start.replace(address(SMCFS_A_DST_ADDR, world.target4(7451)));
    start.replace(attr_number(SMCFS_A_CONNECT_TIMEOUT_MS, std::uint32_t{600000}));
    int failed = expect("session to nowhere", world.ask(start), 0);
    Message attach = world.attach("not-live");
    attach.replace(attr_number(SMCFS_A_SESSION_ID, kConnecting));
    failed += expect("region on a session that is not live", world.ask(attach), ENOTCONN);
    return failed;
}

} // namespace

int expect(const std::string& what, bool met)
{
    if (!met)
        std::printf("FAILED: %s\n", what.c_str());
    return met ? 0 : 1;
}

int expect(const std::string& what, const Answer& answer, int wanted)
{
    const int got = answer.sent ? answer.sent : answer.error.value_or(-1);
    // Whoever is refused by the family is told why.
    const bool told = wanted == 0 || wanted == EPERM || wanted == EOPNOTSUPP || !answer.why.empty();
    if (got == wanted && answer.acks == 1 && told)
        return 0;
    std::printf("FAILED: %s: wanted %s, got %s%s%s%s (%d answers)\n", what.c_str(),
                wanted ? strerrorname_np(wanted) : "success",
                got > 0    ? strerrorname_np(got)
                : got == 0 ? "success"
                           : "no answer",
                answer.why.empty() ? "" : ": ", answer.why.c_str(), told ? "" : " without a reason",
                answer.acks);
    return 1;
}

int check_errors(World& world)
{
    int failed = run(world, {{"a right region", world.attach("right"), 0}});
    for (const Cases& cases :
         {form_cases(world), name_cases(world), extent_cases(world), region_cases(world),
          address_cases(world), session_cases(world), answer_cases()})
        failed += run(world, cases);
    failed += check_trailing(world);
    failed += check_not_live(world);
    world.clean(true);
    return failed;
}

int check_scale(World& world)
{
    constexpr int kMany = 60000;
    const auto begin = std::chrono::steady_clock::now();
    int refused = 0;
    for (int i = 0; i < kMany; i++)
        refused += world.ask(World::peer(SMCFS_CMD_PEER_ADD, spell("scale-", i))).error != 0;
    const double adding = seconds_since(begin);
    const auto added = std::chrono::steady_clock::now();
    const Answer dump = world.control.dump(world.addressed(Message(SMCFS_CMD_PEER_GET)));
    const double listing = seconds_since(added);
    std::printf("  %d peers: added in %.2f s, listed in %.2f s\n", kMany, adding, listing);
    int failed = expect("as many peers as a cluster has nodes", refused == 0);
    std::set<std::string> names;
    for (const Received& message : dump.messages)
        names.insert(message.text(SMCFS_A_NODE).value_or(""));
    failed += expect("each of them is in the dump, once",
                     names.size() == dump.messages.size() && names.contains(spell("scale-", 0)) &&
                         names.contains(spell("scale-", kMany - 1)) && names.size() >= kMany);
    // One system call for hundreds of them instead of one for each, unless it looks for the next
    // one among all of them.
    failed += expect("a dump takes less time than to add what it lists", listing < adding);
    for (int i = 0; i < kMany; i++)
        world.ask(World::peer(SMCFS_CMD_PEER_DEL, spell("scale-", i)));
    return failed;
}

} // namespace smc::test
