// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
#include "memory/mapping.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace smc::memory {
namespace {

// Guards are this long, and mappings so aligned, that the kernel may use huge pages inside.
constexpr std::uint64_t kGuardBytesMin = 2ULL << 20;

std::uint64_t round_up(std::uint64_t value, std::uint64_t unit)
{
    return (value + unit - 1) / unit * unit;
}

Result<void> map_over(std::byte* place, std::uint64_t length, std::uint64_t offset,
                      const MappingParams& params)
{
    const int protection = PROT_READ | (params.writable ? PROT_WRITE : 0);
    void* mapped = ::mmap(place, length, protection, MAP_SHARED | MAP_FIXED, params.fd,
                          static_cast<off_t>(offset));
    if (mapped != MAP_FAILED)
        return {};
    if (errno == ENOMEM && params.page_bytes > static_cast<std::uint64_t>(::getpagesize()))
        return fail(ENOMEM, fmt::format("not enough free huge pages for {} bytes in pages of {}: "
                                        "raise vm.nr_hugepages",
                                        length, params.page_bytes));
    return fail_errno(errno, fmt::format("cannot map {} bytes", length));
}

} // namespace

Result<Mapping> Mapping::create(const MappingParams& params)
{
    const auto page = std::max<std::uint64_t>(params.page_bytes, ::getpagesize());
    const auto guard = std::max(kGuardBytesMin, page);
    const auto start = params.offset_bytes / page * page;
    const auto skew = params.offset_bytes - start;
    const auto length = round_up(skew + params.length_bytes, page);

    // One guard more than needed leaves room to align.
    const auto reserved = length + 3 * guard;
    void* base =
        ::mmap(nullptr, reserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED)
        return fail_errno(errno, fmt::format("cannot reserve {} bytes of address space", reserved));
    const auto first = reinterpret_cast<std::uint64_t>(base);
    auto* place = static_cast<std::byte*>(base) + (round_up(first + guard, guard) - first);

    Mapping mapping(base, reserved, place + skew, params.length_bytes);
    SMC_TRY(map_over(place, length, start, params));
    return mapping;
}

Mapping::Mapping(Mapping&& other) noexcept
    : base_(std::exchange(other.base_, nullptr)), reserved_(other.reserved_), data_(other.data_),
      size_(other.size_)
{}

Mapping::~Mapping()
{
    if (base_ != nullptr)
        ::munmap(base_, reserved_);
}

} // namespace smc::memory
