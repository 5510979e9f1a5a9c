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
#include <exception>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <type_traits>
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

struct WaitOptions {
    smc_wait_until until = SMC_WAIT_CHANGED;
    std::uint64_t value = 0;
    std::uint64_t mask = 0;       // 0: all bits
    std::uint32_t bytes = 8;      // of the word, 4 or 8
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

    // The range, then the flag: an unsigned integer of 4 or 8 bytes.
    template <class Flag>
    void publish(std::uint64_t offset, std::uint64_t length, std::uint64_t flag_offset, Flag value)
    {
        std::error_code ec;
        publish(offset, length, flag_offset, value, ec);
        throw_if(ec, "smc_publish");
    }
    template <class Flag>
    void publish(std::uint64_t offset, std::uint64_t length, std::uint64_t flag_offset, Flag value,
                 std::error_code& ec) noexcept
    {
        static_assert(std::is_unsigned_v<Flag> && (sizeof(Flag) == 4 || sizeof(Flag) == 8));
        ec = code(::smc_publish(handle_, offset, length, flag_offset, value, sizeof(Flag)));
    }

    // Return: what was there before.
    std::uint64_t fetch_add(std::uint64_t offset, std::uint64_t addend)
    {
        std::error_code ec;
        const std::uint64_t old = fetch_add(offset, addend, ec);
        throw_if(ec, "smc_fetch_add");
        return old;
    }
    std::uint64_t fetch_add(std::uint64_t offset, std::uint64_t addend,
                            std::error_code& ec) noexcept
    {
        std::uint64_t old = 0;
        ec = code(::smc_fetch_add(handle_, offset, addend, &old));
        return old;
    }
    std::uint64_t compare_swap(std::uint64_t offset, std::uint64_t expected, std::uint64_t desired)
    {
        std::error_code ec;
        const std::uint64_t old = compare_swap(offset, expected, desired, ec);
        throw_if(ec, "smc_compare_swap");
        return old;
    }
    std::uint64_t compare_swap(std::uint64_t offset, std::uint64_t expected, std::uint64_t desired,
                               std::error_code& ec) noexcept
    {
        std::uint64_t old = 0;
        ec = code(::smc_compare_swap(handle_, offset, expected, desired, &old));
        return old;
    }

    // Return: the word as it was last; with std::errc::timed_out, too.
    std::uint64_t wait(std::uint64_t offset, const WaitOptions& options) const
    {
        std::error_code ec;
        const std::uint64_t seen = wait(offset, options, ec);
        throw_if(ec, "smc_wait");
        return seen;
    }
    std::uint64_t wait(std::uint64_t offset, const WaitOptions& options,
                       std::error_code& ec) const noexcept
    {
        smc_wait_opts opts{};
        opts.size = sizeof(opts);
        opts.value = options.value;
        opts.mask = options.mask;
        opts.until = options.until;
        opts.bytes = options.bytes;
        opts.timeout_ms = options.timeout_ms;
        std::uint64_t seen = 0;
        ec = code(::smc_wait(handle_, offset, &opts, &seen));
        return seen;
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

    friend class Pool;
    template <class F>
    friend class GuardedCall;
};

// Pieces of a region, which must outlive them. Movable, not copyable.
class Pool {
public:
    Pool() noexcept = default;
    // length 0: to the end of the attached range; alignment 0: SMC_POOL_ALIGN.
    [[nodiscard]] static Pool create(Region& region, std::uint64_t offset, std::uint64_t length,
                                     std::size_t alignment)
    {
        std::error_code ec;
        Pool pool = create(region, offset, length, alignment, ec);
        Region::throw_if(ec, "smc_pool_create");
        return pool;
    }
    [[nodiscard]] static Pool create(Region& region, std::uint64_t offset, std::uint64_t length,
                                     std::size_t alignment, std::error_code& ec) noexcept
    {
        Pool pool;
        ec = Region::code(
            ::smc_pool_create(region.handle(), offset, length, alignment, &pool.handle_));
        return pool;
    }
    Pool(Pool&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
    Pool& operator=(Pool&& other) noexcept
    {
        if (this != &other) {
            ::smc_pool_destroy(handle_);
            handle_ = std::exchange(other.handle_, nullptr);
        }
        return *this;
    }
    Pool(const Pool&) = delete;
    Pool& operator=(const Pool&) = delete;
    ~Pool() { ::smc_pool_destroy(handle_); }

    explicit operator bool() const noexcept { return handle_ != nullptr; }
    [[nodiscard]] smc_pool* handle() const noexcept { return handle_; }

    // Return: the offset of the piece in the region.
    [[nodiscard]] std::uint64_t alloc(std::size_t bytes)
    {
        std::error_code ec;
        const std::uint64_t offset = alloc(bytes, ec);
        Region::throw_if(ec, "smc_pool_alloc");
        return offset;
    }
    [[nodiscard]] std::uint64_t alloc(std::size_t bytes, std::error_code& ec) noexcept
    {
        std::uint64_t offset = 0;
        ec = Region::code(::smc_pool_alloc(handle_, bytes, &offset));
        return offset;
    }
    void free(std::uint64_t offset)
    {
        Region::throw_if(Region::code(::smc_pool_free(handle_, offset)), "smc_pool_free");
    }
    void free(std::uint64_t offset, std::error_code& ec) noexcept
    {
        ec = Region::code(::smc_pool_free(handle_, offset));
    }

private:
    smc_pool* handle_ = nullptr;
};

// What guard() is made of.
template <class F>
class GuardedCall {
public:
    using Result = std::invoke_result_t<F&>;
    static_assert(!std::is_reference_v<Result>, "a guarded callable returns a value, or nothing");

