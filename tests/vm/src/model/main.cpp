// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// model: drives one region with random commands from two processes, and compares every byte with a
// model in memory: what programs here read, and what the target holds after each barrier. The same
// seed gives the same commands.
#include "runner.hpp"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <getopt.h>

using namespace smc::test;

namespace {

constexpr const char* kUsage =
    "usage: model --region FILE --target file:PATH|tcp:HOST:PORT [options]\n"
    "  --local FILE        the same as --region FILE --target file:FILE\n"
    "  --seed N            default 1\n"
    "  --ops N             commands, default 100000\n"
    "  --seconds N         end earlier, after N seconds\n"
    "  --scratch FILE      another file or block device, for O_DIRECT from and to the mapping\n"
    "  --direct            use O_DIRECT on the region too\n"
    "  --system            also compact memory and drop caches of the whole machine\n"
    "  --eager             what pwrite has written is on the target when it returns\n"
    "  --hand-over         a page is acquired before the target writes to it\n"
    "  --break KIND        put in a fault: store, barrier or clobber; the run must fail\n"
    "  --verbose           print every command\n";

Sabotage parse_sabotage(const char* text)
{
    if (std::strcmp(text, "store") == 0)
        return Sabotage::kStore;
    if (std::strcmp(text, "barrier") == 0)
        return Sabotage::kBarrier;
    if (std::strcmp(text, "clobber") == 0)
        return Sabotage::kClobber;
    die(std::string("--break wants store, barrier or clobber, not '") + text + "'");
}

Options parse_options(int argc, char** argv)
{
    enum {
        kRegion = 1,
        kTarget,
        kLocal,
        kSeed,
        kOps,
        kSeconds,
        kScratch,
        kDirect,
        kSystem,
        kEager,
        kHandOver,
        kBreak,
        kVerbose
    };
    static const option known[] = {
        {"region", required_argument, nullptr, kRegion},
        {"target", required_argument, nullptr, kTarget},
        {"local", required_argument, nullptr, kLocal},
        {"seed", required_argument, nullptr, kSeed},
        {"ops", required_argument, nullptr, kOps},
        {"seconds", required_argument, nullptr, kSeconds},
        {"scratch", required_argument, nullptr, kScratch},
        {"direct", no_argument, nullptr, kDirect},
        {"system", no_argument, nullptr, kSystem},
        {"eager", no_argument, nullptr, kEager},
        {"hand-over", no_argument, nullptr, kHandOver},
        {"break", required_argument, nullptr, kBreak},
        {"verbose", no_argument, nullptr, kVerbose},
        {nullptr, 0, nullptr, 0},
    };
    Options options;
    for (int opt; (opt = getopt_long(argc, argv, "", known, nullptr)) != -1;) {
        switch (opt) {
        case kRegion:
            options.paths.region = optarg;
            break;
        case kTarget:
            options.target = optarg;
            break;
        case kLocal:
            options.paths.region = optarg;
            options.target = std::string("file:") + optarg;
            break;
        case kSeed:
            options.seed = parse_number("--seed", optarg);
            break;
        case kOps:
            options.ops = parse_number("--ops", optarg);
            break;
        case kSeconds:
            options.seconds_max = static_cast<double>(parse_number("--seconds", optarg));
            break;
        case kScratch:
            options.paths.scratch = optarg;
            options.abilities.scratch = true;
            break;
        case kDirect:
            options.paths.direct = options.abilities.direct = true;
            break;
        case kSystem:
            options.abilities.system = true;
            break;
        case kEager:
            options.eager = true;
            break;
        case kHandOver:
            options.hand_over = true;
            break;
        case kBreak:
            options.sabotage = parse_sabotage(optarg);
            break;
        case kVerbose:
            options.verbose = true;
            break;
        default:
            std::fputs(kUsage, stderr);
            std::exit(kUntested);
        }
    }
    if (options.paths.region.empty() || options.target.empty() || optind != argc) {
        std::fputs(kUsage, stderr);
        std::exit(kUntested);
    }
    return options;
}

extern "C" void on_sigbus(int, siginfo_t* info, void*)
{
    char text[96];
    int n = std::snprintf(text, sizeof text, "MISMATCH SIGBUS at %p in process %d\n", info->si_addr,
                          static_cast<int>(getpid()));
    if (write(STDOUT_FILENO, text, static_cast<std::size_t>(n)) < 0)
        _exit(kRefuted);
    _exit(kRefuted);
}

} // namespace

int main(int argc, char** argv)
{
    Options options = parse_options(argc, argv);
    struct sigaction action {};
    action.sa_sigaction = on_sigbus;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGBUS, &action, nullptr);
    Runner runner(options);
    return runner.run();
}
