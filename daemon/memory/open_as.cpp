// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
#include "memory/open_as.hpp"

#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <thread>
#include <vector>

#include <fmt/format.h>

namespace smc::memory {
namespace {

// The groups of the user by the node's databases; for a user without an entry its own alone.
std::vector<gid_t> groups_of(const Caller& caller)
{
    std::vector<char> buffer(16384);
    passwd entry{};
    passwd* found = nullptr;
    if (::getpwuid_r(caller.uid, &entry, buffer.data(), buffer.size(), &found) != 0 ||
        found == nullptr)
        return {caller.gid};
    int count = 64;
    std::vector<gid_t> groups(static_cast<std::size_t>(count));
    while (::getgrouplist(entry.pw_name, caller.gid, groups.data(), &count) < 0)
        groups.resize(static_cast<std::size_t>(count)); // count became what is needed
    groups.resize(static_cast<std::size_t>(count));
    return groups;
}

// For this thread alone: hence system calls, since the C library's functions change all threads.
// Only the filesystem ids change: a thread with another real uid could be killed by that user, and
// the process with it.
Result<void> assume(const Caller& caller, const std::vector<gid_t>& groups)
{
    if (::syscall(SYS_setgroups, groups.size(), groups.data()) != 0)
        return fail_errno(errno, fmt::format("cannot take on the groups of uid {}", caller.uid));
    ::setfsgid(caller.gid);
    ::setfsuid(caller.uid);
    // They do not report failure; an invalid id changes nothing and returns what is set.
    constexpr auto kQuery = static_cast<uid_t>(-1);
    if (static_cast<uid_t>(::setfsuid(kQuery)) != caller.uid ||
        static_cast<gid_t>(::setfsgid(kQuery)) != caller.gid)
        return fail(EPERM, fmt::format("cannot take on the rights of uid {}", caller.uid));
    return {};
}

Result<Fd> open_regular(const std::string& path, int flags)
{
    const Fd place(::open(path.c_str(), O_PATH | O_CLOEXEC));
    if (!place)
        return fail_errno(errno, path);
    struct stat status {};
    if (::fstat(place.get(), &status) != 0)
        return fail_errno(errno, path);
    if (!S_ISREG(status.st_mode))
        return fail(EINVAL, path + " is neither a regular file nor a shared-memory object");
    Fd file(::open(fmt::format("/proc/self/fd/{}", place.get()).c_str(), flags | O_CLOEXEC));
    if (!file)
        return fail_errno(errno, path);
    return file;
}

} // namespace

Result<Fd> open_as(const Caller& caller, const std::string& path, int flags)
{
    if (!path.starts_with('/'))
        return fail(EINVAL, "\"" + path + "\" is no absolute path");
    if (path.find('\0') != std::string::npos)
        return fail(EINVAL, "the path contains a NUL byte");
    if (caller.uid == ::geteuid())
        return open_regular(path, flags);

    const auto groups = groups_of(caller);
    Result<Fd> result = fail(EIO, path);
    // The rights end with the thread.
    std::thread([&] {
        if (auto assumed = assume(caller, groups); !assumed)
            result = tl::unexpected(std::move(assumed).error());
        else
            result = open_regular(path, flags);
    }).join();
    if (!result && (result.error().code == EACCES || result.error().code == EPERM))
        return fail(result.error().code,
                    fmt::format("{} (as uid {})", result.error().what, caller.uid));
    return result;
}

} // namespace smc::memory
