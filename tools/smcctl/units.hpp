// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// Owns: numbers as people write and read them: sizes in powers of 1024, times, octal modes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/result.hpp"

namespace smc::ctl {

// "4096", "64K", "1G", "1GiB", "1.5M": bytes. A fraction must come out as whole bytes.
Result<uint64_t> parse_size(std::string_view text);

// "0600", "600", "0o600": permission bits, 0 to 0777.
Result<uint32_t> parse_mode(std::string_view text);

// "on", "off", "yes", "no", "true", "false", "1", "0".
Result<bool> parse_switch(std::string_view text);

// Decimal digits only, at most max.
Result<uint64_t> parse_count(std::string_view text, uint64_t max = UINT64_MAX);

// Three digits, in the units of parse_size: "0", "1000", "4K", "1G", "1.46M".
std::string format_size(uint64_t bytes);

// "0 ms", "12 ms", "3.4 s", "2 min 5 s", "3 h 12 min", "4 d 2 h".
std::string format_ms(uint64_t ms);

// "840ns", "23us", "1.2ms", "2.3s": two digits below ten of a unit.
std::string format_ns(uint64_t ns);

// 16 lower-case hexadecimal digits, as docs/protocol.md writes identities.
std::string hex16(uint64_t value);

} // namespace smc::ctl
