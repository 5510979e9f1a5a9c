/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* Copyright (c) 2026 The SMC authors */
// Checks with a known answer. Each returns how many expectations were not met; every one of those
// is printed.
#pragma once

#include <string>

#include "world.hpp"

namespace smc::test {

// Requests that must be refused, and those just inside the limits, by their exact errno.
int check_errors(World& world);
// Many names: what is listed costs time by its number, not by its square.
int check_scale(World& world);
// Who may not: other users, other network namespaces.
int check_strangers(World& world);
// Upcalls, their answers, events, and what waits for a daemon that goes. `mount`: of smcfs.
int check_daemon(World& world, const std::string& mount);

// Prints and counts one expectation.
int expect(const std::string& what, const Answer& answer, int wanted_errno);
int expect(const std::string& what, bool met);

} // namespace smc::test
