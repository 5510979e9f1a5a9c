// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
#include "agent.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/uio.h>
#include <sys/wait.h>

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23
#endif

namespace smc::test {

namespace {

std::string failed(const char* call)
{
    return std::string(call) + ": " + std::strerror(errno);
}

std::string short_transfer(const char* call, ssize_t got, std::uint64_t wanted)
{
    if (got < 0)
        return failed(call);
    return std::string(call) + " moved " + std::to_string(got) + " bytes of " +
           std::to_string(wanted);
}

bool moved(ssize_t got, std::uint64_t wanted)
{
    return got >= 0 && static_cast<std::uint64_t>(got) == wanted;
}

// Ordinary stores of mixed width, as a program's would be; memcpy for the rest.
void store_bytes(std::uint8_t* to, const std::uint8_t* from, std::uint64_t length)
{
    if (length == 1)
        *const_cast<volatile std::uint8_t*>(to) = *from;
    else
        std::memcpy(to, from, length);
}

} // namespace

Agent::Agent(Shadow& shadow, const Paths& paths) : shadow_(shadow), paths_(paths)
{
    open_all();
}

Agent::~Agent()
{
    close_all();
    if (buffer_)
        munmap(buffer_, buffer_length_);
}

void Agent::open_all()
{
    for (View& view : views_) {
        view.fd = Fd{open(paths_.region.c_str(), O_RDWR | O_CLOEXEC)};
        if (!view.fd)
            die("cannot open " + paths_.region, errno);
        void* base =
            mmap(nullptr, map_length(), PROT_READ | PROT_WRITE, MAP_SHARED, view.fd.get(), 0);
        if (base == MAP_FAILED)
            die("cannot map " + paths_.region, errno);
        view.base = static_cast<std::uint8_t*>(base);
    }
    if (paths_.direct) {
        direct_ = Fd{open(paths_.region.c_str(), O_RDWR | O_DIRECT | O_CLOEXEC)};
        if (!direct_)
            die("cannot open with O_DIRECT (leave out --direct?) " + paths_.region, errno);
    }
    if (!paths_.scratch.empty()) {
        scratch_ = Fd{open(paths_.scratch.c_str(), O_RDWR | O_DIRECT | O_CLOEXEC)};
        if (!scratch_)
            die("cannot open with O_DIRECT " + paths_.scratch, errno);
    }
}

void Agent::close_all()
{
    for (View& view : views_) {
        if (view.base)
            munmap(view.base, map_length());
        view.base = nullptr;
        view.fd.reset();
    }
    direct_.reset();
    scratch_.reset();
}

std::array<std::uint8_t*, 2> Agent::bases() const
{
    return {views_[0].base, views_[1].base};
}

std::uint8_t* Agent::scratch_buffer(std::uint64_t length)
{
    if (length <= buffer_length_)
        return buffer_;
    if (buffer_)
        munmap(buffer_, buffer_length_);
    buffer_length_ = page_up(length);
    void* at =
        mmap(nullptr, buffer_length_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED)
        die("no memory for a buffer", errno);
    buffer_ = static_cast<std::uint8_t*>(at);
    return buffer_;
}

std::string Agent::load(const Command& c)
{
    // Copied first: what is compared must be what one pass of loads saw.
    std::uint8_t* copy = scratch_buffer(c.range.length);
    std::memcpy(copy, at(c), c.range.length);
    return shadow_.check(copy, c.range);
}

std::string Agent::store(const Command& c)
{
    if (std::exchange(lose_store_, false))
        return {};
    std::uint8_t* bytes = scratch_buffer(c.range.length);
    fill(bytes, c.value, c.range);
    store_bytes(at(c), bytes, c.range.length);
    return {};
}

std::string Agent::pread_region(const Command& c, int fd)
{
    std::uint8_t* bytes = scratch_buffer(c.range.length + 1);
    ssize_t got = pread(fd, bytes, c.range.length, static_cast<off_t>(c.range.offset));
    if (!moved(got, c.range.length))
        return short_transfer("pread", got, c.range.length);
    return shadow_.check(bytes, c.range);
}

std::string Agent::pwrite_region(const Command& c, int fd)
{
    std::uint8_t* bytes = scratch_buffer(c.range.length);
    fill(bytes, c.value, c.range);
    auto offset = static_cast<off_t>(c.range.offset);
    // In two pieces now and then: both entry points.
    if (c.variant % 4 == 0 && c.range.length > 1 && fd != direct_.get()) {
        std::uint64_t half = c.range.length / 2;
        iovec parts[2] = {{bytes, half}, {bytes + half, c.range.length - half}};
        ssize_t got = pwritev(fd, parts, 2, offset);
        return moved(got, c.range.length) ? "" : short_transfer("pwritev", got, c.range.length);
    }
    ssize_t got = pwrite(fd, bytes, c.range.length, offset);
    return moved(got, c.range.length) ? "" : short_transfer("pwrite", got, c.range.length);
}

std::string Agent::barrier(const Command& c)
{
    if (c.op == Op::kMsync)
        return msync(at(c), c.range.length, MS_SYNC) == 0 ? "" : failed("msync");
    if (c.variant % 2)
        return fdatasync(fd(c)) == 0 ? "" : failed("fdatasync");
    return fsync(fd(c)) == 0 ? "" : failed("fsync");
}

std::string Agent::fork_store(const Command& c)
{
    pid_t child = fork();
    if (child < 0)
        return failed("fork");
    if (child == 0) {
        store(c);
        if (c.variant % 3 == 1)
            close_all();
        else if (c.variant % 3 == 2)
            raise(SIGKILL);
        std::_Exit(0);
    }
    int status = 0;
    if (waitpid(child, &status, 0) != child)
        return failed("waitpid");
    bool as_told = c.variant % 3 == 2 ? WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL
                                      : WIFEXITED(status) && WEXITSTATUS(status) == 0;
    return as_told ? "" : "the forked child ended with wait status " + std::to_string(status);
}

std::string Agent::move_mapping(const Command& c)
{
    View& view = views_[c.view];
    void* place = mmap(nullptr, map_length(), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (place == MAP_FAILED)
        return failed("mmap");
    // One mapping in the kernel's eyes, which mremap asks for: the advice on parts has split it.
    // Without huge pages most often: with them each fault fetches 2 MiB around it.
    madvise(view.base, map_length(), c.variant % 8 ? MADV_NOHUGEPAGE : MADV_HUGEPAGE);
    void* moved_to =
        mremap(view.base, map_length(), map_length(), MREMAP_MAYMOVE | MREMAP_FIXED, place);
    if (moved_to == MAP_FAILED)
        return failed("mremap");
    view.base = static_cast<std::uint8_t*>(moved_to);
    return load(c);
}

std::string Agent::make_hole(const Command& c)
{
    // Now, or the kernel may place the buffer into the hole, where the mapping comes back.
    scratch_buffer(c.range.length + 1);
    if (munmap(at(c), page_up(c.range.length)) < 0)
        return failed("munmap");
    // What was dirty in the hole is still there, for read(2) and for the other mapping.
    std::string wrong = pread_region(c, fd(c));
    void* back = mmap(at(c), page_up(c.range.length), PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_FIXED, fd(c), static_cast<off_t>(c.range.offset));
    if (back == MAP_FAILED)
        return failed("mmap of a hole");
    return wrong.empty() ? load(c) : wrong;
}

std::string Agent::private_stores(const Command& c)
{
    std::uint64_t length = page_up(c.range.length);
    void* mapped = mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd(c),
                        static_cast<off_t>(c.range.offset));
    if (mapped == MAP_FAILED)
        return failed("mmap private");
    auto mine = static_cast<std::uint8_t*>(mapped);

    // The middle half is changed; the rest, of the same pages too, must be the region's.
    Range inner{c.range.offset + c.range.length / 4,
                std::max<std::uint64_t>(c.range.length / 2, 1)};
    std::uint8_t* bytes = scratch_buffer(c.range.length);
    fill(bytes, c.value, inner);
    std::memcpy(mine + (inner.offset - c.range.offset), bytes, inner.length);
    bool kept = std::memcmp(mine + (inner.offset - c.range.offset), bytes, inner.length) == 0;
    std::string wrong = shadow_.check(mine, {c.range.offset, inner.offset - c.range.offset});
    if (wrong.empty())
        wrong = shadow_.check(mine + (inner.end() - c.range.offset),
                              {inner.end(), c.range.end() - inner.end()});
    munmap(mapped, length);
    if (!kept)
        return "a private mapping lost its own store";
    if (!wrong.empty())
        return "in a private mapping: " + wrong;
    return load(c); // and nothing of it shows in the shared mapping
}

std::string Agent::protect(const Command& c)
{
    std::uint64_t length = page_up(c.range.length);
    if (mprotect(at(c), length, PROT_READ) < 0)
        return failed("mprotect to read-only");
    std::string wrong = load(c);
    if (mprotect(at(c), length, PROT_READ | PROT_WRITE) < 0)
        return failed("mprotect to writable");
    if (!wrong.empty())
        return wrong;
    return store(c);
}

std::string Agent::advise(const Command& c)
{
    static constexpr int kAdvice[] = {MADV_DONTNEED, MADV_PAGEOUT,       MADV_COLD,
                                      MADV_HUGEPAGE, MADV_POPULATE_READ, MADV_WILLNEED};
    int advice = kAdvice[c.variant % std::size(kAdvice)];
    // Huge pages are a wish that a kernel may be built without.
    if (madvise(at(c), page_up(c.range.length), advice) < 0 &&
        !(advice == MADV_HUGEPAGE && errno == EINVAL))
        return failed("madvise") + " for advice " + std::to_string(advice);
    return c.variant & 64 ? load(c) : "";
}

std::string Agent::self_copy(const Command& c)
{
    const std::uint8_t* source = views_[c.view].base + c.other;
    ssize_t got = pwrite(views_[1 - c.view].fd.get(), source, c.range.length,
                         static_cast<off_t>(c.range.offset));
    return moved(got, c.range.length) ? "" : short_transfer("pwrite", got, c.range.length);
}

std::string Agent::send_file(const Command& c)
{
    Fd sink{memfd_create("sendfile", MFD_CLOEXEC)};
    auto offset = static_cast<off_t>(c.range.offset);
    std::uint64_t done = 0;
    while (done < c.range.length) {
        ssize_t got = sendfile(sink.get(), fd(c), &offset, c.range.length - done);
        if (got <= 0)
            return short_transfer("sendfile", got, c.range.length - done);
        done += static_cast<std::uint64_t>(got);
    }
    std::uint8_t* bytes = scratch_buffer(c.range.length);
    ssize_t got = pread(sink.get(), bytes, c.range.length, 0);
    if (!moved(got, c.range.length))
        return short_transfer("pread of what sendfile wrote", got, c.range.length);
    return shadow_.check(bytes, c.range);
}

std::string Agent::stream(const Command& c)
{
    posix_fadvise(fd(c), 0, 0, POSIX_FADV_SEQUENTIAL);
    std::string wrong;
    for (std::uint64_t done = 0; done < c.range.length && wrong.empty(); done += 64 << 10) {
        Command part = c;
        part.range = {c.range.offset + done,
                      std::min<std::uint64_t>(c.range.length - done, 64 << 10)};
        wrong = c.variant % 2 ? load(part) : pread_region(part, fd(c));
    }
    posix_fadvise(fd(c), 0, 0, POSIX_FADV_NORMAL);
    return wrong;
}

std::string Agent::vm_transfer(const Command& c)
{
    std::uint8_t* bytes = scratch_buffer(c.range.length);
    iovec local{bytes, c.range.length};
    iovec remote{peer_.bases[c.view] + c.range.offset, c.range.length};
    if (c.op == Op::kVmWrite) {
        fill(bytes, c.value, c.range);
        ssize_t got = process_vm_writev(peer_.pid, &local, 1, &remote, 1, 0);
        return moved(got, c.range.length)
                   ? ""
                   : short_transfer("process_vm_writev", got, c.range.length);
    }
    ssize_t got = process_vm_readv(peer_.pid, &local, 1, &remote, 1, 0);
    if (!moved(got, c.range.length))
        return short_transfer("process_vm_readv", got, c.range.length);
    return shadow_.check(bytes, c.range);
}

std::string Agent::direct_in(const Command& c)
{
    ssize_t got = pread(scratch_.get(), at(c), c.range.length, static_cast<off_t>(c.other));
    return moved(got, c.range.length) ? "" : short_transfer("O_DIRECT pread", got, c.range.length);
}

std::string Agent::direct_out(const Command& c)
{
    ssize_t got = pwrite(scratch_.get(), at(c), c.range.length, static_cast<off_t>(c.other));
    if (!moved(got, c.range.length))
        return short_transfer("O_DIRECT pwrite", got, c.range.length);
    std::uint8_t* bytes = scratch_buffer(c.range.length);
    got = pread(scratch_.get(), bytes, c.range.length, static_cast<off_t>(c.other));
    if (!moved(got, c.range.length))
        return short_transfer("O_DIRECT pread back", got, c.range.length);
    return shadow_.check(bytes, c.range);
}

std::string Agent::execute(const Command& c)
{
    switch (c.op) {
    case Op::kLoad:
        return load(c);
    case Op::kStore:
        return store(c);
    case Op::kPread:
        return pread_region(c, fd(c));
    case Op::kPwrite:
        return pwrite_region(c, fd(c));
    case Op::kMsync:
    case Op::kFsync:
        return barrier(c);
    case Op::kAcquire: {
        int error = posix_fadvise(fd(c), static_cast<off_t>(c.range.offset),
                                  static_cast<off_t>(c.range.length), POSIX_FADV_DONTNEED);
        errno = error;
        return error ? failed("posix_fadvise") : "";
    }
    case Op::kReopen: {
        Fd again{open(paths_.region.c_str(), O_RDONLY | O_CLOEXEC)};
        return again ? "" : failed("open");
    }
    case Op::kRemapAll:
        close_all();
        open_all();
        return {};
    case Op::kForkStore:
        return fork_store(c);
    case Op::kMremap:
        return move_mapping(c);
    case Op::kHole:
        return make_hole(c);
    case Op::kPrivate:
        return private_stores(c);
    case Op::kMprotect:
        return protect(c);
    case Op::kMadvise:
        return advise(c);
    case Op::kPopulateWrite:
        return madvise(at(c), page_up(c.range.length), MADV_POPULATE_WRITE) == 0
                   ? ""
                   : failed("madvise MADV_POPULATE_WRITE");
    case Op::kMlock: {
        if (mlock(at(c), c.range.length) < 0)
            return failed("mlock");
        std::string wrong = load(c);
        munlock(at(c), c.range.length);
        return wrong;
    }
    case Op::kSelfCopy:
        return self_copy(c);
    case Op::kSendfile:
        return send_file(c);
    case Op::kStream:
        return stream(c);
    case Op::kPastEnd: {
        std::uint64_t beyond = map_length() - shadow_.size();
        std::memset(views_[c.view].base + shadow_.size(), 0xee, beyond);
        return {};
    }
    case Op::kVmRead:
    case Op::kVmWrite:
        return vm_transfer(c);
    case Op::kKill:
        return store(c);
    case Op::kDirectIn:
        return direct_in(c);
    case Op::kDirectOut:
        return direct_out(c);
    case Op::kDirectRead:
        return pread_region(c, direct_.get());
    case Op::kDirectWrite:
        return pwrite_region(c, direct_.get());
    case Op::kTargetWrite:
    case Op::kCompact:
    case Op::kDropCaches:
    case Op::kCount:
        break;
    }
    return "command is not for an agent";
}

} // namespace smc::test
