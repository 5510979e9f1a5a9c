// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
#include "control/seal.hpp"

#include <endian.h>
#include <munge.h>
#include <unistd.h>

#include <cstdlib>
#include <optional>

#include <fmt/format.h>

#include "control/frame.hpp"
#include "core/random.hpp"

namespace smc {
namespace {

constexpr std::string_view kCredentialStart = "MUNGE:";

Result<std::string> checked_size(std::string message)
{
    if (message.size() > kFrameMax)
        return fail(EMSGSIZE, fmt::format("a message of {} bytes does not fit into a frame of {}",
                                          message.size(), kFrameMax));
    return message;
}

struct MungeContextDeleter {
    void operator()(munge_ctx* context) const { munge_ctx_destroy(context); }
};
struct FreeDeleter {
    void operator()(void* memory) const { std::free(memory); } // NOLINT: it is malloc's
};
using MungeContext = std::unique_ptr<munge_ctx, MungeContextDeleter>;

std::string remedy(munge_err_t error)
{
    switch (error) {
    case EMUNGE_SOCKET:
    case EMUNGE_TIMEOUT:
        return "start munged: systemctl start munge";
    case EMUNGE_CRED_EXPIRED:
    case EMUNGE_CRED_REWOUND:
        return "the clocks of the two nodes differ: check time synchronization";
    case EMUNGE_CRED_INVALID:
        return "the two nodes have different MUNGE keys: distribute one munge.key";
    case EMUNGE_CRED_UNAUTHORIZED:
        return "both daemons must run as the same user";
    default:
        return "check munged on both nodes";
    }
}

// socket: empty for munge's own default.
Result<MungeContext> make_context(const std::string& socket)
{
    MungeContext context(munge_ctx_create());
    if (!context)
        return fail(ENOMEM, "munge_ctx_create");
    if (!socket.empty() &&
        munge_ctx_set(context.get(), MUNGE_OPT_SOCKET, socket.c_str()) != EMUNGE_SUCCESS)
        return fail(EIO, fmt::format("munge: {}", munge_ctx_strerror(context.get())));
    return context;
}

Result<std::string> encode(const std::string& socket, std::string_view payload)
{
    const auto context = SMC_TRY(make_context(socket));
    // Any process of the cluster may decode a credential that does not name its reader.
    if (munge_ctx_set(context.get(), MUNGE_OPT_UID_RESTRICTION, ::geteuid()) != EMUNGE_SUCCESS)
        return fail(EIO, fmt::format("munge: {}", munge_ctx_strerror(context.get())));
    char* credential = nullptr;
    const auto error =
        munge_encode(&credential, context.get(), payload.data(), static_cast<int>(payload.size()));
    const std::unique_ptr<char, FreeDeleter> owner(credential);
    if (error != EMUNGE_SUCCESS)
        return fail(EACCES, fmt::format("munge cannot seal a message: {}; {}",
                                        munge_strerror(error), remedy(error)));
    return std::string(credential);
}

Result<std::string> decode(const std::string& socket, std::string_view credential)
{
    const std::string text(credential); // NUL-terminated
    const auto context = SMC_TRY(make_context(socket));
    void* payload = nullptr;
    int length = 0;
    uid_t uid = 0;
    gid_t gid = 0;
    const auto error = munge_decode(text.c_str(), context.get(), &payload, &length, &uid, &gid);
    const std::unique_ptr<void, FreeDeleter> owner(payload);
    if (error != EMUNGE_SUCCESS)
        return fail(EACCES, fmt::format("munge refuses a message: {}; {}", munge_strerror(error),
                                        remedy(error)));
    if (uid != 0 && uid != ::geteuid())
        return fail(EACCES, fmt::format("a message was sealed by uid {}: only daemons of root or "
                                        "uid {} are accepted",
                                        uid, ::geteuid()));
    return std::string(static_cast<const char*>(payload), static_cast<std::size_t>(length));
}

class MungeSeal final : public Seal {
public:
    MungeSeal(std::string socket, SealSide side) : socket_(std::move(socket)), side_(side)
    {
        if (side == SealSide::initiator)
            connection_ = random_array<kConnectionBytes>();
    }

