// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
#include "memory/limits.hpp"

#include <linux/capability.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <sstream>

#include <fmt/format.h>

namespace smc::memory {
namespace {

constexpr std::uint64_t kKilobyte = 1024;

std::string read_text(const char* path)
{
    std::ifstream file(path);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
}

} // namespace

std::optional<std::uint64_t> kilobyte_field(std::string_view text, std::string_view field)
{
    std::size_t start = 0;
    while (start < text.size()) {
        auto end = text.find('\n', start);
        if (end == std::string_view::npos)
            end = text.size();
        auto line = text.substr(start, end - start);
        start = end + 1;
        if (!line.starts_with(field) || line.substr(field.size(), 1) != ":")
            continue;
        line.remove_prefix(field.size() + 1);
        line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
        std::uint64_t value = 0;
        const auto [rest, error] = std::from_chars(line.data(), line.data() + line.size(), value);
        if (error != std::errc{})
            return std::nullopt;
        return value * kKilobyte;
    }
    return std::nullopt;
}

std::optional<std::uint64_t> available_memory_bytes()
{
    return kilobyte_field(read_text("/proc/meminfo"), "MemAvailable");
}

std::optional<std::uint64_t> pinned_memory_bytes()
{
    return kilobyte_field(read_text("/proc/self/status"), "VmPin");
}

bool may_lock_without_limit()
{
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {};
    if (::syscall(SYS_capget, &header, data) != 0)
        return false;
    return (data[CAP_TO_INDEX(CAP_IPC_LOCK)].effective & CAP_TO_MASK(CAP_IPC_LOCK)) != 0;
}

Result<void> check_memlock(std::uint64_t needed_bytes)
{
    rlimit limit{};
    if (may_lock_without_limit() || ::getrlimit(RLIMIT_MEMLOCK, &limit) != 0 ||
        limit.rlim_cur == RLIM_INFINITY)
        return {};
    const auto pinned = pinned_memory_bytes().value_or(0);
    if (limit.rlim_cur >= pinned && limit.rlim_cur - pinned >= needed_bytes)
        return {};
    return fail(
        ENOMEM,
        fmt::format("the limit on locked memory is too low: {} bytes are needed ({} in use, "
                    "{} more), RLIMIT_MEMLOCK is {}; set LimitMEMLOCK=infinity in the unit "
                    "of smcfsd, or raise `ulimit -l` where it is started",
                    pinned + needed_bytes, pinned, needed_bytes, limit.rlim_cur));
}

} // namespace smc::memory
