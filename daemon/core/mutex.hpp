// SPDX-License-Identifier: MIT OR GPL-2.0
// Copyright (c) 2026 The SMC authors
//
// A mutex that clang's analysis of locks understands (-Wthread-safety, in scripts/lint): state names
// what protects it by SMC_GUARDED_BY, and an access without the lock does not pass.
#pragma once

#include <mutex>

#ifdef __clang__
#define SMC_THREAD_ATTRIBUTE(attribute) __attribute__((attribute))
#else
#define SMC_THREAD_ATTRIBUTE(attribute)
#endif
#define SMC_GUARDED_BY(mutex) SMC_THREAD_ATTRIBUTE(guarded_by(mutex))

namespace smc {

class SMC_THREAD_ATTRIBUTE(capability("mutex")) Mutex {
public:
    void lock() SMC_THREAD_ATTRIBUTE(acquire_capability()) { mutex_.lock(); }
    void unlock() SMC_THREAD_ATTRIBUTE(release_capability()) { mutex_.unlock(); }

private:
    std::mutex mutex_;
};

// Holds a mutex to the end of the scope; may let go of it in between.
class SMC_THREAD_ATTRIBUTE(scoped_lockable) MutexLock {
public:
    explicit MutexLock(Mutex& mutex) SMC_THREAD_ATTRIBUTE(acquire_capability(mutex)) : mutex_(mutex)
    {
        mutex_.lock();
    }
    ~MutexLock() SMC_THREAD_ATTRIBUTE(release_capability())
    {
        if (held_)
            mutex_.unlock();
    }
    MutexLock(const MutexLock&) = delete;
    MutexLock& operator=(const MutexLock&) = delete;

    void lock() SMC_THREAD_ATTRIBUTE(acquire_capability())
    {
        mutex_.lock();
        held_ = true;
    }
    void unlock() SMC_THREAD_ATTRIBUTE(release_capability())
    {
        held_ = false;
        mutex_.unlock();
    }

private:
    Mutex& mutex_;
    bool held_ = true;
};

} // namespace smc
