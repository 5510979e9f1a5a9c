// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
#include "memory/memory.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <algorithm>

#include <fmt/format.h>

#include "memory/limits.hpp"
#include "memory/open_as.hpp"

namespace smc::memory {
namespace {

// How the memfd shows in /proc/PID/maps.
constexpr const char* kMemfdName = "smcfs";
// The address space is locked against other threads' mmap() for so long.
constexpr std::uint64_t kPopulateBytes = 8ULL << 20;

bool lives_in_memory(int fd)
{
    struct statfs fs {};
    return ::fstatfs(fd, &fs) == 0 && (fs.f_type == TMPFS_MAGIC || fs.f_type == HUGETLBFS_MAGIC);
}

// Allocating more than there is would not fail: it would wake the OOM killer.
Result<void> check_available(std::uint64_t length_bytes)
{
    const auto available = available_memory_bytes();
    if (available && length_bytes > *available)
        return fail(ENOMEM, fmt::format("{} bytes of host memory are asked for, but only {} are "
                                        "available on this node",
                                        length_bytes, *available));
    return {};
}

Result<Fd> make_memfd(const HostMemory& source, std::uint64_t& page_bytes)
{
    Fd fd(::memfd_create(kMemfdName,
                         MFD_CLOEXEC | MFD_ALLOW_SEALING | (source.hugepages ? MFD_HUGETLB : 0U)));
    if (!fd)
        return fail_errno(errno,
                          source.hugepages ? "memfd_create with huge pages" : "memfd_create");
    struct stat status {};
    if (::fstat(fd.get(), &status) != 0)
        return fail_errno(errno, "fstat of a memfd");
    page_bytes = static_cast<std::uint64_t>(status.st_blksize);
    // Huge pages come whole.
    const auto length = (source.length_bytes + page_bytes - 1) / page_bytes * page_bytes;
    if (::ftruncate(fd.get(), static_cast<off_t>(length)) != 0)
        return fail_errno(errno, fmt::format("cannot make a memfd of {} bytes", length));
    if (::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
        return fail_errno(errno, "cannot seal a memfd");
    return fd;
}

Result<void> check_size(std::uint64_t length_bytes)
{
    if (length_bytes == 0)
        return fail(EINVAL, "a region of zero bytes cannot be exported");
    if (length_bytes > SMCFS_REGION_SIZE_MAX)
        return fail(EFBIG, fmt::format("{} bytes are more than a region may have: {}", length_bytes,
                                       std::uint64_t{SMCFS_REGION_SIZE_MAX}));
    return {};
}

} // namespace

Result<Memory> Memory::host(const HostMemory& source)
{
    SMC_TRY(check_size(source.length_bytes));
    if (!source.hugepages)
        SMC_TRY(check_available(source.length_bytes));
    MappingParams params;
    Fd fd = SMC_TRY(make_memfd(source, params.page_bytes));
    params.fd = fd.get();
    params.length_bytes = source.length_bytes;
    params.writable = true;
    Mapping mapping = SMC_TRY(Mapping::create(params));
    Memory memory(std::move(fd), std::move(mapping), true, source.hugepages ? "hugepages" : "host");
    memory.lazy_ = true;
    return memory;
}

Result<void> Memory::populate(const std::atomic<bool>& cancelled)
{
    if (!lazy_)
        return {};
    if (provider_ == "host") // what others brought in since it was made is gone from what there was
        SMC_TRY(check_available(size()));
    for (std::uint64_t done = 0; done < size(); done += kPopulateBytes) {
        if (cancelled)
            return fail(ECANCELED, "it is not wanted any more");
        // What it cannot do, registering says why.
        if (::madvise(data() + done, std::min(kPopulateBytes, size() - done),
                      MADV_POPULATE_WRITE) != 0)
            break;
    }
    lazy_ = false;
    return {};
}

Result<Memory> Memory::file(const FilePath& source, const Caller& caller, bool readonly)
{
    FdMemory opened;
    opened.offset_bytes = source.offset_bytes;
    opened.length_bytes = source.length_bytes;
    opened.fd = SMC_TRY(open_as(caller, source.path, readonly ? O_RDONLY : O_RDWR));
    bool writable = !readonly;
    // Windows need memory that is registered for writing. For files in memory that costs nothing,
    // if the caller may; for files on a disk it would write to them, or be refused.
    if (readonly && lives_in_memory(opened.fd.get())) {
        if (auto again = open_as(caller, source.path, O_RDWR)) {
            opened.fd = std::move(*again);
            writable = true;
        }
    }
    auto memory = map_file(std::move(opened), writable, "file");
    if (!memory)
        return fail(memory.error().code, source.path + ": " + memory.error().what);
    memory->path_ = source.path;
    return memory;
}

Result<Memory> Memory::descriptor(FdMemory source, bool readonly)
{
    const int flags = ::fcntl(source.fd.get(), F_GETFL);
    if (flags < 0)
        return fail_errno(errno, "the passed descriptor");
    const int access = flags & O_ACCMODE;
    if ((flags & O_PATH) != 0 || access == O_WRONLY)
        return fail(EACCES, "the passed descriptor is not open for reading");
    if (!readonly && access != O_RDWR)
        return fail(EACCES, "the passed descriptor is not open for writing: open it O_RDWR or "
                            "export it read-only");
    const bool writable = access == O_RDWR && (!readonly || lives_in_memory(source.fd.get()));
    return map_file(std::move(source), writable, "fd");
}

Result<Memory> Memory::map_file(FdMemory source, bool writable, std::string provider)
{
    struct stat status {};
    if (::fstat(source.fd.get(), &status) != 0)
        return fail_errno(errno, "fstat");
    if (!S_ISREG(status.st_mode))
        return fail(EINVAL, "is neither a regular file nor a shared-memory object");
    const auto file_bytes = static_cast<std::uint64_t>(status.st_size);
    if (source.offset_bytes > file_bytes || source.length_bytes > file_bytes - source.offset_bytes)
        return fail(EINVAL, fmt::format("offset {} and length {} reach beyond the end of the file "
                                        "of {} bytes",
                                        source.offset_bytes, source.length_bytes, file_bytes));
    MappingParams params;
    params.fd = source.fd.get();
    params.offset_bytes = source.offset_bytes;
    params.length_bytes =
        source.length_bytes != 0 ? source.length_bytes : file_bytes - source.offset_bytes;
    params.writable = writable;
    struct statfs fs {};
    if (::fstatfs(params.fd, &fs) == 0 && fs.f_type == HUGETLBFS_MAGIC)
        params.page_bytes = static_cast<std::uint64_t>(status.st_blksize);
    SMC_TRY(check_size(params.length_bytes));
    Mapping mapping = SMC_TRY(Mapping::create(params));
    return Memory(std::move(source.fd), std::move(mapping), writable, std::move(provider));
}

} // namespace smc::memory
