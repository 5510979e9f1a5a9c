// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
#include "mapping.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace smc::bench {

Result<Mapping> Mapping::open(const std::string& path, Access access)
{
    const int flags = (access == Access::write ? O_RDWR : O_RDONLY) | O_CLOEXEC;
    Fd fd{::open(path.c_str(), flags)};
    if (!fd)
        return fail_errno(errno, path);
    return Mapping{path, std::move(fd), access};
}

Mapping::Mapping(Mapping&& other) noexcept
    : path_(std::move(other.path_)), fd_(std::move(other.fd_)), access_(other.access_),
      data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0))
{}

Mapping::~Mapping()
{
    unmap();
}

Result<void> Mapping::map()
{
    const int protection = PROT_READ | (access_ == Access::write ? PROT_WRITE : 0);
    void* address = ::mmap(nullptr, bytes_, protection, MAP_SHARED, fd_.get(), 0);
    if (address == MAP_FAILED)
        return fail_errno(errno, "mmap of " + path_);
    data_ = static_cast<std::byte*>(address);
    return {};
}

void Mapping::unmap()
{
    if (data_ != nullptr)
        ::munmap(data_, bytes_);
    data_ = nullptr;
}

Result<void> Mapping::set_window(std::size_t bytes)
{
    // A block device has no st_size.
    const off_t end = ::lseek(fd_.get(), 0, SEEK_END);
    if (end < 0)
        return fail_errno(errno, path_);
    if (static_cast<std::size_t>(end) < bytes)
        return fail(ERANGE, path_ + " has " + std::to_string(end) + " bytes, this needs " +
                                std::to_string(bytes));
    if (bytes == 0)
        bytes = static_cast<std::size_t>(end);
    if (data_ != nullptr && bytes == bytes_)
        return {};
    unmap();
    bytes_ = bytes;
    return map();
}

void Mapping::warm() const
{
    for (std::size_t at = 0; at < bytes_; at += kPageBytes)
        static_cast<void>(*static_cast<volatile std::byte*>(data_ + at));
}

Result<std::size_t> Mapping::drop()
{
    unmap();
    // Only what is clean can be dropped.
    if (access_ == Access::write && ::fsync(fd_.get()) != 0)
        return fail_errno(errno, "fsync of " + path_);
    if (const int error = ::posix_fadvise(fd_.get(), 0, 0, POSIX_FADV_DONTNEED); error != 0)
        return fail_errno(error, "posix_fadvise of " + path_);
    SMC_TRY(map());
    return resident_pages();
}

Result<std::size_t> Mapping::resident_pages() const
{
    std::vector<unsigned char> pages((bytes_ + kPageBytes - 1) / kPageBytes);
    if (::mincore(data_, bytes_, pages.data()) != 0)
        return fail_errno(errno, "mincore of " + path_);
    return static_cast<std::size_t>(
        std::count_if(pages.begin(), pages.end(), [](unsigned char page) { return page & 1U; }));
}

Result<void> Mapping::barrier(std::size_t length) const
{
    if (::msync(data_, length, MS_SYNC) != 0)
        return fail_errno(errno, "msync of " + path_);
    return {};
}

Result<void> Mapping::expect_random(bool random) const
{
    if (::madvise(data_, bytes_, random ? MADV_RANDOM : MADV_NORMAL) != 0)
        return fail_errno(errno, "madvise of " + path_);
    return {};
}

} // namespace smc::bench
