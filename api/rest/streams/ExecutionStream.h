#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "api/http/Handler.h"
#include "api/rest/streams/ExecutionPieces.h"
#include "api/rest/streams/StreamedJson.h"
#include "api/rest/streams/Turnstile.h"
#include "controller/contract/Executions.h"

namespace hearth::rest {

/// Sends the output of one execution to one client as server-sent events, without a thread of its
/// own: it moves when the execution has news or the client has taken queued data, and stops while
/// more than Stream::kHighWater bytes wait. A tenant's first few streams are written inline, by the
/// threads that bring the output; the others, and all reads from the disk, take turns on the
/// threads of `answers`, because the agents' reader must not be held up. The execution does not
/// depend on its listeners. Thread-safe; lives until the stream has ended.
///
/// Events: `started`; `stdout` and `stderr` with `{"text"}`, or `{"base64"}` if the bytes are not
/// UTF-8; `result`; `error`; `exit`, always last, with the execution. The id of output is the
/// offset after its last byte, the id of a result is its place in the output, both plus the number
/// of results so far, so Last-Event-ID tells exactly what is missing, also after a restart of the
/// server. `droppedBytes` counts the lost bytes before a piece. A character that is cut by the end
/// of a piece is held back until its rest comes, the other channel writes, or the execution ends.
class ExecutionStream : public std::enable_shared_from_this<ExecutionStream> {
public:
    struct Options {
        /// The last id that the client has; nullopt: from the start, with `started`.
        std::optional<std::uint64_t> after;
        std::string trace_id;
        std::string origin{};  ///< put before the urls of artifacts
    };

    /// Begins; the rest happens in the callbacks of the two, except data on the disk and an `exit`
    /// with much output, which `answers` sends.
    static void start(std::shared_ptr<controller::Execution> execution,
                      std::shared_ptr<api::Stream> stream, Options options, StreamedJson& answers);

private:
    struct Key {};

public:
    ExecutionStream(Key key, std::shared_ptr<controller::Execution> execution,
                    std::shared_ptr<api::Stream> stream, Options options, StreamedJson& answers);

private:
    void begin();
    void pump();
    void step();
    void beginInline();
    /// From here on `answers_` moves it; a step does this last. Returns a function to report news.
    std::function<void()> handOver();
    /// The next piece, for `answers_`.
    Progress turn(std::string& out);
    void sendStarted();
    /// Sends one bounded piece. False if there is nothing yet.
    bool move(bool ended);
    /// Looks for the place of the client's last id. False while it is not known yet: after a
    /// restart of the server, output and results come back from the agent.
    bool find(bool ended);
    /// Sends the next piece. False if there is nothing yet; begins the end if `ended`.
    bool advance(bool ended);
    /// Sends to the client, or appends to the piece that is being made.
    void send(std::string bytes);
    /// How much output precedes the next result; nullopt if there is no result yet. Finding it
    /// means to read and parse a stored result, so the place is kept.
    std::optional<std::uint64_t> nextResult();
    void show(const controller::ResultPtr& result);
    void take(const controller::OutputChunk& chunk);
    void flush();
    void sendOutput(const std::string& bytes);
    /// Sends a piece of a result that is too long to be queued at once.
    void sendShown();
    void end();
    /// Its sandbox does not answer, though its time limit has passed: `problem` is the last event.
    void endUnanswered();
    void release();

    std::shared_ptr<controller::Execution> execution_;
    std::shared_ptr<api::Stream> stream_;
    Options options_;
    StreamedJson& answers_;
    std::shared_ptr<void> place_;         ///< the right to be written inline
    std::shared_ptr<void> subscription_;  ///< set in begin(), dropped in release()
    std::shared_ptr<void> reading_;       ///< likewise
    std::atomic<bool> begun_ = false;     ///< begin() has set all callbacks: they may be handed on

    Turnstile turnstile_;
    bool done_ = false;  ///< only inside a step of the turnstile
    // Used only inside a step, and by the thread of `answers_` once it is handed over.
    std::uint64_t offset_ = 0;                  ///< offset after the last byte read
    std::uint64_t sent_ = 0;                    ///< offset after the last byte sent
    std::size_t results_ = 0;                   ///< number read and sent
    std::optional<std::uint64_t> next_result_;  ///< found by nextResult()
    bool no_more_results_ = false;
    bool found_ = true;          ///< the place to begin is known
    std::uint64_t dropped_ = 0;  ///< lost before the next piece
    std::string held_;           ///< the beginning of a character
    int held_channel_ = 1;
    controller::ResultPtr shown_;  ///< a long result that is being sent
    std::size_t shown_at_ = 0;     ///< bytes of it already sent
    bool started_ = false;
    bool told_ = false;                        ///< the whole `exit` is sent
    std::string* out_ = nullptr;               ///< the piece that is being made
    std::unique_ptr<ExecutionPieces> ending_;  ///< the rest of a long `exit`
};

}  // namespace hearth::rest
