#pragma once

#include <condition_variable>
#include <mutex>
#include <shared_mutex>
#include <stop_token>
#include <utility>

// Clang compares every use of a member with the locks that are held (-Wthread-safety,
// tests/lint/locks); for other compilers these macros are empty.
#if defined(__clang__)
#define HEARTH_THREAD_ATTRIBUTE(x) __attribute__((x))
#else
#define HEARTH_THREAD_ATTRIBUTE(x)
#endif

/// Marks a member that is read and written only while this mutex is held.
#define HEARTH_GUARDED_BY(mutex) HEARTH_THREAD_ATTRIBUTE(guarded_by(mutex))
/// Marks a pointer whose target is read and written only while this mutex is held.
#define HEARTH_PT_GUARDED_BY(mutex) HEARTH_THREAD_ATTRIBUTE(pt_guarded_by(mutex))
/// Marks a function or a lambda whose callers hold these mutexes.
#define HEARTH_REQUIRES(...) HEARTH_THREAD_ATTRIBUTE(requires_capability(__VA_ARGS__))
/// The same for a mutex that is shared among readers.
#define HEARTH_REQUIRES_SHARED(...) HEARTH_THREAD_ATTRIBUTE(requires_shared_capability(__VA_ARGS__))
/// Marks a function that takes these mutexes itself: its callers do not hold them.
#define HEARTH_EXCLUDES(...) HEARTH_THREAD_ATTRIBUTE(locks_excluded(__VA_ARGS__))
/// Marks a function that returns a reference to a mutex: callers may name the mutex by the call.
#define HEARTH_RETURNS_MUTEX(mutex) HEARTH_THREAD_ATTRIBUTE(lock_returned(mutex))
/// Marks a function that the checker cannot follow. A comment gives the reason and what guards it.
#define HEARTH_NO_THREAD_SAFETY_ANALYSIS HEARTH_THREAD_ATTRIBUTE(no_thread_safety_analysis)

#define HEARTH_CAPABILITY(name) HEARTH_THREAD_ATTRIBUTE(capability(name))
#define HEARTH_SCOPED_CAPABILITY HEARTH_THREAD_ATTRIBUTE(scoped_lockable)
#define HEARTH_ACQUIRE(...) HEARTH_THREAD_ATTRIBUTE(acquire_capability(__VA_ARGS__))
#define HEARTH_ACQUIRE_SHARED(...) HEARTH_THREAD_ATTRIBUTE(acquire_shared_capability(__VA_ARGS__))
#define HEARTH_RELEASE(...) HEARTH_THREAD_ATTRIBUTE(release_capability(__VA_ARGS__))
#define HEARTH_RELEASE_GENERIC(...) HEARTH_THREAD_ATTRIBUTE(release_generic_capability(__VA_ARGS__))

namespace hearth {

/// A std::mutex that clang's checker knows. Only the scopes below lock it.
class HEARTH_CAPABILITY("mutex") Mutex {
public:
    Mutex() = default;
    Mutex(const Mutex&) = delete;
    Mutex& operator=(const Mutex&) = delete;
    void lock() HEARTH_ACQUIRE() { mutex_.lock(); }
    void unlock() HEARTH_RELEASE() { mutex_.unlock(); }

private:
    template <class Variable>
    friend class ConditionOn;
    std::mutex mutex_;
};

/// Holds a mutex to the end of the scope.
class HEARTH_SCOPED_CAPABILITY [[nodiscard]] MutexLock {
public:
    explicit MutexLock(Mutex& mutex) HEARTH_ACQUIRE(mutex) : mutex_(mutex) { mutex_.lock(); }
    ~MutexLock() HEARTH_RELEASE() { mutex_.unlock(); }
    MutexLock(const MutexLock&) = delete;
    MutexLock& operator=(const MutexLock&) = delete;

private:
    Mutex& mutex_;
};

/// The same for a scope that unlocks the mutex and locks it again in between.
class HEARTH_SCOPED_CAPABILITY [[nodiscard]] UniqueMutexLock {
public:
    explicit UniqueMutexLock(Mutex& mutex) HEARTH_ACQUIRE(mutex) : mutex_(mutex) { mutex_.lock(); }
    ~UniqueMutexLock() HEARTH_RELEASE() {
        if (held_) mutex_.unlock();
    }
    UniqueMutexLock(const UniqueMutexLock&) = delete;
    UniqueMutexLock& operator=(const UniqueMutexLock&) = delete;
    void lock() HEARTH_ACQUIRE() {
        mutex_.lock();
        held_ = true;
    }
    void unlock() HEARTH_RELEASE() {
        held_ = false;
        mutex_.unlock();
    }

private:
    Mutex& mutex_;
    bool held_ = true;
};

/// Unlocks a mutex that is held and locks it again at the end of the scope, also when an exception
/// leaves the scope: for functions whose callers hold the mutex.
class HEARTH_SCOPED_CAPABILITY [[nodiscard]] MutexUnlock {
public:
    explicit MutexUnlock(Mutex& mutex) HEARTH_RELEASE(mutex) : mutex_(mutex) { mutex_.unlock(); }
    ~MutexUnlock() HEARTH_RELEASE() { mutex_.lock(); }
    MutexUnlock(const MutexUnlock&) = delete;
    MutexUnlock& operator=(const MutexUnlock&) = delete;

private:
    Mutex& mutex_;
};

/// A std::shared_mutex that clang's checker knows.
class HEARTH_CAPABILITY("mutex") SharedMutex {
public:
    SharedMutex() = default;
    SharedMutex(const SharedMutex&) = delete;
    SharedMutex& operator=(const SharedMutex&) = delete;
    void lock() HEARTH_ACQUIRE() { mutex_.lock(); }
    void unlock() HEARTH_RELEASE() { mutex_.unlock(); }
    void lockShared() HEARTH_ACQUIRE_SHARED() { mutex_.lock_shared(); }
    void unlockShared() HEARTH_RELEASE_GENERIC() { mutex_.unlock_shared(); }

private:
    std::shared_mutex mutex_;
};

/// Holds a shared mutex exclusively, to the end of the scope.
class HEARTH_SCOPED_CAPABILITY [[nodiscard]] WriterLock {
public:
    explicit WriterLock(SharedMutex& mutex) HEARTH_ACQUIRE(mutex) : mutex_(mutex) { mutex_.lock(); }
    ~WriterLock() HEARTH_RELEASE() { mutex_.unlock(); }
    WriterLock(const WriterLock&) = delete;
    WriterLock& operator=(const WriterLock&) = delete;

private:
    SharedMutex& mutex_;
};

/// Holds a shared mutex together with other readers, to the end of the scope.
class HEARTH_SCOPED_CAPABILITY [[nodiscard]] ReaderLock {
public:
    explicit ReaderLock(SharedMutex& mutex) HEARTH_ACQUIRE_SHARED(mutex) : mutex_(mutex) {
        mutex_.lockShared();
    }
    ~ReaderLock() HEARTH_RELEASE_GENERIC() { mutex_.unlockShared(); }
    ReaderLock(const ReaderLock&) = delete;
    ReaderLock& operator=(const ReaderLock&) = delete;

private:
    SharedMutex& mutex_;
};

/// A condition variable whose waits name the mutex that is held. A lambda that runs under the mutex
/// declares it: `[this]() HEARTH_REQUIRES(mutex_) { return done_; }`.
template <class Variable>
class ConditionOn {
public:
    void notifyOne() noexcept { variable_.notify_one(); }
    void notifyAll() noexcept { variable_.notify_all(); }

