// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// smc_guard() with real SIGBUS: of a page that is mapped past the end of its file. What ends a process, or
// changes its actions for good, happens in a child.
#include <smc/smc.hpp>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <functional>
#include <latch>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <catch2/catch.hpp>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/fd.hpp"

namespace {

const size_t kPageBytes = static_cast<size_t>(sysconf(_SC_PAGESIZE));

// A page that is there, and one that raises SIGBUS until the file has grown.
class HalfFile {
public:
    HalfFile() : fd_(memfd_create("guard_test", MFD_CLOEXEC))
    {
        REQUIRE(fd_);
        REQUIRE(ftruncate(fd_.get(), static_cast<off_t>(kPageBytes)) == 0);
        addr_ = mmap(nullptr, 2 * kPageBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd_.get(), 0);
        REQUIRE(addr_ != MAP_FAILED);
    }
    HalfFile(const HalfFile&) = delete;
    HalfFile& operator=(const HalfFile&) = delete;
    ~HalfFile() { munmap(addr_, 2 * kPageBytes); }

    [[nodiscard]] volatile int* good() const { return static_cast<volatile int*>(addr_); }
    [[nodiscard]] volatile int* bad() const { return good() + kPageBytes / sizeof(int); }
    // Async-signal-safe.
    void grow() const { (void)!ftruncate(fd_.get(), static_cast<off_t>(2 * kPageBytes)); }

private:
    smc::Fd fd_;
    void* addr_ = nullptr;
};

// smc_guard() of anything callable that returns int.
template <class F>
int guarded(F&& function, smc_fault* fault = nullptr)
{
    return smc_guard([](void* argument) -> int { return (*static_cast<F*>(argument))(); },
                     std::addressof(function), fault);
}

smc_fault no_fault()
{
    smc_fault fault{};
    fault.size = sizeof(fault);
    return fault;
}

// An action for the length of a test.
class Installed {
public:
    explicit Installed(const struct sigaction& action) { sigaction(SIGBUS, &action, &before_); }
    Installed(const Installed&) = delete;
    Installed& operator=(const Installed&) = delete;
    ~Installed() { sigaction(SIGBUS, &before_, nullptr); }

private:
    struct sigaction before_ {};
};

struct sigaction action_of(void (*handler)(int, siginfo_t*, void*), int flags = 0)
{
    struct sigaction action {};
    action.sa_sigaction = handler;
    action.sa_flags = SA_SIGINFO | flags;
    return action;
}

struct sigaction plain_action(void (*handler)(int), int flags = 0)
{
    struct sigaction action {};
    action.sa_handler = handler;
    action.sa_flags = flags;
    return action;
}

struct sigaction current_action()
{
    struct sigaction action {};
    sigaction(SIGBUS, nullptr, &action);
    return action;
}

// The C library sets a flag of its own (SA_RESTORER) in all that it installs, and shows it.
bool same(const struct sigaction& a, const struct sigaction& b)
{
    constexpr int kRestorer = 0x04000000;
    return a.sa_handler == b.sa_handler && (a.sa_flags | kRestorer) == (b.sa_flags | kRestorer) &&
           sigismember(&a.sa_mask, SIGUSR1) == sigismember(&b.sa_mask, SIGUSR1);
}

bool is_blocked(int signal)
{
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, nullptr, &mask);
    return sigismember(&mask, signal) == 1;
}

void block(int how, int signal)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, signal);
    pthread_sigmask(how, &set, nullptr);
}

// What the handlers below have seen; of one signal at a time.
struct Seen {
    volatile int count;
    void* volatile address;
    volatile int code;
    volatile bool sigbus_blocked;
    volatile bool sigusr1_blocked;
    void* volatile stack;
    const HalfFile* volatile mend; // to be grown, so that the access succeeds
} seen;

void note(int /*number*/, siginfo_t* info, void* /*context*/)
{
    seen.count = seen.count + 1;
    seen.address = info->si_addr;
    seen.code = info->si_code;
    seen.sigbus_blocked = is_blocked(SIGBUS);
    seen.sigusr1_blocked = is_blocked(SIGUSR1);
    int here = 0;
    seen.stack = &here;
    if (seen.mend)
        seen.mend->grow();
}

void note_plain(int /*number*/)
{
    seen.count = seen.count + 1;
    if (seen.mend)
        seen.mend->grow();
}

