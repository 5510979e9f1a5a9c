// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
#include "verbs/registration.hpp"

#include <limits>

#include <catch2/catch.hpp>
#include <linux/smcfs.h>

#include "verbs/address.hpp"
#include "verbs/device.hpp"

using namespace smc;
using verbs::split_extents;

namespace {

constexpr std::uint64_t kMin = SMCFS_EXTENT_MIN;
constexpr std::uint64_t kNoLimit = std::numeric_limits<std::uint64_t>::max();

std::vector<std::uint64_t> lengths(std::uint64_t total, std::uint64_t limit)
{
    std::vector<std::uint64_t> found;
    std::uint64_t offset = 0;
    const auto extents = split_extents(total, limit).value();
    for (const auto& extent : extents) {
        CHECK(extent.offset == offset);
        offset += extent.length;
        found.push_back(extent.length);
    }
    CHECK(offset == total);
    return found;
}

} // namespace

TEST_CASE("a region is as few extents as the limit allows", "[extents]")
{
    using Lengths = std::vector<std::uint64_t>;
    CHECK(lengths(1, kNoLimit) == Lengths{1});
    CHECK(lengths(SMCFS_REGION_SIZE_MAX, kNoLimit) == Lengths{SMCFS_REGION_SIZE_MAX});
    CHECK(lengths(kMin, kMin) == Lengths{kMin});
    CHECK(lengths(kMin + 1, kMin) == Lengths{kMin, 1});
    CHECK(lengths(3 * kMin, kMin) == Lengths{kMin, kMin, kMin});
    // All but the last are whole multiples, even when the limit is none.
    CHECK(lengths(2 * kMin, kMin + 4096) == Lengths{kMin, kMin});
    CHECK(lengths(5 * kMin, 2 * kMin + 1) == Lengths{2 * kMin, 2 * kMin, kMin});
    // A limit below the least extent does not matter to a region below it.
    CHECK(lengths(4096, 8192) == Lengths{4096});
}

TEST_CASE("what would be too many or too short extents is refused", "[extents]")
{
    CHECK(split_extents(kMin * SMCFS_EXTENTS_MAX, kMin).value().size() == SMCFS_EXTENTS_MAX);
    CHECK(split_extents(kMin * SMCFS_EXTENTS_MAX + 1, kMin).error().code == EFBIG);
    CHECK(split_extents(kMin, kMin - 1).error().code == EINVAL);
}

TEST_CASE("addresses are numeric or refused", "[address]")
{
    const auto text = [](const std::string& in) {
        const auto parsed = verbs::parse_address(in, 7451);
        return parsed ? verbs::to_text(reinterpret_cast<const sockaddr*>(&*parsed)) : "refused";
    };
    CHECK(text("192.0.2.7") == "192.0.2.7");
    CHECK(text("2001:db8::7") == "2001:db8::7");
    for (const char* bad : {"", "localhost", "192.0.2", "192.0.2.7 ", "fe80::1%eth0", "1.2.3.4:5"})
        CHECK(text(bad) == "refused");
    CHECK(verbs::parse_address("x", 0).error().what.find("\"x\"") != std::string::npos);
}

TEST_CASE("windows need the flag and a number", "[device]")
{
    ibv_device_attr attributes{};
    CHECK_FALSE(verbs::has_windows(attributes));
    attributes.device_cap_flags = IBV_DEVICE_MEM_WINDOW_TYPE_2B;
    CHECK_FALSE(verbs::has_windows(attributes));
    attributes.max_mw = 1;
    CHECK(verbs::has_windows(attributes));
    attributes.device_cap_flags = IBV_DEVICE_MEM_WINDOW; // of type 1, for any QP
    CHECK_FALSE(verbs::has_windows(attributes));
}