    /// May wake spuriously.
    void wait(Mutex& mutex) HEARTH_REQUIRES(mutex) {
        Held held(mutex);
        variable_.wait(held.lock);
    }
    template <class Ready>
    void wait(Mutex& mutex, Ready ready) HEARTH_REQUIRES(mutex) {
        Held held(mutex);
        variable_.wait(held.lock, std::move(ready));
    }
    /// May wake earlier, spuriously.
    template <class Time>
    void waitUntil(Mutex& mutex, const Time& deadline) HEARTH_REQUIRES(mutex) {
        Held held(mutex);
        variable_.wait_until(held.lock, deadline);
    }
    template <class Duration>
    void waitFor(Mutex& mutex, const Duration& most) HEARTH_REQUIRES(mutex) {
        Held held(mutex);
        variable_.wait_for(held.lock, most);
    }
    /// These return the last result of `ready`.
    template <class Time, class Ready>
    bool waitUntil(Mutex& mutex, const Time& deadline, Ready ready) HEARTH_REQUIRES(mutex) {
        Held held(mutex);
        return variable_.wait_until(held.lock, deadline, std::move(ready));
    }
    template <class Duration, class Ready>
    bool waitFor(Mutex& mutex, const Duration& most, Ready ready) HEARTH_REQUIRES(mutex) {
        Held held(mutex);
        return variable_.wait_for(held.lock, most, std::move(ready));
    }

protected:
    /// The mutex in the form that the standard's variables need. The caller's scope still owns it.
    struct Held {
        explicit Held(Mutex& mutex) : lock(mutex.mutex_, std::adopt_lock) {}
        ~Held() { lock.release(); }
        Held(const Held&) = delete;
        Held& operator=(const Held&) = delete;
        std::unique_lock<std::mutex> lock;
    };

    Variable variable_;
};

/// The condition variable for waits that no stop_token ends: it is the cheaper one.
using Condition = ConditionOn<std::condition_variable>;

/// A condition variable whose waits also end when a stop is requested. Then they return the last
/// result of `ready`.
class StoppableCondition : public ConditionOn<std::condition_variable_any> {
public:
    using ConditionOn::wait;
    using ConditionOn::waitFor;
    using ConditionOn::waitUntil;

    template <class Ready>
    bool wait(Mutex& mutex, std::stop_token stop, Ready ready) HEARTH_REQUIRES(mutex) {
        Held held(mutex);
        return variable_.wait(held.lock, std::move(stop), std::move(ready));
    }
    template <class Time, class Ready>
    bool waitUntil(Mutex& mutex, std::stop_token stop, const Time& deadline, Ready ready)
        HEARTH_REQUIRES(mutex) {
        Held held(mutex);
        return variable_.wait_until(held.lock, std::move(stop), deadline, std::move(ready));
    }
    template <class Duration, class Ready>
    bool waitFor(Mutex& mutex, std::stop_token stop, const Duration& most, Ready ready)
        HEARTH_REQUIRES(mutex) {
        Held held(mutex);
        return variable_.wait_for(held.lock, std::move(stop), most, std::move(ready));
    }
};

}  // namespace hearth
