// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
#include "kernel_model.hpp"

#include <memory>

#include <catch2/catch.hpp>
#include <netlink/attr.h>
#include <netlink/genl/genl.h>
#include <netlink/msg.h>

using namespace smc::client;

namespace {

struct MsgFree {
    void operator()(nl_msg* msg) const { nlmsg_free(msg); }
};

// A message as the module builds it.
class Message {
public:
    explicit Message(int cmd) : msg_(nlmsg_alloc())
    {
        genlmsg_put(msg_.get(), 0, 0, 0x20, 0, 0, static_cast<uint8_t>(cmd), SMCFS_GENL_VERSION);
    }
    Message& u8(int attr, uint8_t value) { return done(nla_put_u8(msg_.get(), attr, value)); }
    Message& u32(int attr, uint32_t value) { return done(nla_put_u32(msg_.get(), attr, value)); }
    Message& u64(int attr, uint64_t value) { return done(nla_put_u64(msg_.get(), attr, value)); }
    Message& text(int attr, const char* value)
    {
        return done(nla_put_string(msg_.get(), attr, value));
    }
    Message& bytes(int attr, const std::string& value)
    {
        return done(nla_put(msg_.get(), attr, static_cast<int>(value.size()), value.data()));
    }
    nl_msg* raw() { return msg_.get(); }
    [[nodiscard]] const nlmsghdr* get() const { return nlmsg_hdr(msg_.get()); }

private:
    Message& done(int err)
    {
        REQUIRE(err == 0);
        return *this;
    }
    std::unique_ptr<nl_msg, MsgFree> msg_;
};

} // namespace

TEST_CASE("a region's message becomes a value, counters by name", "[kernel]")
{
    Message msg(SMCFS_CMD_REGION_GET);
    msg.u64(SMCFS_A_REGION_ID, 7)
        .text(SMCFS_A_NODE, "gpu3")
        .text(SMCFS_A_NAME, "job/params")
        .u64(SMCFS_A_SIZE, uint64_t{5} << 30)
        .u32(SMCFS_A_STATE, SMCFS_REGION_DEGRADED)
        .u32(SMCFS_A_ERRNO, ETIMEDOUT)
        .text(SMCFS_A_REASON, "session lost")
        .u8(SMCFS_A_CTO, 0)
        .u8(SMCFS_A_CTO_ORIGIN, SMCFS_ORIGIN_CONFIG)
        .u32(SMCFS_A_FLUSH_AFTER_MS, 250)
        .u8(SMCFS_A_FLUSH_AFTER_ORIGIN, SMCFS_ORIGIN_SET)
        .u32(SMCFS_A_SYNC_MODE, SMCFS_SYNC_EAGER)
        .u8(SMCFS_A_SYNC_MODE_ORIGIN, SMCFS_ORIGIN_EXPORT)
        .u32(SMCFS_A_PUSH_DELAY_US, 30)
        .u8(SMCFS_A_PUSH_DELAY_ORIGIN, SMCFS_ORIGIN_CONFIG)
        .u32(SMCFS_A_MAX_STALE_US, 5000)
        .u8(SMCFS_A_MAX_STALE_ORIGIN, SMCFS_ORIGIN_SET)
        .u8(SMCFS_A_HOT, 1)
        .u8(SMCFS_A_HOT_ORIGIN, SMCFS_ORIGIN_CONFIG)
        .u32(SMCFS_A_GRANULE, 65536)
        .u8(SMCFS_A_GRANULE_ORIGIN, SMCFS_ORIGIN_EXPORT)
        .u64(SMCFS_A_DIRTY_BYTES, 8192)
        .u32(SMCFS_A_OLDEST_MS, 42);
    nlattr* nest = nla_nest_start(msg.raw(), SMCFS_A_STATS);
    nla_put_u64(msg.raw(), SMCFS_STAT_FETCH_OPS, 3);
    nla_put_u64(msg.raw(), SMCFS_STAT_FLUSH_BYTES, 4096);
    nla_put_u64(msg.raw(), SMCFS_STAT_MAX + 5, 9); // of a later module
    nla_nest_end(msg.raw(), nest);

    auto region = parse_region(msg.get());
    REQUIRE(region);
    CHECK(region->id == 7);
    CHECK(region->node == "gpu3");
    CHECK(region->name == "job/params");
    CHECK(region->size_bytes == uint64_t{5} << 30);
    CHECK(region_state_name(region->state) == "degraded");
    CHECK(region->error == ETIMEDOUT);
    CHECK(region->reason == "session lost");
    CHECK(region->cto == false);
    CHECK(region->flush_after_ms == 250);
    CHECK(region->cto_origin == SMCFS_ORIGIN_CONFIG);
    CHECK(region->flush_after_origin == SMCFS_ORIGIN_SET);
    CHECK(region->sync_mode == SMCFS_SYNC_EAGER);
    CHECK(region->sync_mode_origin == SMCFS_ORIGIN_EXPORT);
    CHECK(region->push_delay_us == 30);
    CHECK(region->push_delay_origin == SMCFS_ORIGIN_CONFIG);
    CHECK(region->max_stale_us == 5000);
    CHECK(region->max_stale_origin == SMCFS_ORIGIN_SET);
    CHECK(region->hot == true);
    CHECK(region->hot_origin == SMCFS_ORIGIN_CONFIG);
    CHECK(region->granule == 65536);
    CHECK(region->granule_origin == SMCFS_ORIGIN_EXPORT);
    CHECK(region->dirty_bytes == 8192);
    CHECK(region->oldest_ms == 42);
    CHECK(region->stats == Stats{{"fetch_ops", 3}, {"flush_bytes", 4096}});
}