    Result<std::string> wrap(std::string_view message) override
    {
        if (!connection_)
            return fail(EPROTO, "an acceptor speaks after the initiator");
        std::string payload(connection_->begin(), connection_->end());
        payload += number(side_, sent_);
        payload += message;
        auto credential = SMC_TRY(encode(socket_, payload));
        credential = SMC_TRY(checked_size(std::move(credential)));
        ++sent_; // of those that are sent alone: the other side counts what arrives
        return credential;
    }

    [[nodiscard]] Auth auth() const override { return Auth::munge; }

    Result<std::string> unwrap(std::string_view frame) override
    {
        if (frame.starts_with('{'))
            return tl::unexpected(auth_mismatch(to_string(Auth::none), auth()));
        const auto payload = SMC_TRY(decode(socket_, frame));
        if (payload.size() < kConnectionBytes + kNumberBytes)
            return fail(EACCES, "a sealed message is too short: the peer speaks another protocol");
        const auto connection = std::string_view(payload).substr(0, kConnectionBytes);
        if (!connection_) {
            connection_.emplace();
            std::copy(connection.begin(), connection.end(), connection_->begin());
        }
        if (connection != std::string_view(connection_->data(), connection_->size()))
            return fail(EACCES, "a sealed message belongs to another connection");
        const auto other = side_ == SealSide::initiator ? SealSide::acceptor : SealSide::initiator;
        if (std::string_view(payload).substr(kConnectionBytes, kNumberBytes) !=
            number(other, received_))
            return fail(EACCES, "a sealed message is out of order");
        ++received_;
        return payload.substr(kConnectionBytes + kNumberBytes);
    }

private:
    static constexpr std::size_t kConnectionBytes = 16;
    static constexpr std::size_t kNumberBytes = 8;

    // The initiator's are even, the acceptor's odd.
    static std::string number(SealSide side, std::uint64_t count)
    {
        const std::uint64_t value = htobe64(2 * count + (side == SealSide::acceptor ? 1 : 0));
        std::string bytes(kNumberBytes, '\0');
        std::memcpy(bytes.data(), &value, kNumberBytes);
        return bytes;
    }

    std::string socket_;
    SealSide side_;
    std::optional<std::array<char, kConnectionBytes>> connection_; // acceptor: of the first message
    std::uint64_t sent_ = 0;
    std::uint64_t received_ = 0;
};

class PlainSeal final : public Seal {
public:
    Result<std::string> wrap(std::string_view message) override
    {
        return checked_size(std::string(message));
    }
    [[nodiscard]] Auth auth() const override { return Auth::none; }

    Result<std::string> unwrap(std::string_view frame) override
    {
        if (frame.starts_with(kCredentialStart))
            return tl::unexpected(auth_mismatch(to_string(Auth::munge), auth()));
        return std::string(frame);
    }
};

} // namespace

std::unique_ptr<Seal> make_seal(const ControlConfig& config, SealSide side)
{
    if (config.auth == Auth::none)
        return std::make_unique<PlainSeal>();
    return std::make_unique<MungeSeal>(config.munge_socket, side);
}

const char* to_string(Auth auth)
{
    return auth == Auth::none ? "none" : "munge";
}

Error auth_mismatch(std::string_view theirs, Auth ours)
{
    return {EACCES, fmt::format("the peer asks for auth = \"{}\", this node has \"{}\": set auth "
                                "in [control] of smcfsd.toml to the same on both",
                                theirs, to_string(ours))};
}

Result<void> check_munge(const std::string& socket)
{
    const auto credential = SMC_TRY(encode(socket, "smcfsd"));
    SMC_TRY(decode(socket, credential));
    return {};
}

} // namespace smc
