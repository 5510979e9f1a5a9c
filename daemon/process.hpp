// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// What the process asks of the system for itself. The daemon is in the write-back path: when it is
// paged out, killed, or waits for memory that only write-back frees, dirty pages of applications
// are stuck.
#pragma once

#include "core/result.hpp"

namespace smc {

// mlockall, PR_SET_IO_FLUSHER, OOM score. What is not permitted is logged, with the remedy, and done
// without.
void protect_process();

// Signals that the event loop is to get: blocked in this thread and those it makes.
Result<void> block_signals();

} // namespace smc
