#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "api/mcp/http/MessageSink.h"
#include "api/mcp/protocol/Conversation.h"
#include "api/mcp/server/ToolCall.h"
#include "base/Clock.h"
#include "base/Mutex.h"

namespace hearth::mcp {

/// A question to a client, over when the answer has come or its time has passed. Thread-safe.
class Question final : public Waitable {
public:
    Question(std::string session, TimePoint until) : session_(std::move(session)), until_(until) {}
    const std::string& session() const { return session_; }
    std::optional<Message> answer() const;
    void answered(const Message& response);

    bool ready() const override { return come_.ready(); }
    TimePoint until() const override { return until_; }
    std::shared_ptr<void> subscribe(std::function<void()> wake) override {
        return come_.subscribe(std::move(wake));
    }

private:
    const std::string session_;
    const TimePoint until_;
    Signal come_;
    mutable Mutex mutex_;
    std::optional<Message> answer_ HEARTH_GUARDED_BY(mutex_);
};

/// The questions that wait for an answer. Thread-safe.
class Questions {
public:
    /// Adds a question, which is open while the caller has it. Returns its id, unique among all.
    std::string open(const std::shared_ptr<Question>& question);
    /// Takes a response that came in; false if it answers no question to this session.
    bool answer(const std::string& session, const Message& response);

private:
    Mutex mutex_;
    std::map<std::string, std::weak_ptr<Question>> open_ HEARTH_GUARDED_BY(mutex_);
};

/// The conversation of one call on its stream.
class Talk final : public Conversation {
public:
    /// `questions` and `clock` must outlive this object.
    Talk(const ToolCall& call, std::string session, std::shared_ptr<MessageSink> sink,
         Questions& questions, const Clock& clock);

    void progress(double done, double total) override;
    void log(const std::string& level, const Json& data) override;
    Task<Json> ask(std::string method, Json params) override;
    void hangUp() override { sink_->hangUp(); }

private:
    const Json progress_token_;
    const std::optional<int> log_severity_;
    const bool modern_;
    const std::string session_;
    const std::shared_ptr<MessageSink> sink_;
    Questions& questions_;
    const Clock& clock_;
};

}  // namespace hearth::mcp
