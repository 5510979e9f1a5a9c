// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// Memory that can be exported, whatever it comes from.
//
// Owns: the descriptor and the mapping.
// Failure: host memory is sealed against changes of its size. A file is not: who truncates a file
// that is exported loses its contents, while clients go on using the pages that were there, since
// registered pages stay until they are unregistered; nothing faults.
#pragma once

#include <atomic>
#include <string>

#include "core/fd.hpp"
#include "core/result.hpp"
#include "memory/mapping.hpp"
#include "target/types.hpp"

namespace smc::memory {

class Memory {
public:
    // Fresh memory, all zero. ENOMEM when the machine has not that much left.
    static Result<Memory> host(const HostMemory& source);
    // readonly: nobody will write through this export, so that less is asked of the file.
    static Result<Memory> file(const FilePath& source, const Caller& caller, bool readonly);
    static Result<Memory> descriptor(FdMemory source, bool readonly);

    // Brings the pages of host memory in, in small steps, which a registration would do in one go.
    // ENOMEM before the first one when there is not that much; ECANCELED. Not on the loop's thread,
    // and by one thread at a time.
    Result<void> populate(const std::atomic<bool>& cancelled);

    [[nodiscard]] std::byte* data() const { return mapping_.data(); }
    [[nodiscard]] std::uint64_t size() const { return mapping_.size(); }
    // Mapped for writing; else it can only be registered for reading.
    [[nodiscard]] bool writable() const { return writable_; }
    [[nodiscard]] int fd() const { return fd_.get(); }
    [[nodiscard]] const std::string& provider() const { return provider_; }
    [[nodiscard]] const std::string& path() const { return path_; }

private:
    Memory(Fd fd, Mapping mapping, bool writable, std::string provider)
        : fd_(std::move(fd)), mapping_(std::move(mapping)), writable_(writable),
          provider_(std::move(provider))
    {}
    static Result<Memory> map_file(FdMemory source, bool writable, std::string provider);

    Fd fd_;
    Mapping mapping_;
    bool writable_;
    std::string provider_;
    std::string path_;
    bool lazy_ = false; // host memory that was not populated yet
};

} // namespace smc::memory
