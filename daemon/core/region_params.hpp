// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// What of a region can be set while it lives: in the configuration, by its exporter, by smcctl set.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include <linux/smcfs.h>

namespace smc {

inline constexpr std::uint32_t kFlushAfterMsMax = 3'600'000;

constexpr bool granule_valid(std::uint64_t bytes)
{
    return bytes >= SMCFS_GRANULE_MIN && bytes <= SMCFS_GRANULE_MAX && (bytes & (bytes - 1)) == 0;
}

// Only members that are set count.
struct RegionParams {
    std::optional<bool> cto;
    std::optional<std::uint32_t> flush_after_ms; // 1 to kFlushAfterMsMax
    std::optional<std::uint32_t> mode;           // enum smcfs_sync
    std::optional<std::uint32_t> push_delay_us;  // to SMCFS_PUSH_DELAY_US_MAX
    std::optional<std::uint32_t> max_stale_us;   // to SMCFS_MAX_STALE_US_MAX; 0: off
    std::optional<bool> hot;
    std::optional<std::uint32_t> granule; // bytes, see granule_valid()

    bool operator==(const RegionParams&) const = default;

    // What is not set here is as `weaker` says.
    void fill_from(const RegionParams& weaker)
    {
        fill(cto, weaker.cto);
        fill(flush_after_ms, weaker.flush_after_ms);
        fill(mode, weaker.mode);
        fill(push_delay_us, weaker.push_delay_us);
        fill(max_stale_us, weaker.max_stale_us);
        fill(hot, weaker.hot);
        fill(granule, weaker.granule);
    }

private:
    template <class T>
    static void fill(std::optional<T>& mine, const std::optional<T>& weaker)
    {
        if (!mine)
            mine = weaker;
    }
};

inline constexpr std::array<std::string_view, SMCFS_SYNC_MAX + 1> kSyncModes{"unknown", "lazy",
                                                                             "push", "eager"};

constexpr std::string_view sync_mode_name(std::uint32_t mode)
{
    return mode < kSyncModes.size() ? kSyncModes[mode] : kSyncModes[0];
}

constexpr std::optional<std::uint32_t> parse_sync_mode(std::string_view name)
{
    for (std::uint32_t mode = SMCFS_SYNC_UNSPEC + 1; mode <= SMCFS_SYNC_MAX; mode++)
        if (kSyncModes[mode] == name)
            return mode;
    return {};
}

} // namespace smc
