// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
#include "target/types.hpp"

namespace smc {

const char* to_string(Writers writers)
{
    return writers == Writers::exclusive ? "exclusive" : "merge";
}

std::optional<Writers> parse_writers(std::string_view text)
{
    for (const auto writers : {Writers::merge, Writers::exclusive})
        if (text == to_string(writers))
            return writers;
    return {};
}

const char* to_string(Keys keys)
{
    switch (keys) {
    case Keys::window:
        return "window";
    case Keys::mr:
        return "mr";
    case Keys::none:
        break;
    }
    return "none";
}

const char* to_string(SessionState state)
{
    switch (state) {
    case SessionState::offered:
        return "offered";
    case SessionState::connecting:
        return "connecting";
    case SessionState::live:
        return "live";
    case SessionState::lost:
        break;
    }
    return "lost";
}

} // namespace smc
