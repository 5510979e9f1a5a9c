/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* Copyright (c) 2026 The SMC authors */
// What every byte should be: the model that the region is compared with.
//
// Owns: memory shared by all processes of the run (made before any of them is forked).
// Locking: none. One command runs at a time, in whichever process; the others wait for it.
//
// Per page, two truths and two marks. `expected` is what this node's programs see, `remote` what the
// target's memory holds.
//
//     clean        expected == remote, both known
//     kDirty       written here, no barrier yet: what the target holds is not known (write-back may
//                  have happened)
//     kStale       written on the target, no acquire yet: a read here may show either
//
// A page is never both: an exclusive region's user promises not to write one page from both sides
// without an acquire or a barrier between, and the runner keeps that promise.
#pragma once

#include "common.hpp"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace smc::test {

constexpr std::uint8_t kDirty = 1;
constexpr std::uint8_t kStale = 2;

struct Range {
    std::uint64_t offset;
    std::uint64_t length;
    std::uint64_t end() const { return offset + length; }
};

class Shadow {
public:
    Shadow(std::uint64_t size, std::uint64_t scratch_size);
    Shadow(const Shadow&) = delete;
    Shadow& operator=(const Shadow&) = delete;

    std::uint64_t size() const { return size_; }
    std::uint64_t scratch_size() const { return scratch_size_; }
    std::uint64_t pages() const { return page_up(size_) / kPageBytes; }
    std::uint8_t* expected() { return expected_; }
    std::uint8_t* remote() { return remote_; }
    std::uint8_t* scratch() { return scratch_; }

    bool any(Range range, std::uint8_t mark) const;
    Range clip(Range range) const;

    // This node wrote `range` (expected bytes are already there), or only made it dirty.
    void written(Range range);
    // The target wrote bytes.
    void target_wrote(Range range, const std::uint8_t* bytes);
    // An acquire of `range`, which is rounded outward, has returned.
    void acquired(Range range);
    // A barrier of `range`, which is rounded outward, has returned: the pages that were dirty.
    std::vector<Range> flushed(Range range);
    // Bytes that are known to be acknowledged although their page may be dirty for other reasons.
    void acknowledged(Range range);
    // Where the target's content is known, in runs.
    std::vector<Range> known_remote() const;

    // Compares what a read on this node returned. Empty when right, else a sentence.
    std::string check(const std::uint8_t* got, Range range) const;
    std::string check_scratch(const std::uint8_t* got, Range range) const;
    // Compares what the target holds in a range of clean (or acknowledged) bytes.
    std::string check_remote(const std::uint8_t* got, Range range) const;

private:
    std::uint64_t size_;
    std::uint64_t scratch_size_;
    std::uint8_t* expected_;
    std::uint8_t* remote_;
    std::uint8_t* scratch_;
    std::uint8_t* marks_; // one byte per page
};

// The bytes that a store of `value` puts at `offset`: different for every value and every offset.
void fill(std::uint8_t* to, std::uint64_t value, Range range);

} // namespace smc::test
