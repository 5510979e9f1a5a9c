// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// smcbench: what the mapping of a region costs. run() is the program; this is the process around it.
#include <exception>
#include <iostream>

#include "cli.hpp"

int main(int argc, char** argv)
{
    try {
        return smc::bench::run({argv + 1, argv + argc}, std::cout, std::cerr);
    } catch (const std::exception& error) {
        std::cerr << "smcbench: internal error: " << error.what() << '\n';
        return 1;
    }
}
