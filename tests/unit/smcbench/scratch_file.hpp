// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// A file in memory, of a length, that goes with the test.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <new>
#include <string>
#include <vector>

#include "core/fd.hpp"

namespace smc::test {

class ScratchFile {
public:
    explicit ScratchFile(std::size_t bytes) : fd_(::memfd_create("smcbench", MFD_CLOEXEC))
    {
        if (!fd_ || ::ftruncate(fd_.get(), static_cast<off_t>(bytes)) != 0)
            throw std::bad_alloc();
    }
    [[nodiscard]] std::string path() const { return "/proc/self/fd/" + std::to_string(fd_.get()); }
    [[nodiscard]] std::vector<unsigned char> bytes(std::size_t count) const
    {
        std::vector<unsigned char> read(count);
        read.resize(static_cast<std::size_t>(
            std::max<ssize_t>(::pread(fd_.get(), read.data(), count, 0), 0)));
        return read;
    }

private:
    Fd fd_;
};

} // namespace smc::test
