// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// Owns: what the files of libsmc share: the handle, and the guard at the edge of the C ABI.
#pragma once

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <new>

#include <sys/types.h>

#include "core/fd.hpp"
#include "smc/smc.h"

// Immutable from smc_attach() to smc_detach(), hence usable by any number of threads.
struct smc_region {
    smc::Fd fd;
    void* addr = nullptr;
    size_t size = 0;        // bytes, exact
    uint64_t offset = 0;    // of addr in the region, a multiple of the page size
    uint64_t region_id = 0; // st_ino
    bool readonly = false;  // fd and mapping
};

namespace smc::abi {

// Nothing thrown may cross the C ABI.
template <class F>
int guarded(F&& function) noexcept
{
    try {
        return function();
    } catch (const std::bad_alloc&) {
        return -ENOMEM;
    } catch (...) {
        return -EPROTO;
    }
}

size_t page_bytes();

// Whether [offset, offset + length) lies within size bytes; exact, without overflow.
constexpr bool range_fits(uint64_t offset, uint64_t length, uint64_t size)
{
    return offset <= size && length <= size - offset;
}

// Moves length bytes from the file's offset `at` by calls of move(done, left, at), as pread and pwrite
// are: they move 2 GiB minus a page at most per call, and may stop early.
template <class Move>
int move_all(uint64_t at, size_t length, Move&& move)
{
    for (size_t done = 0; done < length;) {
        ssize_t n = move(done, length - done, static_cast<off_t>(at + done));
        if (n > 0)
            done += static_cast<size_t>(n);
        else if (n == 0)
            return -EIO; // the range was checked against the size: the file is no longer what it was
        else if (errno != EINTR)
            return -errno;
    }
    return 0;
}

// Copies a caller's struct, which begins with its size, of this or a later libsmc: 0, -EINVAL (shorter
// than there ever was one) or -E2BIG (members that are not known here, and not 0).
template <class Opts>
int copy_opts(const Opts& from, Opts& out)
{
    if (from.size < sizeof(out))
        return -EINVAL;
    const auto* bytes = reinterpret_cast<const unsigned char*>(&from);
    if (std::any_of(bytes + sizeof(out), bytes + from.size, [](unsigned char b) { return b; }))
        return -E2BIG;
    out = from;
    return 0;
}

// As copy_opts(), with the defaults where the caller gave none, and checked.
int read_opts(const smc_attach_opts* opts, smc_attach_opts& out);

// Maps an open region as opts (checked by read_opts) say; 0 or -errno.
int map_region(Fd fd, const smc_attach_opts& opts, smc_region** out);

} // namespace smc::abi