TEST_CASE("runs of pages are read wherever the attribute lies", "[kernel]")
{
    const smcfs_page_run runs[] = {{1ULL << 40, 5, SMCFS_PAGE_DIRTY}, {7, 1, 99}};
    const std::string raw(reinterpret_cast<const char*>(runs), sizeof(runs));
    // Before it 4 bytes more, or not: one of the two is unaligned.
    for (const bool shifted : {false, true}) {
        Message msg(SMCFS_CMD_PAGES_GET);
        if (shifted)
            msg.text(SMCFS_A_NAME, "");
        const auto pages = parse_pages(msg.bytes(SMCFS_A_PAGES, raw).get());
        REQUIRE(pages);
        REQUIRE(pages->size() == 2);
        CHECK(pages->at(0).first == 1ULL << 40);
        CHECK(pages->at(0).pages == 5);
        CHECK(pages->at(0).state == SMCFS_PAGE_DIRTY);
        CHECK(pages->at(1).state == 99);
    }
    Message none(SMCFS_CMD_PAGES_GET);
    CHECK(parse_pages(none.get()).error().code == EPROTO);
    Message torn(SMCFS_CMD_PAGES_GET);
    CHECK(parse_pages(torn.bytes(SMCFS_A_PAGES, raw.substr(1)).get()).error().code == EPROTO);
}

