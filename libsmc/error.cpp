// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// Owns: the sentences of smc_strerror(). Each says what the errno means for a region, then the remedy.
#include <cstring>

#include <cerrno>

#include "smc/smc.h"

namespace {

const char* sentence(int err)
{
    switch (err) {
    case 0:
        return "success";
    case ENOTCONN:
        return "the local daemon smcfsd is not running: start it with systemctl start smcfsd";
    case EHOSTUNREACH:
        return "the peer cannot be reached: see smcctl peers, then smcctl ping NODE";
    case ECONNREFUSED:
        return "the peer refused the connection: see that smcfsd runs there, then smcctl ping NODE";
    case ETIMEDOUT:
        return "what was waited for did not happen in time; where that is the peer's answer: see "
               "smcctl peers, then smcctl ping NODE";
    case ECONNRESET:
        return "the local daemon smcfsd stopped while it was asked: try again, see journalctl -u "
               "smcfsd";
    case EBUSY:
        return "another session holds the writing right, or the region is in use: smcctl sessions "
               "on "
               "the target names the holder, smcctl ps here the programs";
    case EROFS:
        return "the region is read-only: attach it with SMC_ATTACH_READONLY, or export it anew "
               "without --readonly";
    case ENOSPC:
        return "the range ends past the region's end: a region has a fixed size and does not grow";
    case ERANGE:
        return "the range ends past the attached range: see smc_size() and smcctl regions";
    case EPERM:
        return "not permitted: a region's size cannot be changed, and changing settings needs root";
    case EACCES:
        return "the region's owner and mode do not allow it: see ls -l /smc/NODE, or export with "
               "another --mode";
    case EIO:
        return "the link to the peer failed or the region is gone: what is dirty is kept while the "
               "region lives, see smcctl regions, then call the barrier again";
    case ESTALE:
        return "the region has been replaced, revoked or detached by force: detach, then attach "
               "again";
    case ENOENT:
        return "no such node or region: see smcctl peers for the nodes, ls /smc/NODE for the "
               "regions";
    case EISDIR:
        return "this is the beginning of several regions' names: give the whole name, see ls";
    case ENODEV:
        return "not on smcfs: run modprobe smcfs and mount -t smcfs smcfs /smc, and name a region "
               "below /smc";
    case EBADF:
        return "the region was attached with SMC_ATTACH_READONLY: attach it without";
    case EINVAL:
        return "an argument is invalid: names are NODE:NAME or /smc/NODE/NAME, offsets to map are "
               "multiples of the page size, words lie at a multiple of their size, here and in the "
               "target's memory";
    case ENAMETOOLONG:
        return "the name is too long: 63 bytes for a node, 191 for a region";
    case E2BIG:
        return "the options hold members that this libsmc does not know: install a newer libsmc";
    case ENOMEM:
        return "out of memory or address space: map less of the region, or raise ulimit -v";
    case EPROTO:
        return "daemon, module and library do not understand each other: see smcctl doctor for "
               "their "
               "versions";
    case EOPNOTSUPP:
        return "this region, an RDMA device on either side or the module that is loaded does not "
               "support it: see smcctl regions and smcctl doctor";
    case EREMOTEIO:
        return "the link was lost while a flag or an atomic was on its way: it may have been done, "
               "and is not repeated; when the region is active again, acquire and look";
    case ENOBUFS:
        return "no room: no free piece of that size is left in the pool (free some, or make a "
               "larger one), or the kernel had no buffer (try again)";
    case EINTR:
        return "a signal ended the call: call it again if it should go on";
    case EMFILE:
        return "the process has too many open files: raise ulimit -n";
    case EFAULT:
        return "the buffer is not in the process's memory";
    default:
        return nullptr;
    }
}

} // namespace

const char* smc_strerror(int err)
{
    const long positive = err < 0 ? -static_cast<long>(err) : err;
    if (positive > 4095) // the highest errno that the kernel returns
        return "unknown error";
    if (const char* text = sentence(static_cast<int>(positive)))
        return text;
    const char* text =
        strerrordesc_np(static_cast<int>(positive)); // NULL if unknown; no allocation
    return text ? text : "unknown error";
}
