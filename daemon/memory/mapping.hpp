// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// A shared mapping of part of a file with inaccessible pages on both sides.
//
// Owns: the address range, guards included.
// Lifetime: registrations of the memory end before it is unmapped.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/result.hpp"

namespace smc::memory {

struct MappingParams {
    int fd = -1;
    std::uint64_t offset_bytes = 0; // any: the mapping itself starts at a page
    std::uint64_t length_bytes = 0; // any but 0
    bool writable = false;
    std::uint64_t page_bytes = 0; // of the file: larger than the system's for hugetlbfs
};

class Mapping {
public:
    static Result<Mapping> create(const MappingParams& params);
    Mapping(Mapping&& other) noexcept;
    Mapping& operator=(Mapping&&) = delete;
    Mapping(const Mapping&) = delete;
    Mapping& operator=(const Mapping&) = delete;
    ~Mapping();

    // Of the byte at offset_bytes.
    [[nodiscard]] std::byte* data() const { return data_; }
    [[nodiscard]] std::uint64_t size() const { return size_; }

private:
    Mapping(void* base, std::size_t reserved, std::byte* data, std::uint64_t size)
        : base_(base), reserved_(reserved), data_(data), size_(size)
    {}

    void* base_;
    std::size_t reserved_;
    std::byte* data_;
    std::uint64_t size_;
};

} // namespace smc::memory
