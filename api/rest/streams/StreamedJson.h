#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "api/http/Handler.h"
#include "base/Mutex.h"
#include "base/tenants/FairLine.h"
#include "base/tenants/TenantPlaces.h"

namespace hearth::rest {

/// Appends the next piece of an answer, some 100 KiB at most and perhaps nothing; false after the
/// last piece. May read the disk. If it throws, the answer is cut off.
using PieceSource = std::function<bool(std::string& out)>;
/// More can be made at once, more comes only after news, or this was all.
enum class Progress : std::uint8_t { More, Waits, Last };
/// Like a PieceSource, for an answer that is still growing.
using LiveSource = std::function<Progress(std::string& out)>;

/// Streams answers that are too long to hold: each is made piece by piece, and only when the client
/// has taken most of the earlier pieces, so that an unread answer costs no more than its stream
/// queues. Its own threads make them in turn, by tenant and then by answer, because neither the
/// front's thread nor a worker may be held up for so long. A tenant holds at most two of the four,
/// so its slow sources do not delay others; only one thread at a time makes an answer. Thread-safe;
/// must outlive the front.
class StreamedJson {
public:
    StreamedJson();
    /// Releases answers under way.
    ~StreamedJson();
    StreamedJson(const StreamedJson&) = delete;
    StreamedJson& operator=(const StreamedJson&) = delete;

    /// Sends all that `source` makes, then ends the stream. Takes over the stream's callbacks.
    void send(std::shared_ptr<api::Stream> stream, PieceSource source);
    /// The same for a live source. The returned function reports news, from any thread; it does not
    /// keep the answer alive.
    std::function<void()> follow(std::shared_ptr<api::Stream> stream, LiveSource source);
    /// Lets a stream be written inline, by the thread that brings the output, which is fastest.
    /// Null if the tenant has a few already: the others must follow(), to not hold up that thread.
    std::shared_ptr<void> inlinePlace(const std::string& tenant) {
        return inline_places_.take(tenant);
    }

    /// Streams the output of `source` as JSON.
    api::Response stream(PieceSource source, int status = 200);
    /// The same, but sent at once and with its length if it is short.
    api::Response respond(PieceSource source, int status = 200);

private:
    static constexpr std::size_t kThreads = 4;
    static constexpr std::size_t kInline = 64;
    static constexpr std::size_t kInlineOfTenant = 4;

    /// Waits for its client; for its turn; has its turn; has it and wants another one; is done.
    enum class State : std::uint8_t { Idle, Due, Running, RunningAgain, Over };
    struct Answer;
    /// A thread's turn with an answer.
    struct Turn {
        std::shared_ptr<Answer> answer;
        std::shared_ptr<void> place;  ///< the tenant's place among the threads
    };
    /// The part that the streams' callbacks use; it outlives this object as long as they need
    /// it.
    struct Inbox {
        Mutex mutex;
        StoppableCondition changed;
        FairLine<std::shared_ptr<Answer>> due HEARTH_GUARDED_BY(mutex);
        bool closed HEARTH_GUARDED_BY(mutex) = false;
        TenantPlaces places{kThreads, kThreads - 1};  ///< taken while the mutex is held

        /// Requests a turn for the answer; repeated calls before the turn count once.
        void ask(const std::shared_ptr<Answer>& answer);
        /// Its stream has ended: releases its source at once, or after the turn under way.
        void end(const std::shared_ptr<Answer>& answer);
        /// The next turn whose tenant may have it now.
        bool next(Turn& turn) HEARTH_REQUIRES(mutex);
        /// The turn has ended; `next` is the result of make().
        void done(Turn& turn, State next);

    private:
        void line(const std::shared_ptr<Answer>& answer) HEARTH_REQUIRES(mutex);
    };

    void loop(const std::stop_token& stop);
    /// Makes some pieces of one answer, for a short time. Due if it wants another turn, Idle if its
    /// client must read first or news must come.
    static State make(Answer& answer);

    const std::shared_ptr<Inbox> inbox_ = std::make_shared<Inbox>();
    TenantPlaces inline_places_{kInline, kInlineOfTenant};
    std::vector<std::jthread> threads_;
};

}  // namespace hearth::rest
