// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// smcfs-standin: daemon and target of one region that is larger than any memory.
//
//     smcfs-standin --address ADDRESS --name NAME --size SIZE --file FILE [--skew BYTES] OFFSET...
//
//     region    |....####........................................####......................##|
//                    |                                           |                         |
//     FILE           [ skew, window 0                ][ skew, window 1     ][ skew, window 2 ]
//
// Only windows of the region are memory: 4 MiB from each OFFSET on, the last perhaps cut off by the
// region's end. Window I is in FILE from I * 5 MiB + SKEW on, where the test looks at what arrived. What lies
// between is granted with an address and a key that nobody has: whoever touches it loses the session, so
// that a fetch or a write beside what was asked for cannot pass.
//
// The region appears as MOUNT/fuzz-node/NAME. The program prints `ready`, grants the writing right, and ends
// on SIGTERM with a detach that flushes; exit 0 says that nothing was left behind. Wants root, the
// module loaded, no daemon.
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>

#include <fcntl.h>
#include <getopt.h>
#include <sys/mman.h>

#include "world.hpp"

namespace smc::test {
namespace {

constexpr std::uint64_t kWindowBytes = 4 << 20;
constexpr std::uint64_t kStrideBytes = 5 << 20;
constexpr int kWaitMs = 100; // between looks for a signal to end

volatile std::sig_atomic_t ended = 0;

extern "C" void on_term(int)
{
    ended = 1;
}

struct Options {
    std::string address, name, file;
    std::uint64_t size = 0, skew = 0;
    std::vector<std::uint64_t> windows; // ascending
};

std::uint8_t* map_file(const Options& options, std::uint64_t length)
{
    Fd fd(open(options.file.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    if (!fd || ftruncate(fd.get(), static_cast<off_t>(length)))
        die(options.file, errno);
    void* at = mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
    if (at == MAP_FAILED)
        die("mapping " + options.file, errno);
    return static_cast<std::uint8_t*>(at);
}

std::vector<smcfs_extent> make_extents(const Options& options, std::uint64_t base,
                                       std::uint32_t key)
{
    std::vector<smcfs_extent> extents;
    std::uint64_t done = 0;
    auto nowhere = [&](std::uint64_t end) {
        if (end > done)
            extents.push_back({done, end - done, 0x10000, ~0U, ~0U});
        done = end;
    };
    for (std::size_t i = 0; i < options.windows.size(); i++) {
        nowhere(options.windows[i]);
        std::uint64_t length = std::min(kWindowBytes, options.size - done);
        extents.push_back({done, length, base + i * kStrideBytes + options.skew, key, key});
        done += length;
    }
    nowhere(options.size);
    return extents;
}

void answer(World& world, const Received& ask, const Options& options)
{
    Message reply(SMCFS_CMD_BIND_FAIL);
    switch (ask.cmd) {
    case SMCFS_CMD_UPCALL_WRITER:
        reply = World::region(SMCFS_CMD_WRITER_RESULT, ask.number(SMCFS_A_REGION_ID).value_or(0))
                    .u32(SMCFS_A_ERRNO, 0);
        break;
    case SMCFS_CMD_UPCALL_LIST:
        reply = Message(SMCFS_CMD_LIST_RESULT)
                    .u64(SMCFS_A_COOKIE, ask.number(SMCFS_A_COOKIE).value_or(0))
                    .u32(SMCFS_A_ERRNO, 0)
                    .nest(SMCFS_A_NAMES, {attr_text(SMCFS_A_NAME, options.name)});
        break;
    case SMCFS_CMD_UPCALL_BIND:
        reply.text(SMCFS_A_NODE, ask.text(SMCFS_A_NODE).value_or(""))
            .text(SMCFS_A_NAME, ask.text(SMCFS_A_NAME).value_or(""))
            .u32(SMCFS_A_ERRNO, ENOENT);
        break;
    default:
        return;
    }
    world.ask(reply);
}

int serve(const Options& options)
{
    World world(options.address);
    const std::uint64_t length = options.windows.size() * kStrideBytes;
    std::uint8_t* memory = map_file(options, length);
    const std::uint32_t key = world.share({memory, length});
    const std::vector<smcfs_extent> extents =
        make_extents(options, reinterpret_cast<std::uint64_t>(memory), key);

    Answer hello = world.ask(Message(SMCFS_CMD_DAEMON_HELLO));
    if (hello.error != 0)
        die("DAEMON_HELLO: " + hello.why, hello.error.value_or(0));
    Answer attached = world.ask(world.attach(options.name, options.size)
                                    .replace(attr_raw(SMCFS_A_EXTENTS, bytes_of(extents))));
    if (attached.error != 0 || attached.messages.empty())
        leave(kRefuted, "REGION_ATTACH: " + attached.why, attached.error.value_or(0));
    const std::uint64_t id = attached.messages[0].number(SMCFS_A_REGION_ID).value_or(0);

    std::printf("ready\n");
    std::fflush(stdout);
    while (!ended)
        if (std::optional<Received> ask = world.control.wait(kWaitMs))
            answer(world, *ask, options);

    Answer detached = world.ask(World::region(SMCFS_CMD_REGION_DETACH, id));
    if (detached.error != 0)
        leave(kRefuted, "REGION_DETACH: " + detached.why, detached.error.value_or(0));
    world.finish();
    return kPassed;
}

Options parse_options(int argc, char** argv)
{
    static constexpr option kOptions[] = {
        {"address", required_argument, nullptr, 'a'}, {"name", required_argument, nullptr, 'n'},
        {"size", required_argument, nullptr, 's'},    {"file", required_argument, nullptr, 'f'},
        {"skew", required_argument, nullptr, 'k'},    {},
    };
    Options options;
    for (int c; (c = getopt_long(argc, argv, "", kOptions, nullptr)) != -1;) {
        switch (c) {
        case 'a':
            options.address = optarg;
            break;
        case 'n':
            options.name = optarg;
            break;
        case 's':
            options.size = parse_number("--size", optarg);
            break;
        case 'f':
            options.file = optarg;
            break;
        case 'k':
            options.skew = parse_number("--skew", optarg);
            break;
        default:
            std::exit(kUntested);
        }
    }
    for (int i = optind; i < argc; i++)
        options.windows.push_back(parse_number("OFFSET", argv[i]));
    if (options.address.empty() || options.name.empty() || options.file.empty() ||
        options.windows.empty() || options.skew > kStrideBytes - kWindowBytes)
        die("usage: smcfs-standin --address ADDRESS --name NAME --size SIZE --file FILE "
            "[--skew BYTES] OFFSET...");
    std::uint64_t free_from = 0;
    for (std::uint64_t offset : options.windows) {
        if (offset < free_from || offset >= options.size)
            die("windows ascend, do not overlap, and begin inside the region");
        free_from = offset + kWindowBytes;
    }
    return options;
}

} // namespace
} // namespace smc::test

int main(int argc, char** argv)
{
    struct sigaction action {};
    action.sa_handler = smc::test::on_term;
    sigaction(SIGTERM, &action, nullptr);
    return smc::test::serve(smc::test::parse_options(argc, argv));
}
