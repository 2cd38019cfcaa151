#pragma once

#include <concepts>
#include <coroutine>
#include <exception>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include "base/task/Waitable.h"

namespace hearth {

template <typename T = void>
class Task;

/// Where the tasks that await one another go on, and what they wait for. The outermost one has it.
struct TaskPlace {
    std::coroutine_handle<> next;
    WaitablePtr wait;
};

// NOLINTBEGIN(readability-identifier-naming): the language's names

/// The part of a task's promise that does not depend on its result.
class TaskPromise {
public:
    std::suspend_always initial_suspend() const noexcept { return {}; }
    auto final_suspend() const noexcept {
        struct ToCaller {
            TaskPlace* place;
            std::coroutine_handle<> caller;
            bool await_ready() const noexcept { return false; }
            void await_suspend(std::coroutine_handle<> /*ended*/) const noexcept {
                place->next = caller;
            }
            void await_resume() const noexcept {}
        };
        return ToCaller{place_, caller_};
    }
    void unhandled_exception() noexcept { failure_ = std::current_exception(); }

    /// Awaits another task. It has a name: g++ 12 has had faults with temporaries in this place.
    template <typename U>
    auto await_transform(Task<U>& task) noexcept {
        struct Awaiter {
            Task<U>& task;
            TaskPlace* place;
            bool await_ready() const noexcept { return task.ended(); }
            /// Runs it from here, not in its caller's place: without optimisation each such hop
            /// would stay on the stack, and a loop has many.
            bool await_suspend(std::coroutine_handle<> caller) const {
                task.handle_.promise().place_ = place;
                task.handle_.promise().caller_ = caller;
                task.handle_.resume();
                if (!task.ended()) return true;
                place->next = {};
                return false;
            }
            U await_resume() const { return task.result(); }
        };
        return Awaiter{task, place_};
    }
    template <typename U>
    void await_transform(Task<U>&& task) = delete;

    /// Waits, unless it is ready. It has a name, for the same reason.
    template <std::derived_from<Waitable> W>
    auto await_transform(std::shared_ptr<W>& wait) noexcept {
        struct Awaiter {
            std::shared_ptr<W>& wait;
            TaskPlace* place;
            bool await_ready() const { return wait->ready(); }
            void await_suspend(std::coroutine_handle<> task) const noexcept {
                place->next = task;
                place->wait = wait;
            }
            void await_resume() const noexcept {}
        };
        return Awaiter{wait, place_};
    }

protected:
    template <typename U>
    friend class Task;

    void rethrow() const {
        if (failure_) std::rethrow_exception(failure_);
    }

    TaskPlace own_;
    TaskPlace* place_ = &own_;
    std::coroutine_handle<> caller_;
    std::exception_ptr failure_;
};

template <typename T>
class TaskPromiseOf final : public TaskPromise {
public:
    Task<T> get_return_object() noexcept;
    template <typename U>
    void return_value(U&& value) {
        value_.emplace(std::forward<U>(value));
    }
    T take() {
        rethrow();
        return std::move(*value_);
    }

private:
    std::optional<T> value_;
};

template <>
class TaskPromiseOf<void> final : public TaskPromise {
public:
    Task<void> get_return_object() noexcept;
    void return_void() const noexcept {}
    void take() const { rethrow(); }
};

// NOLINTEND(readability-identifier-naming)

/// Work that may wait, as a coroutine: it awaits other tasks and Waitables, and holds no thread
/// meanwhile. It starts with the first run() and always goes on from there or from the task that
/// awaits it: by one thread at a time, whichever. Destroying it cancels it: the destructors of its
/// frames give back what they hold. Short calls block as anywhere.
///
/// A coroutine's parameters are values, or outlive the task; a coroutine is no lambda that captures
/// something, for the captures die before it does. What is awaited has a name.
template <typename T>
class [[nodiscard]] Task {
public:
    using promise_type = TaskPromiseOf<T>;  // NOLINT(readability-identifier-naming): the language's

    Task(Task&& other) noexcept : handle_(std::exchange(other.handle_, {})) {}
    Task& operator=(Task&& other) noexcept {
        std::swap(handle_, other.handle_);
        return *this;
    }
    Task(const Task&) = delete;
    Task& operator=(const Task&) = delete;
    ~Task() {
        if (handle_) handle_.destroy();
    }

    /// Goes on until it waits or has ended; true if it has ended. Only for the outermost task, and
    /// once the wait() of the last run is over.
    bool run() {
        TaskPlace& place = handle_.promise().own_;
        if (!place.next && !place.wait) place.next = handle_;
        place.wait.reset();
        while (place.next && !place.wait) std::exchange(place.next, {}).resume();
        return ended();
    }
    bool ended() const { return handle_.done(); }
    /// The thing that it waits for; null before the first run and after the end.
    const WaitablePtr& wait() const { return handle_.promise().own_.wait; }
    /// The result of a task that has ended, once. Throws what has ended it.
    T result() { return handle_.promise().take(); }

private:
    friend class TaskPromise;
    friend promise_type;
    explicit Task(std::coroutine_handle<promise_type> handle) noexcept : handle_(handle) {}

    std::coroutine_handle<promise_type> handle_;
};

template <typename T>
Task<T> TaskPromiseOf<T>::get_return_object() noexcept {
    return Task<T>(std::coroutine_handle<TaskPromiseOf>::from_promise(*this));
}
inline Task<void> TaskPromiseOf<void>::get_return_object() noexcept {
    return Task<void>(std::coroutine_handle<TaskPromiseOf>::from_promise(*this));
}

}  // namespace hearth
