// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// libsmc-check VERB OBJECT [SEED]: uses a real region through the public interface alone; run by the
// tests in guests. Exit 0, or 1 with what was wrong.
//
//   write REGION SEED    fill it, half by stores, half by smc_store, barrier, watch its dirty bytes
//   right REGION STATE   attached for writing, its writing right is in that state of smc_writer_state
//   verify REGION SEED   acquire, then compare by loads and by smc_load
//   file PATH SEED       the same for the memory itself, on the target
//   limits REGION        ranges, windows and read-only handles
//   error REGION ERRNO   attaching it for writing fails with this number
//   revoked REGION       attach, say "ready", wait for a line, then everything fails with words
#include <smc/smc.hpp>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

// Of guests on a machine with other work, the first contact of two nodes takes a while.
constexpr std::uint32_t kWaitMs = 60000;

void require(bool condition, const std::string& what)
{
    if (!condition)
        throw std::runtime_error(what);
}

std::byte expected(std::size_t index, unsigned seed)
{
    return static_cast<std::byte>(index * 131 + (index >> 12) * 17 + seed);
}

template <class Bytes>
void compare(const Bytes& bytes, unsigned seed, const std::string& where)
{
    for (std::size_t i = 0; i < bytes.size(); i++) {
        if (bytes[i] != expected(i, seed))
            throw std::runtime_error(where + ": byte " + std::to_string(i) + " is wrong");
    }
}

int write(const std::string& name, unsigned seed)
{
    smc::Region region = smc::Region::attach(name, {.timeout_ms = kWaitMs});
    auto bytes = region.bytes();
    const std::size_t half = bytes.size() / 2;
    for (std::size_t i = 0; i < half; i++)
        bytes[i] = expected(i, seed);
    std::vector<std::byte> rest(bytes.size() - half);
    for (std::size_t i = 0; i < rest.size(); i++)
        rest[i] = expected(half + i, seed);
    region.store(half, rest);
    compare(bytes, seed, "the mapping");

    smc_status_info info = region.status();
    require(info.state == SMC_STATE_ACTIVE, "the region is not active");
    require(name == std::string(info.node) + ":" + info.name, "status names another region");
    require(info.region_bytes == bytes.size(), "status tells another size");
    require(info.generation != 0 && info.session_id != 0, "status lacks identities");

    region.barrier(0, half);
    region.barrier();
    info = region.status();
    require(info.dirty_bytes == 0 && info.writeback_bytes == 0, "dirty bytes after a barrier");
    region.detach();
    return 0;
}

int right(const std::string& name, unsigned wanted)
{
    smc::Region region = smc::Region::attach(name, {.timeout_ms = kWaitMs});
    const smc_status_info info = region.status();
    require(info.writer_state == wanted,
            "the state of the writing right is " + std::to_string(info.writer_state));
    return 0;
}

int verify(const std::string& name, unsigned seed)
{
    smc::Region region =
        smc::Region::attach(name, {.access = smc::Access::read_only, .timeout_ms = kWaitMs});
    region.acquire();
    compare(region.bytes(), seed, "the mapping");
    std::vector<std::byte> copy(region.size());
    region.load(0, copy);
    compare(copy, seed, "smc_load");
    return 0;
}

int verify_file(const std::string& path, unsigned seed)
{
    std::ifstream file(path, std::ios::binary);
    require(file.good(), "cannot open " + path);
    std::string content(std::istreambuf_iterator<char>(file), {});
    std::vector<std::byte> bytes(content.size());
    std::transform(content.begin(), content.end(), bytes.begin(),
                   [](char c) { return static_cast<std::byte>(c); });
    compare(bytes, seed, path);
    return 0;
}

int limits(const std::string& name)
{
    std::error_code ec;
    smc::Region whole =
        smc::Region::attach(name, {.access = smc::Access::read_only, .timeout_ms = kWaitMs});
    std::byte one{};
    whole.load(whole.size(), {&one, 1}, ec);
    require(ec == std::errc::result_out_of_range, "a load past the end succeeded");
    whole.store(0, {&one, 1}, ec);
    require(ec == std::errc::bad_file_descriptor, "a read-only handle stored");
    whole.barrier(whole.size(), 1, ec);
    require(ec == std::errc::result_out_of_range, "a barrier past the end succeeded");
    require(whole.size() > 4096, "the region is too small for this check");

    smc::Region window = smc::Region::attach(name, {.offset = 4096, .length = 100});
    require(window.size() == 100, "a window has another size");
    require(window.bytes()[0] == whole.bytes()[4096], "a window shows other memory");
    window.store(100, {&one, 1}, ec);
    require(ec == std::errc::no_space_on_device, "a store past the end succeeded");
    (void)smc::Region::attach(name, {.offset = 1}, ec);
    require(ec == std::errc::invalid_argument, "an unaligned window was mapped");
    (void)smc::Region::attach(name, {.offset = 1ULL << 50}, ec);
    require(ec == std::errc::result_out_of_range, "a window past the end was mapped");
    return 0;
}

int error(const std::string& name, int wanted)
{
    smc_attach_opts opts{};
    opts.size = sizeof(opts);
    opts.timeout_ms = kWaitMs;
    smc_region* region = nullptr;
    const int got = -smc_attach(name.c_str(), &opts, &region);
    smc_detach(region);
    require(got == wanted, "error " + std::to_string(got) + ", " + smc_strerror(got));
    std::printf("%s: %s\n", name.c_str(), smc_strerror(got));
    return 0;
}

int revoked(const std::string& name)
{
    smc::Region region =
        smc::Region::attach(name, {.access = smc::Access::read_only, .timeout_ms = kWaitMs});
    std::byte one{};
    region.load(0, {&one, 1});
    std::puts("ready");
    std::fflush(stdout);
    (void)std::getchar();
    std::error_code ec;
    region.load(0, {&one, 1}, ec);
    require(ec == std::errc::io_error, "a load of a revoked region: " + ec.message());
    std::printf("load: %s\n", ec.message().c_str());
    const smc_status_info info = region.status(ec);
    require(ec == std::error_code(ESTALE, smc::error_category()) ||
                (!ec && info.state == SMC_STATE_FAILED),
            "the status of a revoked region: " + ec.message() + ", state " +
                std::to_string(info.state));
    return 0;
}

int run(const std::string& verb, const std::string& object, const char* number)
{
    const unsigned value = number ? static_cast<unsigned>(std::strtoul(number, nullptr, 10)) : 0;
    if (verb == "write")
        return write(object, value);
    if (verb == "right")
        return right(object, value);
    if (verb == "verify")
        return verify(object, value);
    if (verb == "file")
        return verify_file(object, value);
    if (verb == "limits")
        return limits(object);
    if (verb == "error")
        return error(object, static_cast<int>(value));
    if (verb == "revoked")
        return revoked(object);
    throw std::runtime_error("unknown verb " + verb);
}

} // namespace

int main(int argc, char** argv)
{
    if (argc < 3) {
        std::fprintf(stderr, "usage: libsmc-check VERB OBJECT [NUMBER]\n");
        return 2;
    }
    try {
        return run(argv[1], argv[2], argc > 3 ? argv[3] : nullptr);
    } catch (const std::exception& failure) {
        std::fprintf(stderr, "libsmc-check %s %s: %s\n", argv[1], argv[2], failure.what());
        return 1;
    }
}
