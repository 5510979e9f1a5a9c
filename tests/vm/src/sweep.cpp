// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// sweep: stores to every page of a file, however large, and knows afterwards what each byte is.
//
//     sweep FILE [--passes N] [--rounds N] [--again BYTES] [--chunk BYTES] [--seed N] [--break]
//     sweep FILE --check [the same options]      FILE holds what a sweep with these leaves
//
// A pass goes through the file chunk by chunk; in each it stores to all pages in random order,
// `rounds` times, with a barrier after each; once in chunks behind the first `again` bytes. All pages are compared after every pass. Some are
// stored to as a whole, some in two parts with others between them, some by pwrite. --break leaves
// out a store.
//
// Failure: exit 1 with the offset and both values.
#include "common.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include <fcntl.h>
#include <getopt.h>
#include <sys/mman.h>
#include <sys/stat.h>

using namespace smc::test;

namespace {

constexpr std::uint64_t kWords = kPageBytes / sizeof(std::uint64_t);
constexpr std::uint64_t kParts = 4;      // one page in so many is stored to in two parts
constexpr std::uint64_t kWriteEvery = 8; // one in so many by pwrite

struct Options {
    std::string file;
    std::uint64_t passes = 1;
    std::uint64_t rounds = 1;
    std::uint64_t again = ~std::uint64_t{0};
    std::uint64_t chunk = 1 << 20;
    std::uint64_t seed = 1;
    bool check = false;
    bool broken = false;
};

using Page = std::array<std::uint64_t, kWords>;

unsigned long long num(std::uint64_t n)
{
    return n;
}

class Sweep {
public:
    explicit Sweep(const Options& options) : o_(options)
    {
        fd_ = Fd{open(o_.file.c_str(), (o_.check ? O_RDONLY : O_RDWR) | O_CLOEXEC)};
        struct stat st {};
        if (!fd_ || fstat(fd_.get(), &st) < 0)
            die(o_.file, errno);
        size_ = static_cast<std::uint64_t>(st.st_size);
        if (size_ == 0 || size_ % kPageBytes)
            die(o_.file + " is not made of whole pages");
        const int prot = o_.check ? PROT_READ : PROT_READ | PROT_WRITE;
        void* base = mmap(nullptr, size_, prot, MAP_SHARED, fd_.get(), 0);
        if (base == MAP_FAILED)
            die("mmap", errno);
        base_ = static_cast<std::uint8_t*>(base);
    }

    int run()
    {
        const auto start = std::chrono::steady_clock::now();
        for (std::uint64_t pass = o_.check ? o_.passes : 1; pass <= o_.passes; pass++) {
            for (std::uint64_t at = 0; at < size_ && !o_.check; at += o_.chunk)
                for (std::uint64_t round = 1; round <= rounds_of(at); round++)
                    store_chunk(at, pass, round);
            compare(pass);
            std::printf("sweep: pass %llu of %llu, %llu MiB, %.1f s\n", num(pass), num(o_.passes),
                        num(size_ >> 20), seconds_since(start));
            std::fflush(stdout);
        }
        return kPassed;
    }

private:
    // The content of a page after that round of that pass.
    void fill(Page& page, std::uint64_t index, std::uint64_t pass, std::uint64_t round) const
    {
        std::uint64_t word = mix(mix(o_.seed ^ (pass << 32) ^ round) + index);
        for (std::uint64_t& to : page)
            to = word += 0x9e3779b97f4a7c15;
    }

    std::uint64_t rounds_of(std::uint64_t chunk) const { return chunk < o_.again ? o_.rounds : 1; }

