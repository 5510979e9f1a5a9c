// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// Owns: smc_guard(): the process's action for SIGBUS while a guard is active, and the way back out of a
// body whose load or store failed.
//
//     smc_guard -> body -> load -> SIGBUS -> on_sigbus -+-> the innermost guard of this thread
//                                                       +-> else the action that was found (pass_on)
//
// Contexts: any thread; on_sigbus() and what it calls run in a signal handler, take no lock and allocate
// nothing.
// Locking: actions_mutex, a leaf; held over fork() too, so that a child never finds it taken.
// Lifetime: a frame lives on the stack of its smc_guard(). Actions that were found are never freed: a
// handler on another thread may be looking at one.
// Failure: a guard that cannot be set up does not call its body.
#include "internal.hpp"

#include <atomic>
#include <csetjmp>
#include <csignal>
#include <cstring>
#include <memory>
#include <utility>

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/mutex.hpp"

namespace {

// An active guard.
struct Frame {
    sigjmp_buf resume;
    Frame* outer;  // of the same thread
    sigset_t mask; // of the thread, at entry
    void* address; // of the fault
    int code;      // of the fault, si_code
};

// An action for SIGBUS that a guard found. Immutable.
struct Action {
    struct sigaction action {};
    const Action* next = nullptr;
};

constinit const Action kDefaultAction; // SIG_DFL is 0

// volatile: the handler reads it on the same thread. initial-exec: it must not allocate to do so.
constinit thread_local Frame* volatile innermost __attribute__((tls_model("initial-exec"))) =
    nullptr;

smc::Mutex actions_mutex;
size_t guarded_threads SMC_GUARDED_BY(actions_mutex) = 0;
const Action* actions SMC_GUARDED_BY(actions_mutex) = nullptr; // all that were ever found

// What a SIGBUS that is no guard's is passed on to. Written with the mutex held, and by pass_on();
// release with acquire there: an Action is complete before a handler looks at it.
constinit std::atomic<const Action*> found{&kDefaultAction};

// Whether the thread itself ran into it. Not with kill(2), nor when memory elsewhere was found broken.
bool is_fault(const siginfo_t& info)
{
    return info.si_code > 0 && info.si_code != BUS_MCEERR_AO;
}

// The kernel clears what a siginfo does not use, so that a mark there is of this delivery.
bool mark_passed_on(siginfo_t& info)
{
    unsigned char& mark = reinterpret_cast<unsigned char*>(&info)[sizeof(info) - 1];
    return std::exchange(mark, 1) != 0;
}

// The default action: SIGBUS is blocked in its handler, or ends the process right here. Returning alone
// would not do: the load might succeed the next time.
void die(siginfo_t& info)
{
    sigaction(SIGBUS, &kDefaultAction.action, nullptr);
    // With the address for whoever reads the core, where the kernel lets a thread do that.
    if (syscall(SYS_rt_tgsigqueueinfo, getpid(), gettid(), SIGBUS, &info) != 0)
        tgkill(getpid(), gettid(), SIGBUS);
}

// What the kernel would have done without a guard. Mask and stack are those of the action: ours was
// installed with them.
void pass_on(int number, siginfo_t& info, void* context)
{
    const Action* to = found.load(std::memory_order_acquire);
    while ((to->action.sa_flags & SA_RESETHAND) != 0 &&
           !found.compare_exchange_weak(to, &kDefaultAction, std::memory_order_acquire)) {}
    const struct sigaction& action = to->action;
    if (action.sa_handler == SIG_IGN && !is_fault(info))
        return;
    // Twice: a handler that was installed over ours, and then found, passes back to us.
    if (action.sa_handler == SIG_DFL || action.sa_handler == SIG_IGN || mark_passed_on(info))
        die(info);
    else if ((action.sa_flags & SA_SIGINFO) != 0)
        action.sa_sigaction(number, &info, context);
    else
        action.sa_handler(number);
}

void on_sigbus(int number, siginfo_t* info, void* context)
{
    Frame* frame = innermost;
    if (!frame || !is_fault(*info)) {
        pass_on(number, *info, context);
        return;
    }
    frame->address = info->si_addr;
    frame->code = info->si_code;
    siglongjmp(frame->resume, 1);
}

bool is_ours(const struct sigaction& action)
{
    return (action.sa_flags & SA_SIGINFO) != 0 && action.sa_sigaction == on_sigbus;
}

bool is_handler(const struct sigaction& action)
{
    return action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN;
}

#define SMC_REQUIRES_ACTIONS SMC_THREAD_ATTRIBUTE(requires_capability(actions_mutex))

// The one Action for what was found; programs have few. Throws bad_alloc.
const Action* remember(const struct sigaction& action) SMC_REQUIRES_ACTIONS
{
    for (const Action* known = actions; known; known = known->next) {
        if (known->action.sa_handler == action.sa_handler &&
            known->action.sa_flags == action.sa_flags &&
            std::memcmp(&known->action.sa_mask, &action.sa_mask, sizeof(action.sa_mask)) == 0)
            return known;
    }
    auto fresh = std::make_unique<Action>();
    fresh->action = action;
    fresh->next = actions;
    return actions = fresh.release();
}

void install() SMC_REQUIRES_ACTIONS
{
    struct sigaction current {};
    sigaction(SIGBUS, nullptr, &current);
    if (is_ours(current))
        return;                                                // put back by who had replaced it
    found.store(remember(current), std::memory_order_release); // before it can be asked for
    struct sigaction ours {};
    ours.sa_flags = SA_RESTART;
    if (is_handler(current)) {
        ours.sa_mask = current.sa_mask;
        ours.sa_flags = current.sa_flags & ~static_cast<int>(SA_RESETHAND);
    }
    ours.sa_flags |= SA_SIGINFO;
    ours.sa_sigaction = on_sigbus;
    sigaction(SIGBUS, &ours, nullptr);
}

void uninstall() SMC_REQUIRES_ACTIONS
{
    struct sigaction current {};
    sigaction(SIGBUS, nullptr, &current);
    if (is_ours(current)) // else the program has chosen another one
        sigaction(SIGBUS, &found.load(std::memory_order_relaxed)->action, nullptr);
}

// --- fork: in the child are the guards of its one thread -------------------------------------

void before_fork() SMC_THREAD_ATTRIBUTE(acquire_capability(actions_mutex))
{
    actions_mutex.lock();
}

void after_fork_in_parent() SMC_THREAD_ATTRIBUTE(release_capability(actions_mutex))
{
    actions_mutex.unlock();
}

void after_fork_in_child() SMC_THREAD_ATTRIBUTE(release_capability(actions_mutex))
{
    const size_t before = guarded_threads;
    guarded_threads = innermost ? 1 : 0;
    if (before != 0 && guarded_threads == 0)
        uninstall();
    actions_mutex.unlock();
}

const int kForkError = pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);

