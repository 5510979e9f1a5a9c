// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// smc::Region: an attached region as an object (smc.h has the contract of every operation).
//
//     auto region = smc::Region::attach("gpu3:job/params");
//     std::ranges::copy(bytes, region.bytes().begin());
//     region.barrier();
//
// As in std::filesystem every operation has two forms: one throws std::system_error, whose code is in
// smc::error_category() and whose what() carries the remedy; one takes std::error_code& and is noexcept.
// Codes compare with std::errc: `ec == std::errc::timed_out`. Needs C++20 and -lsmc.
#ifndef SMC_SMC_HPP
#define SMC_SMC_HPP

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <system_error>
#include <utility>

#include <smc/smc.h>

namespace smc {

// Values are positive errnos; messages are those of smc_strerror().
inline const std::error_category& error_category() noexcept
{
    struct Category final : std::error_category {
        [[nodiscard]] const char* name() const noexcept override { return "smc"; }
        [[nodiscard]] std::string message(int value) const override
        {
            return ::smc_strerror(value);
        }
        [[nodiscard]] std::error_condition
        default_error_condition(int value) const noexcept override
        {
            return {value, std::generic_category()};
        }
    };
    static const Category category;
    return category;
}

enum class Access { read_write, read_only };

struct AttachOptions {
    Access access = Access::read_write;
    std::uint64_t offset = 0;     // bytes, a multiple of the page size
    std::uint64_t length = 0;     // bytes; 0: to the region's end
    std::uint32_t timeout_ms = 0; // 0: SMC_TIMEOUT_MS_DEFAULT
};

// Movable, not copyable; a moved-from or default-made Region is empty. The destructor detaches and says
// nothing of errors: call barrier() first.
class Region {
public:
    Region() noexcept = default;
    Region(Region&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
    Region& operator=(Region&& other) noexcept
    {
        if (this != &other) {
            ::smc_detach(handle_);
            handle_ = std::exchange(other.handle_, nullptr);
        }
        return *this;
    }
    Region(const Region&) = delete;
    Region& operator=(const Region&) = delete;
    ~Region() { ::smc_detach(handle_); }

    // name: NODE:NAME or /smc/NODE/NAME.
    [[nodiscard]] static Region attach(const std::string& name, const AttachOptions& options = {})
    {
        std::error_code ec;
        Region region = attach(name, options, ec);
        throw_if(ec, "smc_attach " + name);
        return region;
    }
    [[nodiscard]] static Region attach(const std::string& name, const AttachOptions& options,
                                       std::error_code& ec) noexcept
    {
        smc_attach_opts opts{};
        opts.size = sizeof(opts);
        opts.offset = options.offset;
        opts.length = options.length;
        opts.flags = options.access == Access::read_only ? SMC_ATTACH_READONLY : 0;
        opts.timeout_ms = options.timeout_ms;
        Region region;
        ec = code(::smc_attach(name.c_str(), &opts, &region.handle_));
        return region;
    }

    explicit operator bool() const noexcept { return handle_ != nullptr; }
    // For what only smc.h offers; stays owned by this object.
    [[nodiscard]] smc_region* handle() const noexcept { return handle_; }

    // Stores through bytes() of a read-only region raise SIGSEGV.
    [[nodiscard]] std::span<std::byte> bytes() noexcept
    {
        return {static_cast<std::byte*>(::smc_addr(handle_)), ::smc_size(handle_)};
    }
    [[nodiscard]] std::span<const std::byte> bytes() const noexcept
    {
        return {static_cast<const std::byte*>(::smc_addr(handle_)), ::smc_size(handle_)};
    }
    [[nodiscard]] std::size_t size() const noexcept { return ::smc_size(handle_); }

    void barrier() { throw_if(code(::smc_barrier(handle_)), "smc_barrier"); }
    void barrier(std::error_code& ec) noexcept { ec = code(::smc_barrier(handle_)); }
    void barrier(std::uint64_t offset, std::uint64_t length)
    {
        throw_if(code(::smc_barrier_range(handle_, offset, length)), "smc_barrier_range");
    }
    void barrier(std::uint64_t offset, std::uint64_t length, std::error_code& ec) noexcept
    {
        ec = code(::smc_barrier_range(handle_, offset, length));
    }

    // length 0: to the end of the attached range.
    void acquire(std::uint64_t offset = 0, std::uint64_t length = 0)
    {
        throw_if(code(::smc_acquire(handle_, offset, length)), "smc_acquire");
    }
    void acquire(std::uint64_t offset, std::uint64_t length, std::error_code& ec) noexcept
    {
        ec = code(::smc_acquire(handle_, offset, length));
    }

    void store(std::uint64_t offset, std::span<const std::byte> from)
    {
        throw_if(code(::smc_store(handle_, offset, from.data(), from.size())), "smc_store");
    }
    void store(std::uint64_t offset, std::span<const std::byte> from, std::error_code& ec) noexcept
    {
        ec = code(::smc_store(handle_, offset, from.data(), from.size()));
    }

    void load(std::uint64_t offset, std::span<std::byte> into) const
    {
        throw_if(code(::smc_load(handle_, offset, into.data(), into.size())), "smc_load");
    }
    void load(std::uint64_t offset, std::span<std::byte> into, std::error_code& ec) const noexcept
    {
        ec = code(::smc_load(handle_, offset, into.data(), into.size()));
    }

    [[nodiscard]] smc_status_info status() const
    {
        std::error_code ec;
        smc_status_info info = status(ec);
        throw_if(ec, "smc_status");
        return info;
    }
    [[nodiscard]] smc_status_info status(std::error_code& ec) const noexcept
    {
        smc_status_info info{};
        info.size = sizeof(info);
        ec = code(::smc_status(handle_, &info));
        return info;
    }

    // Empties the object, also when it fails.
    void detach() { throw_if(code(::smc_detach(std::exchange(handle_, nullptr))), "smc_detach"); }
    void detach(std::error_code& ec) noexcept
    {
        ec = code(::smc_detach(std::exchange(handle_, nullptr)));
    }

private:
    static std::error_code code(int result) noexcept
    {
        return result == 0 ? std::error_code() : std::error_code(-result, error_category());
    }
    static void throw_if(std::error_code ec, const std::string& operation)
    {
        if (ec)
            throw std::system_error(ec, operation);
    }

    smc_region* handle_ = nullptr;
};

} // namespace smc

#endif // SMC_SMC_HPP
