// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// This program as the daemon: it says hello, gets upcalls for what other threads do under the
// mount point, answers them, answers wrongly, or goes.
#include "cases.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <future>
#include <memory>
#include <thread>

#include <dirent.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace smc::test {

namespace {

constexpr int kUpcallMs = 10000; // for a thread to get there, on a busy machine
constexpr int kSoonMs = 8000;    // well below the 15 s after which the kernel gives an upcall up
constexpr int kUnansweredMs = 60000; // well above
constexpr int kSilentMs = 200;       // for what must not come
constexpr std::uint32_t kDaemonPort = 0x5e55100;
constexpr int kSamePortRounds = 200;
constexpr int kLittleRoom = 4096; // of a socket, for a few upcalls
constexpr int kUpcallsTooMany = 64;

using Names = std::vector<std::string>;

struct Listing {
    int error = 0;
    Names names;
};

Listing list_directory(const std::string& path)
{
    Listing listing;
    errno = 0;
    DIR* dir = opendir(path.c_str());
    if (!dir)
        return {errno, {}};
    while (dirent* entry = readdir(dir))
        if (entry->d_name[0] != '.')
            listing.names.emplace_back(entry->d_name);
    listing.error = errno;
    closedir(dir);
    std::sort(listing.names.begin(), listing.names.end());
    return listing;
}

int stat_errno(const std::string& path)
{
    struct stat st;
    return stat(path.c_str(), &st) ? errno : 0;
}

template <typename T>
bool soon(std::future<T>& result, int within_ms = kSoonMs)
{
    return result.wait_for(std::chrono::milliseconds(within_ms)) == std::future_status::ready;
}

// The next upcall, of the kind that is expected.
std::optional<Received> upcall(Socket& socket, int command)
{
    std::optional<Received> message = socket.wait(kUpcallMs);
    if (message && message->cmd != command)
        return std::nullopt;
    return message;
}

// Somebody looks at the name: the kernel asks, whatever it was told before, and takes the answer.
int expect_asked(World& world, Socket& daemon, const std::string& directory,
                 const std::string& name)
{
    auto result = std::async(std::launch::async, stat_errno, directory + "/" + name);
    std::optional<Received> ask = upcall(daemon, SMCFS_CMD_UPCALL_BIND);
    int failed =
        expect("UPCALL_BIND of " + name, ask.has_value() && ask->text(SMCFS_A_NAME) == name);
    failed += expect("REGION_ATTACH of " + name, daemon.ask(world.attach(name)), 0);
    return failed + expect("stat of " + name, soon(result) && result.get() == 0);
}

// Somebody looks at the name: the kernel knows the answer.
int expect_remembered(Socket& daemon, const std::string& directory, const std::string& name,
                      int wanted_errno)
{
    auto result = std::async(std::launch::async, stat_errno, directory + "/" + name);
    int failed = expect("no upcall of " + name, !daemon.wait(kSilentMs).has_value());
    return failed +
           expect("the same error of " + name, soon(result) && result.get() == wanted_errno);
}

bool present(World& world)
{
    Answer info = world.ask(Message(SMCFS_CMD_INFO_GET));
    return !info.messages.empty() && info.messages[0].number(SMCFS_A_DAEMON_PRESENT) == 1;
}

int check_hello(World& world)
{
    const Message hello = world.addressed(Message(SMCFS_CMD_DAEMON_HELLO));
    Socket second;
    int failed = expect("no daemon yet", !present(world));
    {
        Socket first;
        failed += expect("hello", first.ask(hello), 0);
        failed += expect("hello again", first.ask(hello), 0);
        failed += expect("hello of another", second.ask(hello), EBUSY);
        failed += expect("daemon is present", present(world));
    }
    failed += expect("daemon is gone", !present(world));
    failed += expect("hello of the next", second.ask(hello), 0);
    second.close();
    return failed + expect("it is gone, too", !present(world));
}

// A port is free a moment before the kernel tells that its socket is closed: the next daemon must
// not be taken for the one before.
int check_same_port(World& world)
{
    const Message hello = world.addressed(Message(SMCFS_CMD_DAEMON_HELLO));
    int failed = 0;
    for (int round = 0; round < kSamePortRounds && !failed; round++) {
        std::optional<Socket> first = Socket::with_port(kDaemonPort), second;
        if (!first)
            return expect("the port of the last round is free", false);
        failed += expect("hello", first->ask(hello), 0);
        std::thread closer([&] { first->close(); });
        while (!second)
            second = Socket::with_port(kDaemonPort);
        failed += expect("hello from the same port", second->ask(hello), 0);
        closer.join();
        failed += expect("the second is the daemon", present(world));
        second->close();
        failed += expect("and then gone", !present(world));
    }
    return failed;
}

int check_bind(World& world, Socket& daemon, const std::string& directory)
{
    auto result = std::async(std::launch::async, stat_errno, directory + "/wanted");
    std::optional<Received> ask = upcall(daemon, SMCFS_CMD_UPCALL_BIND);
    int failed = expect("UPCALL_BIND names the region", ask && ask->text(SMCFS_A_NODE) == kNode &&
                                                            ask->text(SMCFS_A_NAME) == "wanted");
    failed += expect("BIND_FAIL",
                     daemon.ask(world.addressed(World::peer(SMCFS_CMD_BIND_FAIL, kNode)
                                                    .text(SMCFS_A_NAME, "wanted")
                                                    .u32(SMCFS_A_ERRNO, ENOENT))),
                     0);
    failed += expect("stat of a name that is not exported is ENOENT",
                     soon(result) && result.get() == ENOENT);
    failed += expect_remembered(daemon, directory, "wanted", ENOENT);

    auto bound = std::async(std::launch::async, stat_errno, directory + "/bound");
    ask = upcall(daemon, SMCFS_CMD_UPCALL_BIND);
    failed += expect("UPCALL_BIND", ask.has_value());
    failed += expect("REGION_ATTACH as an answer", daemon.ask(world.attach("bound", 12345)), 0);
    return failed + expect("stat of a bound region", soon(bound) && bound.get() == 0);
}

// A process that looks at the name; it does nothing else, since threads of this one hold locks.
pid_t start_stat(const std::string& path)
{
    pid_t child = fork();
    if (child < 0)
        die("fork", errno);
    if (child == 0) {
        struct stat st;
        _exit(stat(path.c_str(), &st) ? errno : 0);
    }
    return child;
}

// Who is killed while it waits leaves the question, and the next one gets the answer.
int check_interrupted(World& world, Socket& daemon, const std::string& directory)
{
    pid_t child = start_stat(directory + "/interrupted");
    int failed = expect("UPCALL_BIND", upcall(daemon, SMCFS_CMD_UPCALL_BIND).has_value());
    int status = 0;
    kill(child, SIGKILL);
    failed += expect("who waits can be killed",
                     waitpid(child, &status, 0) == child && WIFSIGNALED(status));
    auto result = std::async(std::launch::async, stat_errno, directory + "/interrupted");
    failed += expect("the next one waits for the same answer", !soon(result, kSilentMs));
    failed += expect("REGION_ATTACH", daemon.ask(world.attach("interrupted")), 0);
    return failed + expect("and gets it", soon(result) && result.get() == 0);
}

// A daemon that does not read: what it was not even asked is asked when it does.
int check_full_queue(World& world, Socket& daemon, const std::string& directory)
{
    const std::string in_directory = directory + "/";
    std::string name;
    daemon.set_room(kLittleRoom);
    for (int i = 0; i < kUpcallsTooMany; i++) {
        name = "full-" + std::to_string(i);
        const std::string path = in_directory + name;
        Fd fd(open(path.c_str(), O_PATH | O_CLOEXEC)); // does not wait
    }
    int failed =
        expect("with a full queue nothing waits", stat_errno(in_directory + name) == ENOBUFS);
    int asked = 0;
    while (daemon.wait(0))
        asked++;
    daemon.set_room(Socket::kRoom);
    failed += expect("some upcalls had room", asked > 0 && asked < kUpcallsTooMany);
    return failed + expect_asked(world, daemon, directory, name);
}

// The kernel waits 15 s for an answer; that there was none is remembered as one.
int check_unanswered(Socket& daemon, const std::string& directory)
{
    auto result = std::async(std::launch::async, stat_errno, directory + "/unanswered");
    int failed = expect("UPCALL_BIND", upcall(daemon, SMCFS_CMD_UPCALL_BIND).has_value());
    failed += expect("without an answer the wait ends",
                     soon(result, kUnansweredMs) && result.get() == ETIMEDOUT);
    return failed + expect_remembered(daemon, directory, "unanswered", ETIMEDOUT);
}

Message list_result(const World& world, const Received& ask, const std::vector<Attr>& names)
{
    return world.addressed(Message(SMCFS_CMD_LIST_RESULT)
                               .u64(SMCFS_A_COOKIE, ask.number(SMCFS_A_COOKIE).value_or(0))
                               .u32(SMCFS_A_ERRNO, 0)
                               .nest(SMCFS_A_NAMES, names));
}

int check_list(World& world, Socket& daemon, const std::string& directory)
{
    auto listing = std::async(std::launch::async, list_directory, directory);
    std::optional<Received> ask = upcall(daemon, SMCFS_CMD_UPCALL_LIST);
    if (expect("UPCALL_LIST names the node", ask && ask->text(SMCFS_A_NODE) == kNode))
        return 1;
    const std::vector<Attr> names{attr_text(SMCFS_A_NAME, "one"),
                                  attr_text(SMCFS_A_NAME, "job/params")};
    int failed = expect("LIST_RESULT", daemon.ask(list_result(world, *ask, names)), 0);
    failed += expect("LIST_RESULT twice", daemon.ask(list_result(world, *ask, names)), ENOENT);
    failed += expect("the listing ends", soon(listing));
    const Names got = listing.get().names;
    for (const char* name : {"one", "job"})
        failed += expect(std::string("the listing has ") + name,
                         std::find(got.begin(), got.end(), name) != got.end());

    listing = std::async(std::launch::async, list_directory, directory);
    ask = upcall(daemon, SMCFS_CMD_UPCALL_LIST);
    if (expect("UPCALL_LIST again", ask.has_value()))
        return failed + 1;
    failed += expect("LIST_RESULT with a bad name",
                     daemon.ask(list_result(world, *ask, {attr_text(SMCFS_A_NAME, "..")})), EINVAL);
    failed += expect("whoever lists is told, and soon", soon(listing));
    return failed + expect("as an error", listing.get().error != 0);
}

// What waits for a daemon fails when it goes, and the next daemon's questions do not.
int check_departure(World& world, const std::string& directory)
{
    const Message hello = world.addressed(Message(SMCFS_CMD_DAEMON_HELLO));
    auto first = std::make_unique<Socket>();
    int failed = expect("hello", first->ask(hello), 0);
    auto bind = std::async(std::launch::async, stat_errno, directory + "/left-alone");
    failed += expect("UPCALL_BIND", upcall(*first, SMCFS_CMD_UPCALL_BIND).has_value());
    auto listing = std::async(std::launch::async, list_directory, directory);
    failed += expect("UPCALL_LIST", upcall(*first, SMCFS_CMD_UPCALL_LIST).has_value());
    first.reset();

    Socket second;
    failed += expect("hello of the next", second.ask(hello), 0);
    auto later = std::async(std::launch::async, stat_errno, directory + "/for-the-next");
    failed += expect("UPCALL_BIND of the next", upcall(second, SMCFS_CMD_UPCALL_BIND).has_value());
    failed += expect("bind fails with its daemon", soon(bind) && bind.get() != 0);
    failed += expect("listing fails with its daemon", soon(listing) && listing.get().error != 0);
    failed += expect("the next one's is still waited for", !soon(later, kSilentMs));
    failed += expect("and answered", second.ask(world.attach("for-the-next")), 0);
    failed += expect("with success", soon(later) && later.get() == 0);
    failed += expect_asked(world, second, directory, "left-alone");
    second.close();
    auto alone = std::async(std::launch::async, stat_errno, directory + "/nobody-there");
    failed += expect("without a daemon nothing waits", soon(alone) && alone.get() != 0);
    Socket third;
    failed += expect("hello of the last", third.ask(hello), 0);
    return failed + expect_asked(world, third, directory, "nobody-there");
}

int check_events(World& world)
{
    Socket listener;
    int failed = expect("joining the events", listener.join(world.events) == 0);
    failed += expect("attach", world.ask(world.attach("watched")), 0);
    std::optional<Received> event;
    do
        event = listener.wait(kUpcallMs);
    while (event && event->number(SMCFS_A_STATE) != SMCFS_REGION_ACTIVE);
    failed += expect("event of the region", event && event->cmd == SMCFS_CMD_EVENT_REGION &&
                                                event->text(SMCFS_A_NAME) == "watched" &&
                                                event->number(SMCFS_A_SESSION_ID) == kSession);
    failed +=
        expect("delete of the session",
               world.ask(Message(SMCFS_CMD_SESSION_DEL).u64(SMCFS_A_SESSION_ID, kSession)), 0);
    bool degraded = false, dead = false;
    while (!(degraded && dead) && (event = listener.wait(kUpcallMs))) {
        degraded |= event->cmd == SMCFS_CMD_EVENT_REGION &&
                    event->number(SMCFS_A_STATE) == SMCFS_REGION_DEGRADED;
        dead |= event->cmd == SMCFS_CMD_EVENT_SESSION &&
                event->number(SMCFS_A_STATE) == SMCFS_SESSION_DEAD;
    }
    failed += expect("event: the region lost its session", degraded);
    failed += expect("event: the session is dead", dead);
    world.clean(false);
    world.connect(kSession, kNode);
    return failed;
}

} // namespace

int check_daemon(World& world, const std::string& mount)
{
    const std::string directory = mount + "/" + kNode;
    int failed = check_hello(world) + check_same_port(world);
    {
        Socket daemon;
        failed += expect("hello", daemon.ask(world.addressed(Message(SMCFS_CMD_DAEMON_HELLO))), 0);
        failed += check_bind(world, daemon, directory);
        failed += check_interrupted(world, daemon, directory);
        failed += check_full_queue(world, daemon, directory);
        failed += check_unanswered(daemon, directory);
        failed += check_list(world, daemon, directory);
    }
    failed += check_departure(world, directory);
    failed += check_events(world);
    world.clean(true);
    return failed;
}

} // namespace smc::test