// --- one guard --------------------------------------------------------------------------------

sigset_t only_sigbus()
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGBUS);
    return set;
}

int enter(Frame& frame)
{
    if (!frame.outer) {
        const smc::MutexLock lock(actions_mutex);
        if (guarded_threads == 0)
            install();
        guarded_threads++;
    }
    // A fault while SIGBUS is blocked ends the process, whatever the handler.
    const sigset_t sigbus = only_sigbus();
    pthread_sigmask(SIG_UNBLOCK, &sigbus, &frame.mask);
    return 0;
}

void leave(const Frame& frame, bool faulted)
{
    if (faulted) {
        pthread_sigmask(SIG_SETMASK, &frame.mask, nullptr);
    } else if (sigismember(&frame.mask, SIGBUS) == 1) {
        const sigset_t sigbus = only_sigbus();
        pthread_sigmask(SIG_BLOCK, &sigbus, nullptr);
    }
    if (!frame.outer) {
        const smc::MutexLock lock(actions_mutex);
        if (--guarded_threads == 0)
            uninstall();
    }
}

// Return: whether the body returned. noexcept: what throws past a guard would leave it active for ever.
// A function of its own, as siglongjmp() leaves variables of the one that called sigsetjmp() undefined.
bool call(Frame& frame, int (*body)(void*), void* argument, int& result) noexcept
{
    if (sigsetjmp(frame.resume, 0) != 0) {
        innermost = frame.outer;
        return false;
    }
    innermost = &frame;
    result = body(argument);
    innermost = frame.outer;
    return true;
}

// A caller with a longer struct is newer than this library: what we do not know is 0.
void tell(smc_fault* fault, void* address, int code)
{
    if (!fault)
        return;
    const size_t caller_bytes = fault->size;
    std::memset(fault, 0, caller_bytes);
    fault->size = caller_bytes;
    fault->address = address;
    fault->code = code;
}

} // namespace

int smc_guard(int (*body)(void*), void* argument, smc_fault* fault)
{
    if (!body || (fault && fault->size < sizeof(*fault)))
        return -EINVAL;
    if (kForkError != 0)
        return -kForkError;
    Frame frame;
    frame.outer = innermost;
    if (const int err = smc::abi::guarded([&] { return enter(frame); }); err != 0)
        return err;
    int result = -EIO;
    const bool returned = call(frame, body, argument, result);
    leave(frame, !returned);
    tell(fault, returned ? nullptr : frame.address, returned ? 0 : frame.code);
    return result;
}