// A guard that another thread is in until the end of the scope.
class GuardElsewhere {
public:
    GuardElsewhere() { entered_.wait(); }
    GuardElsewhere(const GuardElsewhere&) = delete;
    GuardElsewhere& operator=(const GuardElsewhere&) = delete;
    ~GuardElsewhere() { leave(); }
    void leave()
    {
        if (!thread_.joinable())
            return;
        may_leave_.count_down();
        thread_.join();
    }

private:
    std::latch entered_{1};
    std::latch may_leave_{1};
    std::thread thread_{[this] {
        guarded([this] {
            entered_.count_down();
            may_leave_.wait();
            return 0;
        });
    }};
};

// Runs function in a child; its exit status, or minus the signal that ended it.
int in_child(const std::function<int()>& function)
{
    const pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        const rlimit no_core{};
        setrlimit(RLIMIT_CORE, &no_core);
        alarm(60); // what hangs fails
        _exit(function());
    }
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

} // namespace

TEST_CASE("a guard passes on what its body returns", "[guard]")
{
    const HalfFile file;
    smc_fault fault = no_fault();
    fault.code = 1;
    CHECK(guarded([&] { return *file.good() + 7; }, &fault) == 7);
    CHECK(fault.code == 0);
    CHECK(guarded([] { return -ENOENT; }) == -ENOENT);
}

TEST_CASE("a load or store that raises SIGBUS ends its guard with EIO and tells the address",
          "[guard]")
{
    const HalfFile file;
    for (const bool store : {false, true}) {
        CAPTURE(store);
        volatile int steps = 0;
        smc_fault fault = no_fault();
        const int result = guarded(
            [&] {
                steps = steps + 1;
                if (store)
                    file.bad()[3] = 1;
                else
                    (void)file.bad()[3];
                steps = steps + 1;
                return 0;
            },
            &fault);
        CHECK(result == -EIO);
        CHECK(steps == 1);
        CHECK(fault.address == const_cast<int*>(file.bad() + 3));
        CHECK(fault.code == BUS_ADRERR);
    }
    CHECK(guarded([&] { return *file.bad(); }) == -EIO); // no fault asked for
    file.grow();
    CHECK(guarded([&] { return *file.bad(); }) == 0);
}

TEST_CASE("guards check their arguments, and know fault structs that grew", "[guard]")
{
    smc_fault fault{};
    CHECK(smc_guard(nullptr, nullptr, nullptr) == -EINVAL);
    bool called = false;
    CHECK(guarded(
              [&] {
                  called = true;
                  return 0;
              },
              &fault) == -EINVAL);
    CHECK_FALSE(called);

    const HalfFile file;
    struct {
        smc_fault known{};
        uint64_t later = 1;
    } longer;
    longer.known.size = sizeof(longer);
    CHECK(guarded([&] { return *file.bad(); }, &longer.known) == -EIO);
    CHECK(longer.known.size == sizeof(longer));
    CHECK(longer.known.code == BUS_ADRERR);
    CHECK(longer.later == 0);
}

TEST_CASE("of nested guards the innermost ends, and the outer ones go on", "[guard]")
{
    const HalfFile file;
    volatile int inner = 0;
    volatile int innermost = 0;
    const int outer = guarded([&] {
        inner = guarded([&] {
            innermost = guarded([&] { return *file.bad(); });
            return 5;
        });
        return *file.bad();
    });
    CHECK(innermost == -EIO);
    CHECK(inner == 5);
    CHECK(outer == -EIO);
}

TEST_CASE("guards of several threads end each on their own", "[guard]")
{
    constexpr int kThreads = 8;
    constexpr int kRounds = 2000;
    const HalfFile file;
    const struct sigaction before = current_action();
    std::latch start{kThreads};
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    threads.reserve(kThreads);
    for (int i = 0; i < kThreads; i++) {
        threads.emplace_back([&, i] {
            start.arrive_and_wait();
            for (int round = 0; round < kRounds; round++) {
                smc_fault fault = no_fault();
                volatile int* const bad = file.bad() + i;
                const bool fails = (round + i) % 2 == 0;
                const int result = guarded([&] { return fails ? *bad : *file.good() + i; }, &fault);
                if (result != (fails ? -EIO : i) ||
                    fault.address != (fails ? const_cast<int*>(bad) : nullptr))
                    wrong++;
            }
        });
    }
    for (auto& thread : threads)
        thread.join();
    CHECK(wrong == 0);
    CHECK(same(before, current_action()));
}

