// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// What raw verbs take on the same path: nanoseconds for one operation of a kind and size, measured
// by raw.hpp or, as a file, by another program.
//
// Kinds: `write` and `read`, many in flight; `write_sync`, one that is waited for; `read_lat`, the same
// with a read.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "core/result.hpp"

namespace smc::bench {

class Figures {
public:
    // Lines of KIND BYTES NANOSECONDS.
    static Result<Figures> load(const std::string& path);

    void set(const std::string& kind, std::uint64_t bytes, double ns) { ns_[{kind, bytes}] = ns; }
    [[nodiscard]] std::optional<double> get(const std::string& kind, std::uint64_t bytes) const
    {
        const auto found = ns_.find({kind, bytes});
        return found != ns_.end() ? std::optional{found->second} : std::nullopt;
    }
    using All = std::map<std::pair<std::string, std::uint64_t>, double>;
    [[nodiscard]] const All& all() const { return ns_; }

private:
    All ns_;
};

} // namespace smc::bench