TEST_CASE("a histogram is read wherever the attribute lies", "[kernel]")
{
    std::vector<uint64_t> counts(SMCFS_LATENCY_BUCKETS);
    counts.front() = 3;
    counts.back() = 1ULL << 40;
    const std::string raw(reinterpret_cast<const char*>(counts.data()),
                          counts.size() * sizeof(uint64_t));
    for (const bool shifted : {false, true}) {
        Message msg(SMCFS_CMD_LATENCY_GET);
        if (shifted)
            msg.text(SMCFS_A_NAME, "");
        const auto latency = parse_latency(msg.u64(SMCFS_A_REGION_ID, 7)
                                               .u32(SMCFS_A_LATENCY, SMCFS_LATENCY_WRITE)
                                               .bytes(SMCFS_A_BUCKETS, raw)
                                               .get());
        REQUIRE(latency);
        CHECK(latency->region_id == 7);
        CHECK(latency->kind == SMCFS_LATENCY_WRITE);
        CHECK(latency->buckets == counts);
    }
    Message none(SMCFS_CMD_LATENCY_GET);
    none.u64(SMCFS_A_REGION_ID, 7).u32(SMCFS_A_LATENCY, SMCFS_LATENCY_WRITE);
    CHECK(parse_latency(none.get()).error().code == EPROTO);
    // Of a module with other buckets: what they mean is not known.
    CHECK(parse_latency(none.bytes(SMCFS_A_BUCKETS, raw.substr(8)).get()).error().code == EPROTO);
    Message unnamed(SMCFS_CMD_LATENCY_GET);
    CHECK(parse_latency(unnamed.u64(SMCFS_A_REGION_ID, 7).bytes(SMCFS_A_BUCKETS, raw).get())
              .error()
              .code == EPROTO);
}

TEST_CASE("attributes that a later module adds are passed over", "[kernel]")
{
    Message msg(SMCFS_CMD_REGION_GET);
    msg.u64(SMCFS_A_REGION_ID, 7).u32(SMCFS_A_MAX + 1, 1).u32(SMCFS_A_MAX + 200, 1);
    auto region = parse_region(msg.get());
    REQUIRE(region);
    CHECK(region->id == 7);
    CHECK_FALSE(region->cto);
}

TEST_CASE("messages that lack what they are about are EPROTO", "[kernel]")
{
    CHECK(parse_region(Message(SMCFS_CMD_REGION_GET).get()).error().code == EPROTO);
    CHECK(parse_session(Message(SMCFS_CMD_SESSION_GET).get()).error().code == EPROTO);
    CHECK(parse_peer(Message(SMCFS_CMD_PEER_GET).get()).error().code == EPROTO);
}

TEST_CASE("attributes that are too short are EPROTO, not read past their end", "[kernel]")
{
    Message id(SMCFS_CMD_REGION_GET);
    id.u32(SMCFS_A_REGION_ID, 7);
    CHECK(parse_region(id.get()).error().code == EPROTO);

    Message state(SMCFS_CMD_SESSION_GET);
    state.u64(SMCFS_A_SESSION_ID, 7).u8(SMCFS_A_STATE, 1);
    CHECK(parse_session(state.get()).error().code == EPROTO);

    Message name(SMCFS_CMD_PEER_GET);
    name.bytes(SMCFS_A_NODE, std::string("gpu3")); // without the NUL
    CHECK(parse_peer(name.get()).error().code == EPROTO);
}

TEST_CASE("events say of what they are, others are not taken for them", "[kernel]")
{
    Message session(SMCFS_CMD_EVENT_SESSION);
    session.u64(SMCFS_A_SESSION_ID, 9)
        .text(SMCFS_A_NODE, "gpu3")
        .u32(SMCFS_A_STATE, SMCFS_SESSION_DEAD);
    auto event = parse_event(session.get());
    REQUIRE(event);
    CHECK(event->kind == KernelEvent::Kind::session);
    CHECK(session_state_name(event->state) == "dead");

    CHECK(parse_event(Message(SMCFS_CMD_UPCALL_BIND).get()).error().code == EOPNOTSUPP);
}

TEST_CASE("states out of range have a name", "[kernel]")
{
    for (uint32_t state : {0U, 100U, UINT32_MAX}) {
        CHECK(region_state_name(state) == "unknown");
        CHECK(session_state_name(state) == "unknown");
        CHECK(writer_state_name(state) == "unknown");
        CHECK(writers_name(state) == "unknown");
    }
    CHECK(writers_name(SMCFS_WRITERS_EXCLUSIVE) == "exclusive");
    CHECK(writers_name(SMCFS_WRITERS_MERGE) == "merge");
    CHECK(writer_state_name(SMCFS_WRITER_HELD) == "held");
}
