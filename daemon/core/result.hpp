// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// How functions of the daemon fail: Result<T> is a T or an Error. Whoever decides an error makes it
// with fail(), everyone else returns it with SMC_TRY; context is added where it is known, once.
#pragma once

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include <tl/expected.hpp>

namespace smc {

// code is a positive errno, as it goes over the wire and to the kernel. what is a sentence that
// names the thing and, where there is one, the remedy.
struct [[nodiscard]] Error {
    int code = 0;
    std::string what;
};

template <class T>
using Result = tl::expected<T, Error>;

inline tl::unexpected<Error> fail(int code, std::string what)
{
    return tl::unexpected<Error>(Error{code, std::move(what)});
}

// For a failed call of the system: "what: No such file or directory".
inline tl::unexpected<Error> fail_errno(int code, std::string what)
{
    what += ": ";
    what += std::strerror(code); // NOLINT(concurrency-mt-unsafe): glibc's is thread-safe
    return fail(code, std::move(what));
}

namespace detail {
template <class T>
T take(Result<T>&& result)
{
    return std::move(*result);
}
inline void take(Result<void>&&) {}
} // namespace detail
} // namespace smc

// The value of expr, or a return with its error. A whole initializer or a whole statement, never an
// argument.
#define SMC_TRY(expr)                                                                              \
    __extension__({                                                                                \
        auto smc_try_result_ = (expr);                                                             \
        if (!smc_try_result_)                                                                      \
            return tl::unexpected<::smc::Error>(std::move(smc_try_result_).error());               \
        ::smc::detail::take(std::move(smc_try_result_));                                           \
    })