TEST_CASE("an access outside of guards gets the program's handler as if there were none", "[guard]")
{
    struct sigaction action = action_of(note);
    sigaddset(&action.sa_mask, SIGUSR1);
    const Installed installed(action);
    const struct sigaction before = current_action();
    for (const bool elsewhere : {false, true}) {
        CAPTURE(elsewhere);
        const HalfFile file;
        std::unique_ptr<GuardElsewhere> guard;
        if (elsewhere) {
            guard = std::make_unique<GuardElsewhere>();
            CHECK_FALSE(same(before, current_action()));
        }
        seen = {};
        seen.mend = &file;
        CHECK(file.bad()[2] == 0);
        CHECK(seen.count == 1);
        CHECK(seen.address == const_cast<int*>(file.bad() + 2));
        CHECK(seen.code == BUS_ADRERR);
        CHECK(seen.sigbus_blocked);
        CHECK(seen.sigusr1_blocked);
        CHECK_FALSE(is_blocked(SIGBUS));
        CHECK_FALSE(is_blocked(SIGUSR1));
        guard.reset();
        CHECK(same(before, current_action()));
    }
}

TEST_CASE("handlers outside of guards have the flags that they were installed with", "[guard]")
{
    const HalfFile file;
    SECTION("without SA_SIGINFO")
    {
        const Installed installed(plain_action(note_plain));
        const GuardElsewhere guard;
        seen = {};
        seen.mend = &file;
        CHECK(*file.bad() == 0);
        CHECK(seen.count == 1);
    }
    SECTION("SA_NODEFER")
    {
        const Installed installed(action_of(note, SA_NODEFER));
        const GuardElsewhere guard;
        seen = {};
        CHECK(raise(SIGBUS) == 0);
        CHECK(seen.count == 1);
        CHECK_FALSE(seen.sigbus_blocked);
    }
    SECTION("SA_ONSTACK")
    {
        std::vector<char> memory(64UL * 1024);
        stack_t stack{};
        stack.ss_sp = memory.data();
        stack.ss_size = memory.size();
        stack_t before{};
        REQUIRE(sigaltstack(&stack, &before) == 0);
        {
            const Installed installed(action_of(note, SA_ONSTACK));
            const GuardElsewhere guard;
            seen = {};
            CHECK(raise(SIGBUS) == 0);
            CHECK(seen.count == 1);
            const auto* at = static_cast<char*>(seen.stack);
            CHECK((at >= memory.data() && at < memory.data() + memory.size()));
            // The way out of a guard leads from that stack, too, and more than once.
            for (int i = 0; i < 3; i++)
                CHECK(guarded([&] { return *file.bad(); }) == -EIO);
        }
        REQUIRE(sigaltstack(&before, nullptr) == 0);
    }
    SECTION("SA_RESETHAND")
    {
        CHECK(in_child([] {
                  const Installed installed(action_of(note, SA_RESETHAND));
                  const GuardElsewhere guard;
                  seen = {};
                  raise(SIGBUS);
                  if (seen.count != 1)
                      return 1;
                  raise(SIGBUS);
                  return 2;
              }) == -SIGBUS);
        CHECK(in_child([] {
                  const Installed installed(action_of(note, SA_RESETHAND));
                  {
                      const GuardElsewhere guard;
                      raise(SIGBUS);
                  }
                  return current_action().sa_handler == SIG_DFL ? 0 : 1;
              }) == 0);
        // A guard's own SIGBUS is no use of the handler.
        CHECK(in_child([&] {
                  const Installed installed(action_of(note, SA_RESETHAND));
                  const struct sigaction before = current_action();
                  if (guarded([&] { return *file.bad(); }) != -EIO)
                      return 1;
                  return same(before, current_action()) ? 0 : 2;
              }) == 0);
    }
}

TEST_CASE("an access outside of guards ends a process that has no handler", "[guard]")
{
    const HalfFile file;
    for (auto* const handler : {SIG_DFL, SIG_IGN}) {
        const Installed installed(plain_action(handler));
        CHECK(in_child([&] {
                  const GuardElsewhere guard;
                  return *file.bad();
              }) == -SIGBUS);
        CHECK(in_child([&] {
                  const GuardElsewhere guard;
                  std::thread([&] { (void)*file.bad(); }).join();
                  return 0;
              }) == -SIGBUS);
        CHECK(in_child([&] {
                  guarded([&] { return *file.bad(); });
                  return *file.bad();
              }) == -SIGBUS);
        // In a thread that the guarded one has started.
        CHECK(in_child([&] {
                  return guarded([&] {
                      std::thread([&] { (void)*file.bad(); }).join();
                      return 0;
                  });
              }) == -SIGBUS);
    }
}

