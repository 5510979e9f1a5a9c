// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// Times of one workload, in nanoseconds, and what is said of them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace smc::bench {

class Samples {
public:
    void add(std::uint64_t ns)
    {
        values_.push_back(ns);
        sorted_ = false;
    }
    [[nodiscard]] std::size_t count() const { return values_.size(); }
    // The value that a share of all, 0 to 1, does not exceed. There must be one.
    [[nodiscard]] std::uint64_t quantile(double share)
    {
        if (!sorted_)
            std::sort(values_.begin(), values_.end());
        sorted_ = true;
        const auto index = static_cast<std::size_t>(share * static_cast<double>(values_.size()));
        return values_[std::min(index, values_.size() - 1)];
    }
    [[nodiscard]] std::uint64_t median() { return quantile(0.5); }
    [[nodiscard]] std::uint64_t min() { return quantile(0); }
    [[nodiscard]] std::uint64_t max() { return quantile(1); }

private:
    std::vector<std::uint64_t> values_;
    bool sorted_ = false;
};

} // namespace smc::bench
