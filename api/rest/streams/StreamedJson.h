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

/// Appends the next piece of an answer, some 100 KiB at most and perhaps nothing; false once that
/// was all. May read the disk. Throws: then the answer is cut off.
using PieceSource = std::function<bool(std::string& out)>;
/// There may be more at once, there is more only after news, or that was all.
enum class Progress : std::uint8_t { More, Waits, Last };
/// As a PieceSource, of something that is still being made.
using LiveSource = std::function<Progress(std::string& out)>;

/// Streams answers that are too long to hold: each is made piece by piece, and only when the client
/// has taken most of the earlier pieces, so that an unread answer costs no more than its stream
/// queues. Threads of its own make them in turn, by tenant and then by answer, because neither the
/// front's thread nor a worker may be held up for so long. A tenant holds two of the four at most,
/// so its slow sources do not delay others; one answer is made by one thread at a time.
/// Thread-safe; must outlive the front.
class StreamedJson {
public:
    StreamedJson();
    /// Answers under way are let go.
    ~StreamedJson();
    StreamedJson(const StreamedJson&) = delete;
    StreamedJson& operator=(const StreamedJson&) = delete;

    /// Sends all that `source` makes, then ends the stream. Takes over the stream's callbacks.
    void send(std::shared_ptr<api::Stream> stream, PieceSource source);
    /// The same of a live source. The returned function reports news, on any thread; it does not
    /// keep the answer.
    std::function<void()> follow(std::shared_ptr<api::Stream> stream, LiveSource source);
    /// Lets a stream be written inline, by the thread that brings the output, which is fastest.
    /// Null once a tenant has a few of them: the others must follow(), to not hold up that thread.
    std::shared_ptr<void> inlinePlace(const std::string& tenant) {
        return inline_places_.take(tenant);
    }

    /// The output of `source`, as JSON that is streamed.
    api::Response stream(PieceSource source, int status = 200);
    /// The same, but at once and with its length if it turns out to be short.
    api::Response respond(PieceSource source, int status = 200);

private:
    static constexpr std::size_t kThreads = 4;
    static constexpr std::size_t kInline = 64;
    static constexpr std::size_t kInlineOfTenant = 4;

    /// Waits for its client, for its turn, has its turn, has it and wants another one, or is done.
    enum class State : std::uint8_t { Idle, Due, Running, RunningAgain, Over };
    struct Answer;
    /// A thread's turn with an answer.
    struct Turn {
        std::shared_ptr<Answer> answer;
        std::shared_ptr<void> place;  ///< its tenant's, among the threads
    };
    /// The part that the streams' callbacks reach; it outlives this object for as long as they need
    /// it.
    struct Inbox {
        Mutex mutex;
        StoppableCondition changed;
        FairLine<std::shared_ptr<Answer>> due HEARTH_GUARDED_BY(mutex);
        bool closed HEARTH_GUARDED_BY(mutex) = false;
        TenantPlaces places{kThreads, kThreads - 1};  ///< taken while the mutex is held

        /// It wants a turn; once, as calls meanwhile ask for the same.
        void ask(const std::shared_ptr<Answer>& answer);
        /// Its stream has ended: lets its source go at once, or with the turn under way.
        void end(const std::shared_ptr<Answer>& answer);
        /// The next turn that its tenant may have now.
        bool next(Turn& turn) HEARTH_REQUIRES(mutex);
        /// The turn is over; `next`: as make() says.
        void done(Turn& turn, State next);

    private:
        void line(const std::shared_ptr<Answer>& answer) HEARTH_REQUIRES(mutex);
    };

    void loop(const std::stop_token& stop);
    /// Some pieces of one answer, and no more than a moment. Due if it wants another turn, Idle if
    /// its client must read first or news must come.
    static State make(Answer& answer);

    const std::shared_ptr<Inbox> inbox_ = std::make_shared<Inbox>();
    TenantPlaces inline_places_{kInline, kInlineOfTenant};
    std::vector<std::jthread> threads_;
};

}  // namespace hearth::rest
