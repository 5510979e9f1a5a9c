// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// The mapped file that is measured: a region of SMC, or any file or block device beside it.
//
// Owns: the descriptor and one shared mapping of the first bytes of the file, which is never made
// longer or shorter.
// Failure: errors name the file. A load or store that the other node does not answer raises SIGBUS, as in
// any program that maps a region.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "core/fd.hpp"
#include "core/result.hpp"

namespace smc::bench {

inline constexpr std::size_t kPageBytes = 4096;

class Mapping {
public:
    enum class Access { read, write };

    static Result<Mapping> open(const std::string& path, Access access);
    Mapping(Mapping&& other) noexcept;
    Mapping& operator=(Mapping&&) = delete;
    ~Mapping();

    // The window that a workload works in: bytes from the start of the file, 0 for all of it. ERANGE
    // when it is shorter.
    Result<void> set_window(std::size_t bytes);
    [[nodiscard]] std::byte* data() const { return data_; }
    [[nodiscard]] std::size_t bytes() const { return bytes_; }

    // Every page is here, and in the page table.
    void warm() const;
    // No page is here: unmapped, sent, dropped, mapped again. Returns how many stayed nevertheless.
    Result<std::size_t> drop();
    // What was stored to the first length bytes is in the file's memory.
    Result<void> barrier(std::size_t length) const;
    // Neighbours of a page that is touched are not wanted.
    Result<void> expect_random(bool random) const;

private:
    Mapping(std::string path, Fd fd, Access access)
        : path_(std::move(path)), fd_(std::move(fd)), access_(access)
    {}
    Result<void> map();
    void unmap();
    [[nodiscard]] Result<std::size_t> resident_pages() const;

    std::string path_;
    Fd fd_;
    Access access_;
    std::byte* data_ = nullptr;
    std::size_t bytes_ = 0;
};

} // namespace smc::bench
