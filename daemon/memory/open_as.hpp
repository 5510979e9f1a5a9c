// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// Opens a file with the rights of another user, as the kernel itself judges them: groups, ACLs,
// security modules, NFS included.
#pragma once

#include <string>

#include "core/fd.hpp"
#include "core/result.hpp"
#include "target/types.hpp"

namespace smc::memory {

// Only regular files are opened for real, so that no device, FIFO or socket notices. flags: O_RDONLY
// or O_RDWR. Errors name the path, and the user where it was its rights.
Result<Fd> open_as(const Caller& caller, const std::string& path, int flags);

} // namespace smc::memory
