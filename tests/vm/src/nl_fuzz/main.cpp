// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// smcfs-nl-fuzz: the netlink family of smcfs.ko, with requests that are wrong.
//
//     smcfs-nl-fuzz --address ADDRESS [--mount DIRECTORY] [--seed N] [--messages N] [--only I]
//
// ADDRESS is one of this machine that has an RDMA device: a target in this program listens there.
// Wants root, the module loaded, no daemon. First come checks with a known answer, then mutated
// requests, which have to be answered or be refused, in bounded time; whether the kernel complained
// is for whoever reads its log. At the end nothing may be left.
//
// --only I sends one of the mutated requests alone. Exit: see common.hpp.
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

#include <dirent.h>
#include <getopt.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cases.hpp"
#include "mutate.hpp"

namespace smc::test {
namespace {

// One request; flushing and connecting are bounded by much less.
constexpr int kRequestSeconds = 60;
// Clearing away what requests made.
constexpr int kCleanSeconds = 180;
constexpr std::uint64_t kCleanEvery = 500;

struct Options {
    std::string address;
    std::string mount;
    std::uint64_t seed = 1;
    std::uint64_t messages = 10000;
    std::int64_t only = -1;
};

// Ends the program when a request has no end: from a thread, since a wait that only death ends
// does not let a signal handler run.
class Watchdog {
public:
    explicit Watchdog(std::uint64_t seed)
        : thread_([this, seed](const std::stop_token& stop) { watch(stop, seed); })
    {}

    void expect_end(int seconds, std::uint64_t message)
    {
        std::lock_guard lock(mutex_);
        message_ = message;
        deadline_ = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
    }

private:
    void watch(const std::stop_token& stop, std::uint64_t seed)
    {
        std::unique_lock lock(mutex_);
        while (!stop.stop_requested()) {
            changed_.wait_for(lock, stop, std::chrono::seconds(1), [] { return false; });
            if (!stop.stop_requested() && std::chrono::steady_clock::now() > deadline_)
                leave(kRefuted, "no end: --seed " + std::to_string(seed) + " --only " +
                                    std::to_string(message_));
        }
    }

    std::mutex mutex_;
    std::condition_variable_any changed_;
    std::uint64_t message_ = 0;
    std::chrono::steady_clock::time_point deadline_ =
        std::chrono::steady_clock::now() + std::chrono::seconds(kCleanSeconds);
    std::jthread thread_; // last: it uses the others
};

// Looks at names under the mount point all the while.
class Visitor {
public:
    explicit Visitor(const std::string& mount)
    {
        if (!mount.empty())
            thread_ = std::jthread(
                [mount](const std::stop_token& stop) { visit(stop, mount + "/" + kNode); });
    }

private:
    static void visit(const std::stop_token& stop, const std::string& directory)
    {
        while (!stop.stop_requested()) {
            for (const char* name : {"a", "b", "job", "job/params", "nothing"}) {
                struct stat st;
                if (stat((directory + "/" + name).c_str(), &st) == 0 && stop.stop_requested())
                    return;
            }
            if (DIR* dir = opendir(directory.c_str())) {
                while (readdir(dir))
                    ;
                closedir(dir);
            }
        }
    }

    std::jthread thread_;
};

// A socket that was made, and is used, without rights: by a process of its own.
class Stranger {
public:
    Stranger()
    {
        int ends[2];
        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
            die("socketpair", errno);
        std::fflush(stdout);
        pid_t child = fork();
        if (child < 0)
            die("fork", errno);
        if (child == 0)
            serve(ends[1], ends[0]);
        ::close(ends[1]);
        fd_ = Fd(ends[0]);
    }

    // Sends; true if nothing but refusals and what everybody may see came back.
    bool send(const Bytes& datagram)
    {
        std::int32_t ok = 0;
        if (datagram.empty()) // would say that this side has closed
            return true;
        if (::send(fd_.get(), datagram.data(), datagram.size(), 0) < 0 ||
            recv(fd_.get(), &ok, sizeof(ok), 0) != sizeof(ok))
            die("the process without rights has ended");
        return ok != 0;
    }

private:
    [[noreturn]] static void serve(int fd, int other)
    {
        ::close(other);
        if (setgid(65534) || setuid(65534))
            die("giving root up", errno);
        Socket socket;
        Bytes buffer(1 << 20);
        for (;;) {
            ssize_t got = recv(fd, buffer.data(), buffer.size(), 0);
            if (got <= 0)
                _exit(0);
            Answer answer = socket.send(Bytes(buffer.data(), buffer.data() + got));
            std::int32_t ok = 1;
            for (const Received& message : answer.messages)
                ok = ok &&
                     ((message.cmd >= SMCFS_CMD_INFO_GET && message.cmd <= SMCFS_CMD_REGION_GET) ||
                      message.cmd == SMCFS_CMD_LATENCY_GET);
            if (::send(fd, &ok, sizeof(ok), 0) < 0)
                _exit(0);
        }
    }

