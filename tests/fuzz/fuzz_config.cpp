// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// A configuration file: either it is good, or there is a list of what is wrong, never both.
#include <cstdlib>

#include "config.hpp"
#include "config/hostlist.hpp"
#include "config/reader.hpp"

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer's name
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    const auto report = smc::parse_config(text, "fuzz.toml", "node");
    if (report.config.has_value() == !report.issues.empty())
        std::abort();
    const auto names = smc::expand_hostlist(text.substr(0, 256));
    if (names && names->size() > smc::kHostlistMax)
        std::abort();
    (void)smc::parse_size(text.substr(0, 64));
    return 0;
}