    void store_chunk(std::uint64_t at, std::uint64_t pass, std::uint64_t round)
    {
        const std::uint64_t first = at / kPageBytes;
        std::vector<std::uint64_t> pages(std::min(o_.chunk, size_ - at) / kPageBytes);
        std::iota(pages.begin(), pages.end(), first);
        Random random{mix(o_.seed + pass) ^ mix(first + round)};
        for (std::size_t i = pages.size(); i > 1; i--)
            std::swap(pages[i - 1], pages[random.below(i)]);
        std::vector<std::uint64_t> halves;
        for (const std::uint64_t index : pages) {
            fill(page_, index, pass, round);
            if (o_.broken && pass == o_.passes && round == rounds_of(at) && index == first)
                continue;
            if (random.one_in(kWriteEvery)) {
                write_page(index);
            } else if (random.one_in(kParts)) {
                std::memcpy(base_ + index * kPageBytes, page_.data(), kPageBytes / 2);
                halves.push_back(index);
            } else {
                std::memcpy(base_ + index * kPageBytes, page_.data(), kPageBytes);
            }
        }
        for (const std::uint64_t index : halves) {
            fill(page_, index, pass, round);
            std::memcpy(base_ + index * kPageBytes + kPageBytes / 2, &page_[kWords / 2],
                        kPageBytes / 2);
        }
        if (msync(base_ + at, pages.size() * kPageBytes, MS_SYNC) < 0)
            die("msync", errno);
    }

    void write_page(std::uint64_t index)
    {
        if (pwrite(fd_.get(), page_.data(), kPageBytes, static_cast<off_t>(index * kPageBytes)) !=
            static_cast<ssize_t>(kPageBytes))
            die("pwrite", errno);
    }

    void compare(std::uint64_t pass)
    {
        for (std::uint64_t index = 0; index < size_ / kPageBytes; index++) {
            fill(page_, index, pass, rounds_of(index * kPageBytes / o_.chunk * o_.chunk));
            const std::uint8_t* got = base_ + index * kPageBytes;
            if (std::memcmp(got, page_.data(), kPageBytes) == 0)
                continue;
            const auto* want = reinterpret_cast<const std::uint8_t*>(page_.data());
            const std::uint64_t i =
                static_cast<std::uint64_t>(std::mismatch(got, got + kPageBytes, want).first - got);
            std::printf("pass %llu: offset %llu: 0x%02x, expected 0x%02x\n", num(pass),
                        num(index * kPageBytes + i), got[i], want[i]);
            leave(kRefuted, "a byte is not what was stored");
        }
    }

    const Options& o_;
    Fd fd_;
    std::uint64_t size_ = 0;
    std::uint8_t* base_ = nullptr;
    Page page_{};
};

constexpr const char* kUsage =
    "usage: sweep FILE [--check] [--passes N] [--rounds N] [--again BYTES] [--chunk BYTES]\n"
    "                  [--seed N] [--break]";

Options parse_options(int argc, char** argv)
{
    static const option longs[] = {
        {"passes", required_argument, nullptr, 'p'}, {"rounds", required_argument, nullptr, 'r'},
        {"again", required_argument, nullptr, 'a'},  {"chunk", required_argument, nullptr, 'k'},
        {"seed", required_argument, nullptr, 's'},   {"check", no_argument, nullptr, 'c'},
        {"break", no_argument, nullptr, 'b'},        {nullptr, 0, nullptr, 0},
    };
    Options options;
    for (int c = 0; (c = getopt_long(argc, argv, "", longs, nullptr)) != -1;) {
        switch (c) {
        case 'p':
            options.passes = parse_number("--passes", optarg);
            break;
        case 'r':
            options.rounds = parse_number("--rounds", optarg);
            break;
        case 'a':
            options.again = parse_number("--again", optarg);
            break;
        case 'k':
            options.chunk = parse_number("--chunk", optarg);
            break;
        case 's':
            options.seed = parse_number("--seed", optarg);
            break;
        case 'c':
            options.check = true;
            break;
        case 'b':
            options.broken = true;
            break;
        default:
            die(kUsage);
        }
    }
    if (optind + 1 != argc || options.passes == 0 || options.rounds == 0 || options.chunk == 0 ||
        options.chunk % kPageBytes)
        die(kUsage);
    options.file = argv[optind];
    return options;
}

} // namespace

int main(int argc, char** argv)
{
    const Options options = parse_options(argc, argv);
    return Sweep(options).run();
}
