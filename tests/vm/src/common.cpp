// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
#include "common.hpp"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace smc::test {

void leave(ExitCode code, const std::string& what, int error)
{
    std::fflush(stdout);
    if (error)
        std::fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, what.c_str(),
                     std::strerror(error));
    else
        std::fprintf(stderr, "%s: %s\n", program_invocation_short_name, what.c_str());
    std::fflush(stderr);
    std::_Exit(code);
}

std::uint64_t parse_number(std::string_view option, const char* text)
{
    char* end = nullptr;
    errno = 0;
    std::uint64_t value = std::strtoull(text, &end, 0);
    bool bad = errno != 0 || end == text || *text == '-';
    int shift = 0;
    switch (*end) {
    case 'K':
        shift = 10, ++end;
        break;
    case 'M':
        shift = 20, ++end;
        break;
    case 'G':
        shift = 30, ++end;
        break;
    case 'T':
        shift = 40, ++end;
        break;
    default:
        break;
    }
    if (bad || *end != '\0' || (value << shift) >> shift != value)
        die(std::string(option) + " wants a number (suffix K, M, G or T), not '" + text + "'");
    return value << shift;
}

} // namespace smc::test