TEST_CASE("a SIGBUS that was sent is not the guard's", "[guard]")
{
    SECTION("it gets to the handler, and the body goes on")
    {
        const Installed installed(action_of(note));
        seen = {};
        CHECK(guarded([] {
                  kill(getpid(), SIGBUS);
                  raise(SIGBUS);
                  return 3;
              }) == 3);
        CHECK(seen.count == 2);
        CHECK(seen.code == SI_TKILL);
    }
    SECTION("it ends the process")
    {
        const Installed installed(plain_action(SIG_DFL)); // sanitizers have handlers of their own
        for (const bool by_kill : {false, true}) {
            const auto send = [=] {
                return guarded([=] { return by_kill ? kill(getpid(), SIGBUS) : raise(SIGBUS); });
            };
            CHECK(in_child(send) == -SIGBUS);
            CHECK(in_child([=] {
                      std::thread(send).join();
                      return 0;
                  }) == -SIGBUS);
        }
    }
    SECTION("it is ignored, and guards go on")
    {
        const HalfFile file;
        const Installed installed(plain_action(SIG_IGN));
        CHECK(guarded([] {
                  raise(SIGBUS);
                  return 3;
              }) == 3);
        CHECK(guarded([&] {
                  raise(SIGBUS);
                  return *file.bad();
              }) == -EIO);
        CHECK(current_action().sa_handler == SIG_IGN);
    }
}

TEST_CASE("a guard that ends leaves the thread's signal mask as it was", "[guard]")
{
    const HalfFile file;
    block(SIG_BLOCK, SIGUSR1);
    CHECK(guarded([&] {
              block(SIG_UNBLOCK, SIGUSR1);
              block(SIG_BLOCK, SIGUSR2);
              return *file.bad();
          }) == -EIO);
    CHECK(is_blocked(SIGUSR1));
    CHECK_FALSE(is_blocked(SIGUSR2));
    CHECK_FALSE(is_blocked(SIGBUS));
    block(SIG_UNBLOCK, SIGUSR1);

    // What a body that returns has done to the mask is its own.
    CHECK(guarded([] {
              block(SIG_BLOCK, SIGUSR2);
              return 0;
          }) == 0);
    CHECK(is_blocked(SIGUSR2));
    block(SIG_UNBLOCK, SIGUSR2);
}

TEST_CASE("a thread that blocks SIGBUS is guarded, and blocks it afterwards", "[guard]")
{
    const HalfFile file;
    block(SIG_BLOCK, SIGBUS);
    CHECK(guarded([&] { return *file.bad(); }) == -EIO);
    CHECK(is_blocked(SIGBUS));
    CHECK(guarded([] { return is_blocked(SIGBUS) ? 1 : 0; }) == 0);
    CHECK(is_blocked(SIGBUS));
    block(SIG_UNBLOCK, SIGBUS);
}

TEST_CASE("an action that is installed while a guard is active stays", "[guard]")
{
    const HalfFile file;
    const Installed installed(plain_action(SIG_DFL));
    seen = {};
    CHECK(guarded([&] {
              const struct sigaction action = action_of(note);
              sigaction(SIGBUS, &action, nullptr);
              seen.mend = &file;
              return *file.bad();
          }) == 0);
    CHECK(seen.count == 1);
    CHECK(current_action().sa_sigaction == note);
    // The next guard is one again.
    const HalfFile other;
    CHECK(guarded([&] { return *other.bad(); }) == -EIO);
    CHECK(current_action().sa_sigaction == note);
}

namespace {

struct sigaction below_chain;

void chain(int number, siginfo_t* info, void* context)
{
    seen.count = seen.count + 1;
    below_chain.sa_sigaction(number, info, context);
}

void install_chain()
{
    const struct sigaction action = action_of(chain);
    sigaction(SIGBUS, &action, &below_chain);
}

} // namespace

TEST_CASE("a handler that calls the one that it replaced may be installed in a guard", "[guard]")
{
    const HalfFile file;
    const Installed none(plain_action(SIG_DFL));
    SECTION("guards work through it")
    {
        CHECK(in_child([&] {
                  return guarded([&] {
                      install_chain();
                      return *file.bad();
                  });
              }) == (-EIO & 0xff));
    }
    SECTION("it reaches the one before, also when the guard has ended")
    {
        const Installed installed(action_of(note));
        CHECK(in_child([&] {
                  seen = {};
                  seen.mend = &file;
                  guarded([] {
                      install_chain();
                      return 0;
                  });
                  (void)*file.bad();
                  return seen.count;
              }) == 2);
    }
    SECTION("and in a later guard ends in the default action, not in a circle")
    {
        CHECK(in_child([&] {
                  guarded([] {
                      install_chain();
                      return 0;
                  });
                  if (guarded([&] { return *file.bad(); }) != -EIO)
                      return 1;
                  const GuardElsewhere guard;
                  return *file.bad();
              }) == -SIGBUS);
    }
    SECTION("the guard's own may be put back when it is no longer needed")
    {
        CHECK(in_child([&] {
                  GuardElsewhere guard;
                  const struct sigaction ours = current_action();
                  guard.leave();
                  sigaction(SIGBUS, &ours, nullptr);
                  if (guarded([&] { return *file.bad(); }) != -EIO ||
                      current_action().sa_handler != SIG_DFL)
                      return 1;
                  sigaction(SIGBUS, &ours, nullptr);
                  return *file.bad();
              }) == -SIGBUS);
    }
}

