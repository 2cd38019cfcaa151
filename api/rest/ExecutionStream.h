#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "api/http/Handler.h"
#include "api/rest/LongAnswers.h"
#include "api/rest/Turnstile.h"
#include "controller/Executions.h"

namespace hearth::rest {

/// Carries the output of one execution to one client as server-sent events, without a thread of its
/// own: it moves whenever the execution has something new or the client has taken what was queued,
/// and stops while more than Stream::kHighWater bytes wait for the client. The execution goes on
/// whether anybody listens or not. Thread-safe; lives until the stream has ended.
///
/// Events: `started`; `stdout` and `stderr` with `{"text"}`, or `{"base64"}` where the bytes are
/// not UTF-8; `result`; `error`; `exit`, always last, with the execution. The id of a piece of
/// output is the offset behind its last byte and that of a result its place in the output, both
/// plus the number of results so far, so Last-Event-ID names exactly what is still missing, also
/// after a restart of the server. `droppedBytes` in a piece says that so many bytes before it were
/// not kept. A character that is cut by the end of a piece is held back until its rest comes, the
/// other channel speaks, or the execution ends.
class ExecutionStream : public std::enable_shared_from_this<ExecutionStream> {
public:
    struct Options {
        /// The last id that the client has; nullopt: from the start, with `started`.
        std::optional<std::uint64_t> after;
        std::string trace_id;
        std::string origin{};  ///< before the urls of artifacts
    };

    /// Begins; everything else happens in the callbacks of the two, but an `exit` with much output,
    /// which `answers` carry.
    static void start(std::shared_ptr<controller::Execution> execution,
                      std::shared_ptr<api::Stream> stream, Options options, LongAnswers& answers);

private:
    struct Key {};

public:
    ExecutionStream(Key key, std::shared_ptr<controller::Execution> execution,
                    std::shared_ptr<api::Stream> stream, Options options, LongAnswers& answers);

private:
    void begin();
    void pump();
    void step();
    /// Finds the place that the client's last id names. False while it is not known yet: after a
    /// restart of the server output and results come back from the agent.
    bool find();
    /// Sends what comes next. False if there is nothing yet; the end is begun if `ended`.
    bool advance(bool ended);
    void show(const controller::ResultPtr& result);
    void take(const controller::OutputChunk& chunk);
    void flush();
    void sendOutput(const std::string& bytes);
    /// A piece of a result that is too long to be queued at once.
    void sendShown();
    void end();
    void release();

    std::shared_ptr<controller::Execution> execution_;
    std::shared_ptr<api::Stream> stream_;
    Options options_;
    LongAnswers& answers_;
    std::shared_ptr<void> subscription_;  ///< set in begin(), dropped in release()
    std::atomic<bool> begun_ = false;     ///< begin() has set all callbacks: they may be handed on

    // Only inside a step of the turnstile.
    Turnstile turnstile_;
    std::uint64_t offset_ = 0;   ///< behind the last byte read
    std::uint64_t sent_ = 0;     ///< behind the last byte sent
    std::size_t results_ = 0;    ///< read and sent
    bool found_ = true;          ///< the place to begin is known
    std::uint64_t dropped_ = 0;  ///< before the next piece to be sent
    std::string held_;           ///< the beginning of a character
    int held_channel_ = 1;
    controller::ResultPtr shown_;  ///< a long result that is being sent
    std::size_t shown_at_ = 0;     ///< what of it has been sent
    bool started_ = false;
    bool done_ = false;
};

}  // namespace hearth::rest