    Fd fd_;
};

class Fuzzer {
public:
    Fuzzer(World& world, const Options& options)
        : world_(world), options_(options), watchdog_(options.seed), visitor_(options.mount)
    {}

    int run()
    {
        const std::uint64_t first =
            options_.only < 0 ? 0 : static_cast<std::uint64_t>(options_.only);
        const std::uint64_t end = options_.only < 0 ? options_.messages : first + 1;
        int failed = 0;
        for (std::uint64_t i = first; i < end; i++) {
            if (i == first || i % kCleanEvery == 0) {
                watchdog_.expect_end(kCleanSeconds, i);
                refresh();
            }
            watchdog_.expect_end(kRequestSeconds, i);
            failed += one(i);
        }
        watchdog_.expect_end(kCleanSeconds, end);
        for (const auto& [error, count] : errors_)
            std::printf("  %8llu %s\n", static_cast<unsigned long long>(count),
                        error > 0    ? strerrorname_np(error)
                        : error == 0 ? "success"
                                     : "no answer");
        failed += expect("some requests succeed, so that the others meet something",
                         options_.only >= 0 || errors_[0] > options_.messages / 50);
        return failed;
    }

private:
    void refresh()
    {
        world_.clean(true);
        for (const char* node : {kNode, kOtherNode})
            world_.ask(World::peer(SMCFS_CMD_PEER_ADD, node));
        if (!world_.live(kSession)) {
            world_.clean(false);
            world_.connect(kSession, kNode);
        }
        socket_ = std::make_unique<Socket>();
        regions_.clear();
    }

    int one(std::uint64_t i)
    {
        const Mutant mutant = make_mutant(world_, regions_, Random(mix(options_.seed) ^ mix(i)));
        if (mutant.by_stranger)
            return expect("request " + std::to_string(i) + " of a stranger",
                          stranger_.send(mutant.datagram));
        Answer answer = socket_->send(mutant.datagram);
        errors_[answer.sent ? answer.sent : answer.error.value_or(-1)]++;
        for (const Received& message : answer.messages)
            if (message.cmd == SMCFS_CMD_REGION_ATTACH && regions_.size() < 64)
                regions_.push_back(message.number(SMCFS_A_REGION_ID).value_or(0));
        return 0;
    }

    World& world_;
    const Options& options_;
    Stranger stranger_; // first of those with threads: it forks
    Watchdog watchdog_;
    Visitor visitor_;
    std::unique_ptr<Socket> socket_ = std::make_unique<Socket>(); // goes first, and wakes visitors
    std::vector<std::uint64_t> regions_;
    std::map<int, std::uint64_t> errors_;
};

Options parse_options(int argc, char** argv)
{
    static constexpr option kOptions[] = {
        {"address", required_argument, nullptr, 'a'}, {"mount", required_argument, nullptr, 'm'},
        {"seed", required_argument, nullptr, 's'},    {"messages", required_argument, nullptr, 'n'},
        {"only", required_argument, nullptr, 'o'},    {},
    };
    Options options;
    for (int c; (c = getopt_long(argc, argv, "", kOptions, nullptr)) != -1;) {
        switch (c) {
        case 'a':
            options.address = optarg;
            break;
        case 'm':
            options.mount = optarg;
            break;
        case 's':
            options.seed = parse_number("--seed", optarg);
            break;
        case 'n':
            options.messages = parse_number("--messages", optarg);
            break;
        case 'o':
            options.only = static_cast<std::int64_t>(parse_number("--only", optarg));
            break;
        default:
            std::exit(kUntested);
        }
    }
    if (options.address.empty() || optind != argc)
        die("usage: smcfs-nl-fuzz --address ADDRESS [--mount DIRECTORY] [--seed N] [--messages N] "
            "[--only I]");
    return options;
}

int main_checked(int argc, char** argv)
{
    const Options options = parse_options(argc, argv);
    World world(options.address);
    int failed = 0;
    if (options.only < 0) {
        std::printf("requests with a known answer\n");
        failed += check_errors(world);
        failed += check_scale(world);
        failed += check_strangers(world);
        if (!options.mount.empty())
            failed += check_daemon(world, options.mount);
    }
    if (options.messages) {
        std::printf("%llu mutated requests, --seed %llu\n",
                    static_cast<unsigned long long>(options.messages),
                    static_cast<unsigned long long>(options.seed));
        std::fflush(stdout);
        const auto start = std::chrono::steady_clock::now();
        failed += Fuzzer(world, options).run();
        std::printf("  in %.1f s\n", seconds_since(start));
    }
    world.finish();
    if (failed)
        leave(kRefuted, std::to_string(failed) + " expectations not met");
    std::printf("all as expected\n");
    return kPassed;
}

} // namespace
} // namespace smc::test

int main(int argc, char** argv)
{
    return smc::test::main_checked(argc, argv);
}