TEST_CASE("the child of a guarded thread is guarded, and its parent goes on", "[guard]")
{
    const HalfFile file;
    const struct sigaction before = current_action();
    volatile int status = -1;
    const int result = guarded([&] {
        status = in_child([&] {
            const int inner = guarded([&] { return *file.bad(); });
            return inner == -EIO ? *file.bad() : 1; // does not come back here
        });
        return *file.bad();
    });
    // The child came back from the guard above, as its parent does below: it has to leave here.
    if (status == -1)
        _exit(result == -EIO && same(before, current_action()) ? 42 : 1);
    CHECK(status == 42);
    CHECK(result == -EIO);
    CHECK(same(before, current_action()));
}

TEST_CASE("a child has no guards of threads that it does not have", "[guard]")
{
    const HalfFile file;
    const struct sigaction before = current_action();
    const GuardElsewhere guard;
    CHECK(in_child([&] {
              if (!same(before, current_action()))
                  return 1;
              if (guarded([&] { return *file.bad(); }) != -EIO)
                  return 2;
              return same(before, current_action()) ? 0 : 3;
          }) == 0);
}

TEST_CASE("children of a process whose other threads enter and leave guards do not hang", "[guard]")
{
    const HalfFile file;
    std::atomic<bool> stop{false};
    std::thread busy([&] {
        while (!stop)
            guarded([&] { return *file.bad(); });
    });
    int wrong = 0;
    for (int i = 0; i < 50; i++)
        wrong +=
            in_child([&] { return guarded([&] { return *file.bad(); }) == -EIO ? 0 : 1; }) != 0;
    stop = true;
    busy.join();
    CHECK(wrong == 0);
}

TEST_CASE("smc::guard returns what its callable returns", "[guard]")
{
    const HalfFile file;
    CHECK(smc::guard([&] { return std::string("a string"); }) == "a string");
    CHECK(*smc::guard([] { return std::make_unique<int>(4); }) == 4);
    bool called = false;
    smc::guard([&] { called = true; });
    CHECK(called);
    std::error_code ec = std::make_error_code(std::errc::io_error);
    CHECK(smc::guard([&] { return *file.good() + 1L; }, ec) == 1);
    CHECK_FALSE(ec);
}

TEST_CASE("smc::guard tells of a SIGBUS by an exception or a code", "[guard]")
{
    const HalfFile file;
    try {
        (void)smc::guard([&] { return *file.bad(); });
        FAIL("no exception");
    } catch (const std::system_error& error) {
        CHECK(error.code() == std::errc::io_error);
        CHECK(error.code().category() == smc::error_category());
        CHECK(std::string(error.what()).find("smc_guard") != std::string::npos);
    }
    CHECK_THROWS_AS(smc::guard([&] { *file.bad() = 1; }), std::system_error);

    std::error_code ec;
    smc_fault fault{};
    CHECK(smc::guard([&] { return *file.bad() + 1; }, ec, &fault) == 0);
    CHECK(ec == std::errc::io_error);
    CHECK(fault.address == const_cast<int*>(file.bad()));
    smc::guard([&] { *file.bad() = 1; }, ec);
    CHECK(ec == std::errc::io_error);
}

TEST_CASE("smc::guard lets exceptions through, and the guard has ended then", "[guard]")
{
    const struct sigaction before = current_action();
    const auto throws = []() -> int { throw std::runtime_error("of the callable"); };
    CHECK_THROWS_WITH(smc::guard(throws), "of the callable");
    std::error_code ec;
    CHECK_THROWS_WITH(smc::guard(throws, ec), "of the callable");
    CHECK_FALSE(ec);
    CHECK_THROWS_AS(smc::guard([] { throw 5; }), int);
    CHECK(same(before, current_action()));
    // Through an outer guard, too.
    CHECK_THROWS_WITH(smc::guard([&] { return smc::guard(throws); }), "of the callable");
}
