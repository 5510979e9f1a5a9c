// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// Runs a fuzz target without libFuzzer: CORPUS-DIRECTORY RUNS SEED. A crash is the failure; run
// with the same seed under a debugger to see the input.
#include <cstdio>
#include <cstdlib>

#include "mutate.hpp"

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer's name
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

int main(int argc, char** argv)
{
    if (argc != 4) {
        std::fprintf(stderr, "usage: %s CORPUS-DIRECTORY RUNS SEED\n", argv[0]);
        return 2;
    }
    const auto corpus = smc::fuzz::read_corpus(argv[1]);
    if (corpus.empty())
        return 2;
    smc::fuzz::Mutator mutator(corpus, std::strtoull(argv[3], nullptr, 10));
    const auto runs = std::strtoul(argv[2], nullptr, 10);
    for (unsigned long run = 0; run < runs; ++run) {
        const auto input = mutator.next();
        LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(input.data()), input.size());
    }
    std::printf("%lu inputs, no crash\n", runs);
    return 0;
}
