// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// Mutated messages for a daemon that runs, on both of its sockets: CORPUS-DIRECTORY RUNS SEED. Each
// is known to have been read: the daemon hangs up, or answers the request that was sent behind it.
// It must live on, at the end still serve a proper request, and not grow. Sanitizers see the rest.
#include <arpa/inet.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <thread>

#include <fmt/format.h>

#include "core/log.hpp"
#include "daemon.hpp"
#include "mutate.hpp"

namespace {

constexpr unsigned kPerConnection = 40;    // messages before a new one is made
constexpr long kGrowthMaxKiB = 256L << 10; // sanitizers keep freed memory for a while

class Socket {
public:
    // TCP to the port, or the unix socket of the path.
    Socket(std::uint16_t port, const std::string& path)
    {
        if (port != 0) {
            fd_ = smc::Fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
            sockaddr_in address{};
            address.sin_family = AF_INET;
            address.sin_port = htons(port);
            address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
            connected_ =
                ::connect(fd_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
        } else {
            fd_ = smc::Fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
            sockaddr_un address{};
            address.sun_family = AF_UNIX;
            path.copy(address.sun_path, sizeof address.sun_path - 1);
            connected_ =
                ::connect(fd_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
        }
        const timeval timeout{30, 0};
        ::setsockopt(fd_.get(), SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
        ::setsockopt(fd_.get(), SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof timeout);
    }
    [[nodiscard]] bool connected() const { return connected_; }
    bool send(const std::string& bytes)
    {
        return ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
               static_cast<ssize_t>(bytes.size());
    }
    // Nothing more comes from this side.
    void finish() { ::shutdown(fd_.get(), SHUT_WR); }
    // The daemon did neither answer nor hang up in time.
    [[nodiscard]] bool timed_out() const { return timed_out_; }
    // The next frame; empty at the end or after the timeout.
    std::string receive()
    {
        char buffer[65536];
        while (true) {
            auto frame = decoder_.next();
            if (!frame)
                return "";
            if (*frame)
                return **frame;
            const auto got = ::recv(fd_.get(), buffer, sizeof buffer, 0);
            timed_out_ = got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
            if (got <= 0)
                return "";
            decoder_.append({buffer, static_cast<std::size_t>(got)});
        }
    }

private:
    smc::Fd fd_;
    smc::FrameDecoder decoder_;
    bool connected_ = false;
    bool timed_out_ = false;
};

// How the messages of one socket ended.
struct Count {
    unsigned long answered = 0; // as was what came behind
    unsigned long hung_up = 0;
};

long resident_kib()
{
    std::ifstream file("/proc/self/statm");
    long size = 0;
    long resident = 0;
    file >> size >> resident;
    return resident * (::sysconf(_SC_PAGESIZE) / 1024);
}

// An identity that no message of the corpus has.
constexpr std::uint64_t kSentinelBase = 1ULL << 60;

enum class End { answered, hung_up, silent };

// Sends a message, most as a frame of the right length, some as raw bytes, and waits until it is
// known to have been read.
End torment_once(Socket& socket, smc::fuzz::Mutator& mutator, const std::string& text,
                 std::uint64_t number)
{
    const auto frame = smc::encode_frame(text);
    if (mutator.below(50) == 0 || !frame) {
        // What follows would be taken for a part of it: only the end tells.
        socket.send(text);
        socket.finish();
        while (!socket.receive().empty()) {}
        return socket.timed_out() ? End::silent : End::hung_up;
    }
    const auto id = kSentinelBase + number;
    const auto behind = smc::encode_frame(fmt::format(R"({{"id":{},"type":"sentinel"}})", id));
    if (!socket.send(*frame + *behind))
        return End::hung_up;
    while (true) {
        const auto answer = socket.receive();
        if (answer.empty())
            return socket.timed_out() ? End::silent : End::hung_up;
        const auto object = smc::parse_object(answer);
        if (object && object->value("id", smc::Json()) == id)
            return End::answered;
    }
}

// False, with a message, when the daemon is not what it was.
bool torment(smc::fuzz::Mutator& mutator, unsigned long runs, std::uint16_t port,
             const std::string& path)
{
    long after_warm_up = 0;
    Count local;
    Count peer;
    const auto hello = *smc::encode_frame(
        R"({"id":1,"type":"peer.hello","version":1,"node":"fuzz","software":"fuzz"})");
    for (unsigned long run = 0; run < runs;) {
        const bool tcp = mutator.below(2) == 0;
        auto& count = tcp ? peer : local;
        Socket socket(tcp ? port : 0, path);
        if (!socket.connected()) {
            std::fprintf(stderr, "the daemon does not accept connections after %lu messages\n",
                         run);
            return false;
        }
        if (tcp && mutator.below(8) != 0)
            socket.send(hello);
        auto end = End::answered;
        for (unsigned i = 0; i < kPerConnection && run < runs && end == End::answered; ++i, ++run) {
            const auto text = mutator.next();
            end = torment_once(socket, mutator, text, run);
            if (end == End::silent) {
                std::fprintf(stderr, "no answer to message %lu: %s\n", run,
                             smc::printable(text).c_str());
                return false;
            }
            ++(end == End::answered ? count.answered : count.hung_up);
        }
        if (after_warm_up == 0 && run > runs / 4)
            after_warm_up = resident_kib();
    }
    const long growth = resident_kib() - after_warm_up;
    std::printf(
        "local: %lu answered, %lu hung up; peer: %lu answered, %lu hung up; resident memory "
        "grew by %ld KiB since the first quarter\n",
        local.answered, local.hung_up, peer.answered, peer.hung_up, growth);
    for (const auto& count : {local, peer}) {
        if (count.answered < runs / 10 || count.hung_up < runs / 100) {
            std::fprintf(stderr, "too few messages went through each way\n");
            return false;
        }
    }
    if (growth > kGrowthMaxKiB) {
        std::fprintf(stderr, "the daemon grows\n");
        return false;
    }
    Socket proper(0, path);
    proper.send(*smc::encode_frame(R"({"id":7,"type":"status"})"));
    const auto answer = smc::parse_object(proper.receive());
    if (!answer || (*answer)["ok"] != true || (*answer)["node"] != "fuzzed") {
        std::fprintf(stderr, "the daemon does not answer a proper request any more\n");
        return false;
    }
    return true;
}

} // namespace

int main(int argc, char** argv)
{
    if (argc != 4) {
        std::fprintf(stderr, "usage: %s CORPUS-DIRECTORY RUNS SEED\n", argv[0]);
        return 2;
    }
    smc::fuzz::Mutator mutator(smc::fuzz::read_corpus(argv[1]),
                               std::strtoull(argv[3], nullptr, 10));
    if (!smc::log::init("off"))
        return 2;
    char directory[] = "/tmp/smc-fuzz-XXXXXX";
    if (::mkdtemp(directory) == nullptr)
        return 2;
    const std::string path = std::string(directory) + "/socket";

    smc::Config config;
    config.node = "fuzzed";
    config.path = "/nonexistent/smcfsd.toml";
    config.control.auth = smc::Auth::none;
    config.control.port = static_cast<std::uint16_t>(20000 + ::getpid() % 20000);
    config.control.listen = {"127.0.0.1"};
    config.rdma.port = static_cast<std::uint16_t>(config.control.port + 1);
    config.timeouts.connect_ms = 200;
    config.timeouts.bind_ms = 500;
    config.limits.exports = 16;
    for (const auto* name : {"gpu1", "gpu2"}) {
        config.peers[name].name = name;
        config.peers[name].address = "127.0.0.1";
        config.peers[name].port = 1; // refuses
    }

    auto loop = smc::EventLoop::create();
    auto daemon = loop ? smc::Daemon::create(**loop, config, {path})
                       : smc::Result<std::unique_ptr<smc::Daemon>>(smc::fail(EIO, "no event loop"));
    if (!daemon) {
        std::fprintf(stderr, "%s\n", daemon.error().what.c_str());
        return 1;
    }
    bool good = false;
    std::thread client([&, raw = loop->get()] {
        good = torment(mutator, std::strtoul(argv[2], nullptr, 10), config.control.port, path);
        raw->post([&] { (*daemon)->stop(); });
    });
    const auto result = (*loop)->run();
    client.join();
    daemon->reset();
    std::filesystem::remove_all(directory);
    return good && result ? 0 : 1;
}
