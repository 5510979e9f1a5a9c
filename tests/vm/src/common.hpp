/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* Copyright (c) 2026 The SMC authors */
// What the test programs share: leaving with a reason, owned descriptors, repeatable numbers.
//
// Exit codes of every program: 0 passed, 1 the claim was found false, 2 could not be tested (usage,
// environment).
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include <unistd.h>

namespace smc::test {

constexpr std::size_t kPageBytes = 4096;

enum ExitCode { kPassed = 0, kRefuted = 1, kUntested = 2 };

// Prints "PROGRAM: what" and, for a positive errno, its text; then leaves.
[[noreturn]] void leave(ExitCode code, const std::string& what, int error = 0);
[[noreturn]] inline void die(const std::string& what, int error = 0)
{
    leave(kUntested, what, error);
}

// "1234", "64K", "8M", "1G", "0x10"; dies with the name of the option otherwise.
std::uint64_t parse_number(std::string_view option, const char* text);

class Fd {
public:
    Fd() = default;
    explicit Fd(int fd) : fd_(fd) {}
    Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    Fd& operator=(Fd&& other) noexcept
    {
        if (this != &other) {
            reset();
            fd_ = std::exchange(other.fd_, -1);
        }
        return *this;
    }
    ~Fd() { reset(); }
    void reset()
    {
        if (fd_ >= 0)
            close(std::exchange(fd_, -1));
    }
    int get() const { return fd_; }
    explicit operator bool() const { return fd_ >= 0; }

private:
    int fd_ = -1;
};

// splitmix64: one number from another, the same on every machine.
constexpr std::uint64_t mix(std::uint64_t x)
{
    x += 0x9e3779b97f4a7c15;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return x ^ (x >> 31);
}

class Random {
public:
    explicit Random(std::uint64_t seed) : state_(seed) {}
    std::uint64_t next() { return mix(state_ += 0x9e3779b97f4a7c15); }
    std::uint64_t below(std::uint64_t bound) { return bound ? next() % bound : 0; }
    bool one_in(std::uint64_t n) { return below(n) == 0; }

private:
    std::uint64_t state_;
};

constexpr std::uint64_t page_down(std::uint64_t x)
{
    return x & ~std::uint64_t{kPageBytes - 1};
}
constexpr std::uint64_t page_up(std::uint64_t x)
{
    return page_down(x + kPageBytes - 1);
}

inline double seconds_since(std::chrono::steady_clock::time_point start)
{
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

} // namespace smc::test
