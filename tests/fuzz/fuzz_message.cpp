// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// What a peer may send: as frames, as a message, as an offer, as a grant.
#include "control/frame.hpp"
#include "control/message.hpp"
#include "control/protocol.hpp"

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer's name
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    const std::string_view text(reinterpret_cast<const char*>(data), size);

    smc::FrameDecoder decoder;
    decoder.append(text);
    while (true) {
        const auto frame = decoder.next();
        if (!frame || !*frame)
            break;
    }

    const auto object = smc::parse_object(text);
    if (!object)
        return 0;
    (void)smc::read_envelope(*object);
    (void)smc::reply_error(*object);
    (void)smc::offer_from_json(*object);
    (void)smc::probe_from_json(*object);
    smc::GrantReader reader;
    if (const auto more = reader.add(*object)) {
        (void)reader.add(*object); // the same page again
        const auto grant = reader.take();
        if (grant.extents.empty() || grant.size == 0)
            std::abort(); // a grant that passed has memory
    }
    // What was read can be written, and read again.
    if (!smc::parse_object(smc::dump(*object)))
        std::abort();
    return 0;
}