    explicit GuardedCall(F& function) noexcept : function_(function) {}
    // Rethrows what the callable threw.
    void run(std::error_code& ec, smc_fault* fault)
    {
        if (fault)
            fault->size = sizeof(*fault);
        ec = Region::code(::smc_guard(&body, this, fault));
        if (thrown_)
            std::rethrow_exception(std::move(thrown_));
    }
    static void throw_if(std::error_code ec) { Region::throw_if(ec, "smc_guard"); }
    // Of a callable that returns something, and did.
    [[nodiscard]] Result take() { return std::move(*result_); }

private:
    // Nothing thrown may cross the C ABI.
    static int body(void* self) noexcept
    {
        auto& call = *static_cast<GuardedCall*>(self);
        try {
            if constexpr (std::is_void_v<Result>)
                call.function_();
            else
                call.result_.emplace(call.function_());
        } catch (...) {
            call.thrown_ = std::current_exception();
        }
        return 0;
    }

    F& function_;
    std::exception_ptr thrown_;
    std::optional<std::conditional_t<std::is_void_v<Result>, char, Result>> result_;
};

// Calls function(), with std::errc::io_error where its loads and stores raise SIGBUS. It is left at once
// then, without destructors: smc.h has what it may do, which is little besides loads, stores and
// arithmetic. What it throws, though no SIGBUS came, is thrown here, in both forms.
//
//     std::uint64_t sum = smc::guard([&] { return std::accumulate(words.begin(), words.end(), 0ul); });
//
// Return: what function() returned; in the form with ec a value-initialized one after an error.
template <class F>
std::invoke_result_t<F&> guard(F&& function)
{
    GuardedCall<std::remove_reference_t<F>> call(function);
    std::error_code ec;
    call.run(ec, nullptr);
    call.throw_if(ec);
    if constexpr (!std::is_void_v<std::invoke_result_t<F&>>)
        return call.take();
}
template <class F>
std::invoke_result_t<F&> guard(F&& function, std::error_code& ec, smc_fault* fault = nullptr)
{
    GuardedCall<std::remove_reference_t<F>> call(function);
    call.run(ec, fault);
    if constexpr (!std::is_void_v<std::invoke_result_t<F&>>)
        return ec ? std::invoke_result_t<F&>() : call.take();
}

} // namespace smc

#endif // SMC_SMC_HPP
