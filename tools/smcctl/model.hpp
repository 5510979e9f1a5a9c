// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// Owns: the JSON models of what the kernel reports. Keys and units are those of docs/protocol.md.
#pragma once

#include "kernel_model.hpp"
#include "output.hpp"

namespace smc::ctl {

Json to_json(const client::KernelInfo& info);
Json to_json(const client::SessionInfo& session);
Json to_json(const client::RegionInfo& region);
Json to_json(const client::KernelEvent& event);

} // namespace smc::ctl
