// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// Owns: smc_attach() to smc_detach(): name, bind, open, map.
//
// Failure: whatever was acquired is released before an error is returned; *out is untouched then.
#include "internal.hpp"

#include <chrono>
#include <cstring>
#include <memory>

#include <fcntl.h>
#include <linux/smcfs.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "daemon_client.hpp"
#include "names.hpp"

static_assert(SMC_NODE_NAME_MAX == SMCFS_NODE_NAME_MAX);
static_assert(SMC_REGION_NAME_MAX == SMCFS_REGION_NAME_MAX);

namespace smc::abi {
namespace {

// The daemon answers a bind that timed out itself; this much later we take it for hung.
constexpr std::chrono::milliseconds kDaemonGrace{2000};

bool is_smcfs(const struct statfs& fs)
{
    return static_cast<uint32_t>(fs.f_type) == SMCFS_SUPER_MAGIC;
}

// Ask ahead of the open, which would wait as well, but not for as long as the caller chose. Without a
// daemon the kernel decides: regions that are bound are served on.
int bind(const client::RegionName& name, uint32_t timeout_ms)
{
    struct statfs fs {};
    if (statfs(std::string(client::kMountPoint).c_str(), &fs) < 0 || !is_smcfs(fs))
        return -ENODEV;
    std::chrono::milliseconds timeout(timeout_ms);
    auto daemon = client::DaemonClient::connect(client::kDaemonSocket, timeout);
    if (!daemon)
        return daemon.error().code == ENOTCONN || daemon.error().code == EACCES
                   ? 0
                   : -daemon.error().code;
    client::Json args = {{"node", name.node}, {"name", name.name}, {"timeout_ms", timeout_ms}};
    auto answer = daemon->request("attach", std::move(args), timeout + kDaemonGrace);
    return answer ? 0 : -answer.error().code;
}

int attach(const char* name, const smc_attach_opts* caller_opts, smc_region** out)
{
    if (!name || !out)
        return -EINVAL;
    smc_attach_opts opts{};
    if (int err = read_opts(caller_opts, opts))
        return err;

    std::string path = name;
    auto parsed = client::parse_region_name(path);
    // A path elsewhere may lie under another mount of smcfs; whether it does is checked when open.
    if (!parsed && path.rfind('/', 0) != 0)
        return -parsed.error().code;
    if (parsed) {
        path = parsed->path();
        if (int err = bind(*parsed, opts.timeout_ms))
            return err;
    }

    Fd fd(open(path.c_str(), ((opts.flags & SMC_ATTACH_READONLY) ? O_RDONLY : O_RDWR) | O_CLOEXEC));
    if (!fd)
        return -errno;
    struct statfs fs {};
    if (fstatfs(fd.get(), &fs) < 0)
        return -errno;
    if (!is_smcfs(fs))
        return -ENODEV;
    return map_region(std::move(fd), opts, out);
}

} // namespace

size_t page_bytes()
{
    static const auto bytes = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    return bytes;
}

int read_opts(const smc_attach_opts* opts, smc_attach_opts& out)
{
    out = {};
    out.size = sizeof(out);
    if (opts)
        if (const int err = copy_opts(*opts, out); err != 0)
            return err;
    if (out.timeout_ms == 0)
        out.timeout_ms = SMC_TIMEOUT_MS_DEFAULT;
    if ((out.flags & ~SMC_ATTACH_READONLY) || out.timeout_ms > SMC_TIMEOUT_MS_MAX ||
        out.offset % page_bytes() != 0)
        return -EINVAL;
    return 0;
}

int map_region(Fd fd, const smc_attach_opts& opts, smc_region** out)
{
    struct stat st {};
    if (fstat(fd.get(), &st) < 0)
        return -errno;
    if (S_ISDIR(st.st_mode))
        return -EISDIR;
    const auto region_bytes = static_cast<uint64_t>(st.st_size);
    if (opts.offset >= region_bytes || !range_fits(opts.offset, opts.length, region_bytes))
        return -ERANGE;

    auto region = std::make_unique<smc_region>();
    region->size = opts.length ? opts.length : region_bytes - opts.offset;
    region->offset = opts.offset;
    region->region_id = st.st_ino;
    region->readonly = (opts.flags & SMC_ATTACH_READONLY) != 0;
    const int prot = region->readonly ? PROT_READ : PROT_READ | PROT_WRITE;
    region->addr =
        mmap(nullptr, region->size, prot, MAP_SHARED, fd.get(), static_cast<off_t>(opts.offset));
    if (region->addr == MAP_FAILED)
        return -errno;
    region->fd = std::move(fd);
    *out = region.release();
    return 0;
}

} // namespace smc::abi

int smc_attach(const char* name, const smc_attach_opts* opts, smc_region** out)
{
    return smc::abi::guarded([&] { return smc::abi::attach(name, opts, out); });
}

void* smc_addr(const smc_region* region)
{
    return region ? region->addr : nullptr;
}

size_t smc_size(const smc_region* region)
{
    return region ? region->size : 0;
}

int smc_detach(smc_region* region)
{
    if (!region)
        return 0;
    std::unique_ptr<smc_region> owned(region);
    munmap(owned->addr, owned->size); // cannot fail: the range is ours, or was unmapped already
    return close(owned->fd.release()) < 0 ? -errno : 0;
}
