// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
#include "process.hpp"

#include <fcntl.h>
#include <malloc.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <string>

#include <fmt/format.h>

#include "core/fd.hpp"
#include "core/log.hpp"
#include "memory/limits.hpp"

#ifndef PR_SET_IO_FLUSHER
#define PR_SET_IO_FLUSHER 57
#endif

namespace smc {
namespace {

constexpr const char* kOomScore = "-900"; // not -1000: better killed than a node that hangs

// VmSize: what mlockall(MCL_CURRENT) would lock.
std::optional<std::uint64_t> mapped_bytes()
{
    std::ifstream file("/proc/self/status");
    const std::string text((std::istreambuf_iterator<char>(file)), {});
    return memory::kilobyte_field(text, "VmSize");
}

void lock_memory()
{
    // MCL_ONFAULT: what was never touched needs no memory. Exports are mapped later and pinned by
    // their registration.
    if (::mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT) == 0) {
        if (memory::may_lock_without_limit())
            return;
        // MCL_FUTURE makes each later mmap() beyond the limit fail: do without that half.
        ::munlockall();
        if (::mlockall(MCL_CURRENT | MCL_ONFAULT) == 0)
            return;
    }
    const int code = errno;
    rlimit limit{};
    ::getrlimit(RLIMIT_MEMLOCK, &limit);
    log::warn("the daemon's memory is not locked ({}): RLIMIT_MEMLOCK is {} bytes, {} are needed, "
              "and what is exported on top; set LimitMEMLOCK=infinity in smcfsd.service",
              std::strerror(code), limit.rlim_cur, mapped_bytes().value_or(0));
}

void lower_oom_score()
{
    const Fd fd(::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC));
    const std::string score(kOomScore);
    if (!fd || ::write(fd.get(), score.data(), score.size()) < 0)
        log::warn("the OOM score is not lowered ({}): set OOMScoreAdjust={} in smcfsd.service",
                  std::strerror(errno), kOomScore);
}

} // namespace

void protect_process()
{
    lock_memory();
    lower_oom_score();
    if (::prctl(PR_SET_IO_FLUSHER, 1, 0, 0, 0) != 0)
        log::warn("PR_SET_IO_FLUSHER is not set ({}): give smcfsd CAP_SYS_RESOURCE",
                  std::strerror(errno));
}

Result<void> block_signals()
{
    sigset_t set;
    ::sigemptyset(&set);
    for (const int number : {SIGTERM, SIGINT, SIGHUP})
        ::sigaddset(&set, number);
    if (const int error = ::pthread_sigmask(SIG_BLOCK, &set, nullptr); error != 0)
        return fail_errno(error, "pthread_sigmask");
    std::signal(SIGPIPE, SIG_IGN);
    return {};
}

} // namespace smc
