// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
#include "shadow.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include <sys/mman.h>

namespace smc::test {

namespace {

std::uint8_t* shared_bytes(std::uint64_t size)
{
    void* at = mmap(nullptr, std::max<std::uint64_t>(size, 1), PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED)
        die("no memory for the model", errno);
    return static_cast<std::uint8_t*>(at);
}

std::string differs(std::uint64_t offset, unsigned expected, unsigned got)
{
    char text[160];
    std::snprintf(text, sizeof text,
                  "offset %llu (page %llu byte %llu): expected 0x%02x, got 0x%02x",
                  static_cast<unsigned long long>(offset),
                  static_cast<unsigned long long>(offset / kPageBytes),
                  static_cast<unsigned long long>(offset % kPageBytes), expected, got);
    return text;
}

std::string compare(const std::uint8_t* got, const std::uint8_t* want, Range range)
{
    if (std::memcmp(got, want + range.offset, range.length) == 0)
        return {};
    std::uint64_t i = 0;
    while (got[i] == want[range.offset + i])
        i++;
    std::uint64_t wrong = 0;
    for (std::uint64_t k = i; k < range.length; k++)
        wrong += got[k] != want[range.offset + k];
    return differs(range.offset + i, want[range.offset + i], got[i]) + ", " +
           std::to_string(wrong) + " wrong bytes of " + std::to_string(range.length);
}

} // namespace

void fill(std::uint8_t* to, std::uint64_t value, Range range)
{
    for (std::uint64_t done = 0; done < range.length;) {
        std::uint64_t at = range.offset + done;
        std::uint64_t word = mix(value ^ (at / 8 * 0x100000001b3)) >> (at % 8 * 8);
        std::uint64_t part = std::min(8 - at % 8, range.length - done);
        std::memcpy(to + done, &word, part);
        done += part;
    }
}

Shadow::Shadow(std::uint64_t size, std::uint64_t scratch_size)
    : size_(size), scratch_size_(scratch_size), expected_(shared_bytes(size)),
      remote_(shared_bytes(size)), scratch_(shared_bytes(scratch_size)),
      marks_(shared_bytes(page_up(size) / kPageBytes))
{}

bool Shadow::any(Range range, std::uint8_t mark) const
{
    for (std::uint64_t p = range.offset / kPageBytes; p < page_up(range.end()) / kPageBytes; p++)
        if (marks_[p] & mark)
            return true;
    return false;
}

Range Shadow::clip(Range range) const
{
    std::uint64_t start = std::min(range.offset, size_);
    return {start, std::min(range.length, size_ - start)};
}

void Shadow::written(Range range)
{
    for (std::uint64_t p = range.offset / kPageBytes; p < page_up(range.end()) / kPageBytes; p++)
        marks_[p] |= kDirty;
}

void Shadow::target_wrote(Range range, const std::uint8_t* bytes)
{
    std::memcpy(remote_ + range.offset, bytes, range.length);
    for (std::uint64_t p = range.offset / kPageBytes; p < page_up(range.end()) / kPageBytes; p++)
        marks_[p] |= kStale;
}

void Shadow::acquired(Range range)
{
    for (std::uint64_t p = range.offset / kPageBytes; p < page_up(range.end()) / kPageBytes; p++) {
        if (!(marks_[p] & kStale))
            continue;
        Range page = clip({p * kPageBytes, kPageBytes});
        std::memcpy(expected_ + page.offset, remote_ + page.offset, page.length);
        marks_[p] &= static_cast<std::uint8_t>(~kStale);
    }
}

std::vector<Range> Shadow::flushed(Range range)
{
    std::vector<Range> runs;
    for (std::uint64_t p = range.offset / kPageBytes; p < page_up(range.end()) / kPageBytes; p++) {
        if (!(marks_[p] & kDirty))
            continue;
        Range page = clip({p * kPageBytes, kPageBytes});
        std::memcpy(remote_ + page.offset, expected_ + page.offset, page.length);
        marks_[p] &= static_cast<std::uint8_t>(~kDirty);
        if (!runs.empty() && runs.back().end() == page.offset)
            runs.back().length += page.length;
        else
            runs.push_back(page);
    }
    return runs;
}

void Shadow::acknowledged(Range range)
{
    std::memcpy(remote_ + range.offset, expected_ + range.offset, range.length);
}

std::vector<Range> Shadow::known_remote() const
{
    std::vector<Range> runs;
    for (std::uint64_t p = 0; p < pages(); p++) {
        if (marks_[p] & kDirty)
            continue;
        Range page = clip({p * kPageBytes, kPageBytes});
        if (!runs.empty() && runs.back().end() == page.offset && runs.back().length < (1U << 20))
            runs.back().length += page.length;
        else
            runs.push_back(page);
    }
    return runs;
}

std::string Shadow::check(const std::uint8_t* got, Range range) const
{
    if (std::memcmp(got, expected_ + range.offset, range.length) == 0)
        return {};
    std::uint64_t wrong = 0;
    std::uint64_t first = 0;
    for (std::uint64_t i = 0; i < range.length; i++) {
        std::uint64_t at = range.offset + i;
        bool either = (marks_[at / kPageBytes] & kStale) && got[i] == remote_[at];
        if (got[i] == expected_[at] || either)
            continue;
        if (wrong++ == 0)
            first = i;
    }
    if (wrong == 0)
        return {};
    return differs(range.offset + first, expected_[range.offset + first], got[first]) + ", " +
           std::to_string(wrong) + " wrong bytes of " + std::to_string(range.length);
}

std::string Shadow::check_scratch(const std::uint8_t* got, Range range) const
{
    return compare(got, scratch_, range);
}

std::string Shadow::check_remote(const std::uint8_t* got, Range range) const
{
    return compare(got, remote_, range);
}

} // namespace smc::test
