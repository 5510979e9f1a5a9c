// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// What a key opens, and when it stops to.
#include <sys/mman.h>

#include <catch2/catch.hpp>

#include "node.hpp"
#include "verbs/endpoint.hpp"

namespace smc::test {
namespace {

constexpr std::uint64_t kLength = 64 * 1024 + 77; // ends within a page
constexpr auto kRefused = EREMOTEIO;

TargetOptions with_windows(bool windows)
{
    TargetOptions options;
    options.windows = windows;
    return options;
}

// The target's own view of the region.
std::vector<std::uint8_t> contents(Node& node, const std::string& name, std::size_t length)
{
    const auto fd = node.call([&](Target& target) { return target.export_fd(name); });
    REQUIRE(fd);
    void* view = ::mmap(nullptr, length, PROT_READ, MAP_SHARED, fd->get(), 0);
    REQUIRE(view != MAP_FAILED);
    const auto* bytes = static_cast<const std::uint8_t*>(view);
    std::vector<std::uint8_t> copy(bytes, bytes + length);
    ::munmap(view, length);
    return copy;
}

Grant require_grant(Node& node, SessionId session, const std::string& name)
{
    auto grant = node.grant(session, name);
    if (!grant)
        FAIL(grant.error().what);
    return *grant;
}

} // namespace

TEST_CASE("the right keys write and read every byte of a region", "[keys]")
{
    const bool windows = GENERATE(true, false);
    CAPTURE(windows);
    Node node(with_windows(windows));
    node.export_host("r", kLength);
    auto client = connect(node, 1);
    const auto grant = require_grant(node, 1, "r");
    CHECK(grant.keys == (windows ? Keys::window : Keys::mr));
    CHECK(grant.size == kLength);
    REQUIRE(grant.extents.size() == 1);
    const auto& extent = grant.extents.front();
    CHECK(extent.offset == 0);
    CHECK(extent.length == kLength);

    const auto data = pattern(kLength, 1);
    REQUIRE(client.bulk->write(extent.addr, extent.rkey_bulk, data));
    CHECK(contents(node, "r", kLength) == data);
    CHECK(client.read->read(extent.addr, extent.rkey_read, kLength).value() == data);
    // The read that pushes writes along.
    CHECK(client.bulk->read(extent.addr + 5, extent.rkey_bulk, 1).value()[0] == data[5]);
    // The last byte alone.
    const std::vector<std::uint8_t> one{0x5a};
    REQUIRE(client.bulk->write(extent.addr + kLength - 1, extent.rkey_bulk, one));
    CHECK(contents(node, "r", kLength).back() == 0x5a);
}

TEST_CASE("a key opens nothing beyond its region", "[keys]")
{
    const bool windows = GENERATE(true, false);
    const bool write = GENERATE(true, false);
    const int side = GENERATE(-1, 1);
    CAPTURE(windows, write, side);
    Node node(with_windows(windows));
    node.export_host("r", kLength);
    auto client = connect(node, 1);
    const auto extent = require_grant(node, 1, "r").extents.front();
    const auto addr = side < 0 ? extent.addr - 1 : extent.addr + 1;

    if (write)
        CHECK(client.bulk->write(addr, extent.rkey_bulk, pattern(kLength, 2)).error().code ==
              kRefused);
    else
        CHECK(client.read->read(addr, extent.rkey_read, kLength).error().code == kRefused);
    CHECK(contents(node, "r", kLength) == std::vector<std::uint8_t>(kLength, 0));
    // Its QP is in error; the client leaves, and takes nothing with it.
    client = {};
    CHECK(node.saw_lost(1));
}

TEST_CASE("a key works on its own QP only", "[keys]")
{
    Node node;
    node.export_host("r", kLength);
    auto client = connect(node, 1);
    const auto extent = require_grant(node, 1, "r").extents.front();
    SECTION("a bulk key does not read on the read QP")
    {
        CHECK(client.read->read(extent.addr, extent.rkey_bulk, 8).error().code == kRefused);
    }
    SECTION("a bulk key does not write on the read QP")
    {
        CHECK(client.read->write(extent.addr, extent.rkey_bulk, pattern(8, 3)).error().code ==
              kRefused);
    }
    SECTION("a read key does not write on the bulk QP")
    {
        CHECK(client.bulk->write(extent.addr, extent.rkey_read, pattern(8, 3)).error().code ==
              kRefused);
    }
    SECTION("a read key does not read on the bulk QP")
    {
        CHECK(client.bulk->read(extent.addr, extent.rkey_read, 8).error().code == kRefused);
    }
    CHECK(contents(node, "r", kLength) == std::vector<std::uint8_t>(kLength, 0));
}

TEST_CASE("without windows the read QP still cannot write", "[keys]")
{
    Node node(with_windows(false));
    node.export_host("r", kLength);
    auto client = connect(node, 1);
    const auto extent = require_grant(node, 1, "r").extents.front();
    CHECK(client.read->write(extent.addr, extent.rkey_bulk, pattern(8, 3)).error().code ==
          kRefused);
    CHECK(contents(node, "r", kLength) == std::vector<std::uint8_t>(kLength, 0));
}

TEST_CASE("keys of one session do not work in another", "[keys]")
{
    const bool windows = GENERATE(true, false);
    CAPTURE(windows);
    Node node(with_windows(windows));
    node.export_host("r", kLength);
    auto owner = connect(node, 1);
    auto thief = connect(node, 2);
    const auto extent = require_grant(node, 1, "r").extents.front();
    require_grant(node, 2, "r");
    CHECK(thief.read->read(extent.addr, extent.rkey_read, 8).error().code == kRefused);
    CHECK(thief.bulk->write(extent.addr, extent.rkey_bulk, pattern(8, 4)).error().code == kRefused);
    CHECK(owner.read->read(extent.addr, extent.rkey_read, 8).value() ==
          std::vector<std::uint8_t>(8, 0));
}

TEST_CASE("released keys are dead when release answers, and others live on", "[keys]")
{
    const bool windows = GENERATE(true, false);
    const bool write = GENERATE(true, false);
    CAPTURE(windows, write);
    Node node(with_windows(windows));
    node.export_host("r", kLength);
    node.export_host("other", kLength);
    auto client = connect(node, 1);
    auto second = connect(node, 2);
    const auto extent = require_grant(node, 1, "r").extents.front();
    const auto other = require_grant(node, 1, "other").extents.front();
    const auto theirs = require_grant(node, 2, "r").extents.front();
    REQUIRE(node.release(1, "r"));

    CHECK(client.read->read(other.addr, other.rkey_read, 8));
    CHECK(second.bulk->write(theirs.addr, theirs.rkey_bulk, pattern(8, 5)));
    // Again: new keys, the old ones stay dead.
    const auto again = require_grant(node, 1, "r").extents.front();
    CHECK(again.rkey_read != extent.rkey_read);
    CHECK(client.read->read(again.addr, again.rkey_read, 8).value() == pattern(8, 5));
    if (write)
        CHECK(client.bulk->write(extent.addr, extent.rkey_bulk, pattern(8, 6)).error().code ==
              kRefused);
    else
        CHECK(client.read->read(extent.addr, extent.rkey_read, 8).error().code == kRefused);
    CHECK(contents(node, "r", 8) == pattern(8, 5));
}

TEST_CASE("unexport kills all keys before it answers", "[keys]")
{
    const bool windows = GENERATE(true, false);
    CAPTURE(windows);
    Node node(with_windows(windows));
    const auto before = node.export_host("r", kLength);
    auto a = connect(node, 1);
    auto b = connect(node, 2);
    const auto extent_a = require_grant(node, 1, "r").extents.front();
    const auto extent_b = require_grant(node, 2, "r").extents.front();
    REQUIRE(node.unexport("r"));
    CHECK(node.saw({"revoked", 1, "r"}));
    CHECK(node.saw({"revoked", 2, "r"}));
    CHECK(node.grant(1, "r").error().code == ENOENT);

    // A name that comes back is other memory: the old key does not open it.
    const auto after = node.export_host("r", kLength);
    CHECK(after.generation != before.generation);
    CHECK(a.bulk->write(extent_a.addr, extent_a.rkey_bulk, pattern(8, 7)).error().code == kRefused);
    CHECK(b.read->read(extent_b.addr, extent_b.rkey_read, 8).error().code == kRefused);
    CHECK(contents(node, "r", kLength) == std::vector<std::uint8_t>(kLength, 0));
}

// The writes that were under way either arrive whole or fail; the process must survive the memory's
// end below them.
TEST_CASE("unexport under a stream of writes ends the stream", "[keys]")
{
    const bool windows = GENERATE(true, false);
    CAPTURE(windows);
    Node node(with_windows(windows));
    constexpr std::size_t kChunk = 256UL * 1024;
    node.export_host("r", kChunk);
    auto client = connect(node, 1);
    const auto extent = require_grant(node, 1, "r").extents.front();
    constexpr int kInFlight = 16;
    for (int i = 0; i < kInFlight; i++)
        REQUIRE(client.bulk->start_write(extent.addr, extent.rkey_bulk, kChunk));
    REQUIRE(node.unexport("r"));
    int failed = 0;
    for (int i = 0; i < kInFlight; i++) {
        const auto outcome = client.bulk->finish_one();
        failed += outcome ? 0 : 1;
        if (!outcome)
            CHECK((outcome.error().code == kRefused || outcome.error().code == EPIPE));
    }
    CHECK(client.bulk->write(extent.addr, extent.rkey_bulk, pattern(8, 8)).error().code ==
          (failed != 0 ? EPIPE : kRefused));
}

TEST_CASE("a read-only region is read and never written", "[keys]")
{
    const bool windows = GENERATE(true, false);
    CAPTURE(windows);
    Node node(with_windows(windows));
    const auto info = node.wait<ExportInfo>([&](Target& target, Done<ExportInfo> done) {
        ExportSpec spec;
        spec.name = "r";
        spec.readonly = true;
        spec.source = HostMemory{kLength, false};
        target.add_export(std::move(spec), std::move(done));
    });
    REQUIRE(info);
    auto client = connect(node, 1);
    const auto grant = require_grant(node, 1, "r");
    CHECK(grant.readonly);
    const auto& extent = grant.extents.front();
    CHECK(node.call([](Target& target) { return target.writer_acquire(1, "r"); }).error().code ==
          EROFS);
    CHECK_FALSE(grant.atomics);
    CHECK(client.read->read(extent.addr, extent.rkey_read, kLength));
    SECTION("by an atomic")
    {
        CHECK(client.read->fetch_add(extent.addr, extent.rkey_read, 1).error().code == kRefused);
    }
    SECTION("by a write")
    {
        CHECK(client.bulk->write(extent.addr, extent.rkey_bulk, pattern(8, 9)).error().code ==
              kRefused);
    }
    CHECK(contents(node, "r", 8) == std::vector<std::uint8_t>(8, 0));
}

TEST_CASE("atomics are for the read key on the read QP", "[keys]")
{
    const bool windows = GENERATE(true, false);
    CAPTURE(windows);
    Node node(with_windows(windows));
    node.export_host("r", kLength);
    auto client = connect(node, 1);
    const auto grant = require_grant(node, 1, "r");
    CHECK(grant.atomics);
    const auto& extent = grant.extents.front();
    CHECK(client.read->fetch_add(extent.addr + 8, extent.rkey_read, 3).value() == 0);
    CHECK(client.read->fetch_add(extent.addr + 8, extent.rkey_read, 4).value() == 3);
    CHECK(contents(node, "r", 16)[8] == 7);
    CHECK(client.bulk->fetch_add(extent.addr + 8, extent.rkey_bulk, 1).error().code == kRefused);
    CHECK(contents(node, "r", 16)[8] == 7);
}

TEST_CASE("a grant of several extents has keys for each piece", "[keys]")
{
    TargetOptions options = with_windows(GENERATE(true, false));
    options.extent_bytes_max = SMCFS_EXTENT_MIN;
    CAPTURE(options.windows);
    Node node(options);
    constexpr std::uint64_t kLong = 2 * SMCFS_EXTENT_MIN + 4097;
    node.export_host("r", kLong);
    auto client = connect(node, 1);
    const auto grant = require_grant(node, 1, "r");
    REQUIRE(grant.extents.size() == 3);
    std::uint64_t offset = 0;
    for (const auto& extent : grant.extents) {
        CHECK(extent.offset == offset);
        offset += extent.length;
        const auto data = pattern(512, static_cast<unsigned>(extent.offset / 512));
        REQUIRE(client.bulk->write(extent.addr + extent.length - 512, extent.rkey_bulk, data));
        CHECK(client.read->read(extent.addr + extent.length - 512, extent.rkey_read, 512).value() ==
              data);
    }
    CHECK(offset == kLong);
    // The pieces are neighbours in memory, but a key ends with its piece.
    const auto& first = grant.extents.front();
    CHECK(client.read->read(first.addr + first.length - 8, first.rkey_read, 9).error().code ==
          kRefused);
}

TEST_CASE("more windows than the send queue has places are bound and withdrawn", "[keys]")
{
    Node node;
    constexpr unsigned kRegions = 2 * verbs::Endpoint::kSendQueueDepth + 3;
    const auto name = [](unsigned i) { return "r/" + std::to_string(i); };
    for (unsigned i = 0; i < kRegions; i++)
        node.export_host(name(i), 4096);
    auto client = connect(node, 1);
    // All at once, none waits for another.
    std::vector<std::future<Result<Grant>>> futures;
    node.call([&](Target& target) {
        for (unsigned i = 0; i < kRegions; i++) {
            auto promise = std::make_shared<std::promise<Result<Grant>>>();
            futures.push_back(promise->get_future());
            target.grant(1, name(i),
                         [promise](const Result<Grant>& grant) { promise->set_value(grant); });
        }
    });
    for (unsigned i = 0; i < kRegions; i++) {
        REQUIRE(futures[i].wait_for(kPatience) == std::future_status::ready);
        const auto grant = futures[i].get();
        if (!grant)
            FAIL(grant.error().what);
        const auto& extent = grant->extents.front();
        REQUIRE(client.bulk->write(extent.addr, extent.rkey_bulk, pattern(64, i)));
        CHECK(contents(node, name(i), 64) == pattern(64, i));
    }
    for (unsigned i = 0; i < kRegions; i++)
        REQUIRE(node.release(1, name(i)));
    CHECK(node.call([](Target& target) { return target.sessions(); }).front().regions.empty());
}

TEST_CASE("keys are made and withdrawn a thousand times", "[keys]")
{
    Node node(with_windows(GENERATE(true, false)));
    node.export_host("r", kLength);
    auto client = connect(node, 1);
    for (int i = 0; i < 1000; i++) {
        const auto grant = node.grant(1, "r");
        if (!grant)
            FAIL(i << ": " << grant.error().what);
        REQUIRE(node.release(1, "r"));
    }
    const auto extent = require_grant(node, 1, "r").extents.front();
    CHECK(client.bulk->write(extent.addr, extent.rkey_bulk, pattern(8, 1)));
}

} // namespace smc::test
