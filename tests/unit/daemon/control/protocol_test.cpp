// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
#include "control/protocol.hpp"

#include <catch2/catch.hpp>

#include "control/frame.hpp"

using namespace smc;

namespace {

// Base64 of a sealed message, and what MUNGE adds.
constexpr std::size_t kSealedMax = (kFrameMax - 1024) / 4 * 3;

Grant make_grant(std::size_t extents)
{
    Grant grant;
    grant.generation = 0xfedcba9876543210;
    grant.mode = 0640;
    grant.uid = 4000000000;
    grant.keys = Keys::window;
    for (std::size_t i = 0; i < extents; ++i) {
        smcfs_extent extent{};
        extent.offset = i * SMCFS_EXTENT_MIN;
        extent.length = SMCFS_EXTENT_MIN;
        extent.addr = 0xffffff0000000000 + extent.offset;
        extent.rkey_read = UINT32_MAX - static_cast<std::uint32_t>(i);
        extent.rkey_bulk = UINT32_MAX / 2;
        grant.extents.push_back(extent);
    }
    grant.size = extents * SMCFS_EXTENT_MIN;
    return grant;
}

} // namespace

TEST_CASE("a grant of any number of extents travels in pages that fit into sealed frames",
          "[protocol]")
{
    for (const std::size_t count : {1, 400, 401, 1000, SMCFS_EXTENTS_MAX}) {
        CAPTURE(count);
        const auto grant = make_grant(count);
        GrantReader reader;
        std::size_t pages = 0;
        for (bool more = true; more; ++pages) {
            const auto text = dump(make_reply(UINT64_MAX, to_json(grant, reader.next())));
            CHECK(text.size() <= kSealedMax);
            const auto result = reader.add(*parse_object(text));
            REQUIRE(result);
            more = *result;
        }
        CHECK((count == 1 ? pages == 1 : pages >= count / 400));
        const auto got = reader.take();
        CHECK(got.size == grant.size);
        CHECK(got.generation == grant.generation);
        CHECK(got.uid == grant.uid);
        REQUIRE(got.extents.size() == count);
        CHECK(std::memcmp(got.extents.data(), grant.extents.data(), count * sizeof(smcfs_extent)) ==
              0);
    }
}

TEST_CASE("pages of a grant that do not belong together are refused", "[protocol]")
{
    const auto grant = make_grant(1000);
    const auto read_first = [&] {
        GrantReader reader;
        REQUIRE(*reader.add(to_json(grant, 0)));
        return reader;
    };
    SECTION("of other memory")
    {
        auto other = make_grant(1000);
        other.generation++;
        auto reader = read_first();
        CHECK(reader.add(to_json(other, reader.next())).error().code == EAGAIN);
    }
    SECTION("the same page again")
    {
        CHECK(read_first().add(to_json(grant, 0)).error().code == EPROTO);
    }
    SECTION("an end before the region's")
    {
        auto page = to_json(grant, 0);
        page["more"] = false;
        CHECK(GrantReader().add(page).error().code == EPROTO);
    }
    SECTION("nothing in it")
    {
        auto page = to_json(grant, 0);
        page["extents"] = Json::array();
        CHECK(GrantReader().add(page).error().code == EPROTO);
    }
    SECTION("more extents than a grant may have, a few at a time")
    {
        auto many = make_grant(SMCFS_EXTENTS_MAX + 1);
        GrantReader reader;
        Result<bool> more = true;
        while (more && *more)
            more = reader.add(to_json(many, reader.next()));
        REQUIRE_FALSE(more);
        CHECK(more.error().code == EPROTO);
    }
}

TEST_CASE("what an exporter recommends travels with the grant", "[protocol]")
{
    auto grant = make_grant(1);
    grant.atomics = true;
    grant.hints.cto = false;
    grant.hints.flush_after_ms = 7;
    grant.hints.mode = SMCFS_SYNC_EAGER;
    grant.hints.push_delay_us = 0;
    grant.hints.max_stale_us = SMCFS_MAX_STALE_US_MAX;
    grant.hints.hot = false;
    grant.hints.granule = SMCFS_GRANULE_MAX;
    GrantReader reader;
    REQUIRE(reader.add(to_json(grant, 0)));
    const auto got = reader.take();
    CHECK(got.atomics);
    CHECK(got.hints == grant.hints);

    // Of a target that knows nothing of it.
    auto old = to_json(grant, 0);
    old.erase("atomics");
    old.erase("hints");
    GrantReader other;
    REQUIRE(other.add(old));
    const auto plain = other.take();
    CHECK_FALSE(plain.atomics);
    CHECK(plain.hints == RegionParams{});
}

TEST_CASE("hints that are not understood are passed over, and no others", "[protocol]")
{
    const Json hints = {
        {"mode", "through"}, {"flush_after_ms", 0U}, {"cto", "yes"}, {"max_stale_us", 3600000001},
        {"other", 1},        {"push_delay_us", 30U}, {"hot", 1},     {"granule", 12288U}};
    RegionParams expected;
    expected.push_delay_us = 30;
    CHECK(hints_from_json(hints) == expected);
    for (const auto& none : {Json(nullptr), Json(5), Json("lazy"), Json::array({1})})
        CHECK(hints_from_json(none) == RegionParams{});
    // Who exports here is told.
    for (const auto& [key, value] : hints.items()) {
        CAPTURE(key);
        CHECK(params_from_json(Json::object({{key, value}})).has_value() ==
              (key == "other" || key == "push_delay_us"));
    }
    CHECK_FALSE(params_from_json(Json(5)));
    for (const auto bytes : {0U, 2048U, 4097U, 2097152U})
        CHECK_FALSE(params_from_json({{"granule", bytes}}));
}

TEST_CASE("listings of any length travel in pages, every element once", "[protocol]")
{
    Json lists{{"in", Json::array()}, {"out", Json::array()}};
    for (int i = 0; i < 3000; ++i)
        lists[i < 1200 ? "in" : "out"].push_back({{"n", i}, {"text", std::string(60, 'x')}});
    Json got{{"in", Json::array()}, {"out", Json::array()}};
    std::uint64_t first = 0;
    for (bool more = true; more;) {
        const auto page = list_page(lists, first);
        CHECK(dump(page).size() < kFrameMax);
        more = page["more"].get<bool>();
        for (const auto* key : {"in", "out"})
            for (const auto& element : page[key]) {
                got[key].push_back(element);
                ++first;
            }
        REQUIRE((first == 3000 || more));
    }
    CHECK(got == lists);
    CHECK(list_page({{"in", Json::array()}}, 0) == Json{{"in", Json::array()}, {"more", false}});
    CHECK(list_page(lists, 5000)["more"] == false);
}

TEST_CASE("an element of a listing stays shorter than a page, and says what it leaves out",
          "[protocol]")
{
    SessionInfo info;
    info.node = std::string(SMCFS_NODE_NAME_MAX, 'n');
    for (int i = 0; i < 4096; ++i)
        info.regions.push_back(std::string(SMCFS_REGION_NAME_MAX - 4, 'r') + std::to_string(i));
    info.writes = info.regions;
    const auto json = to_json(info);
    CHECK(dump(list_page({{"in", Json::array({json, json})}}, 0)).size() < kFrameMax);
    CHECK_THAT(json["regions"].back().get<std::string>(), Catch::Contains("more)"));
}
