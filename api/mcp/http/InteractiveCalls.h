#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "api/mcp/http/MessageSink.h"
#include "api/mcp/server/PendingToolCall.h"
#include "base/Clock.h"
#include "base/Mutex.h"

namespace hearth::mcp {

/// Questions to clients that wait for an answer. Thread-safe.
class Questions {
public:
    /// Opens a question of a session and returns its id, unique among all questions.
    std::string open(const std::string& session);
    /// Waits for its answer; nullopt after `timeout`, or when `give_up` returns true (called again
    /// after each wake()). Closes the question.
    std::optional<Message> wait(const std::string& id, std::chrono::milliseconds timeout,
                                const std::function<bool()>& give_up);
    /// Takes a response that came in; false if it answers no question to this session.
    bool answer(const std::string& session, const Message& response);
    void wake();

private:
    struct Question {
        std::string session;
        std::optional<Message> answer;
    };
    Mutex mutex_;
    Condition changed_;
    std::map<std::string, Question> open_ HEARTH_GUARDED_BY(mutex_);
};

/// Runs calls that talk with their clients, each in a thread of its own. Thread-safe. Its
/// destructor cancels calls that still run and waits for them.
class InteractiveCalls {
public:
    InteractiveCalls() = default;
    InteractiveCalls(const InteractiveCalls&) = delete;
    InteractiveCalls& operator=(const InteractiveCalls&) = delete;
    ~InteractiveCalls();

    /// Starts a call, which answers on `sink`. Throws Error(Unavailable) if kMost calls run.
    void start(LiveReply reply, std::string session, std::shared_ptr<MessageSink> sink);
    /// See Questions::answer().
    bool answer(const std::string& session, const Message& response) {
        return questions_.answer(session, response);
    }

    static constexpr std::size_t kMost = 64;

private:
    struct Running {
        std::jthread thread;
        std::shared_ptr<std::atomic<bool>> done;
    };

    Questions questions_;
    std::atomic<bool> stopping_{false};
    Mutex mutex_;
    std::vector<Running> running_ HEARTH_GUARDED_BY(mutex_);
};

}  // namespace hearth::mcp
