// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
#include "figures.hpp"

#include <fstream>
#include <sstream>

namespace smc::bench {

Result<Figures> Figures::load(const std::string& path)
{
    std::ifstream file(path);
    if (!file)
        return fail_errno(errno, path);
    Figures figures;
    std::string line;
    for (unsigned number = 1; std::getline(file, line); number++) {
        std::istringstream words(line);
        std::string kind;
        std::uint64_t bytes = 0;
        double ns = 0;
        if (!(words >> kind >> bytes >> ns) || bytes == 0 || ns <= 0)
            return fail(EINVAL,
                        path + ":" + std::to_string(number) + ": want KIND BYTES NANOSECONDS");
        figures.set(kind, bytes, ns);
    }
    return figures;
}

} // namespace smc::bench
