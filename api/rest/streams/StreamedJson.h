#pragma once

#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "api/http/Handler.h"
#include "base/Mutex.h"
#include "base/tenants/FairLine.h"

namespace hearth::rest {

/// Appends the next piece of an answer, some 100 KiB at most and perhaps nothing; false once that
/// was all. May read the disk. Throws: then the answer is cut off.
using PieceSource = std::function<bool(std::string& out)>;

/// Streams answers that are too long to hold: each is made piece by piece, and only when the client
/// has taken most of the earlier pieces, so that an unread answer costs no more than its stream
/// queues. One thread makes all of them in turn, by tenant and then by answer, because neither the
/// front's thread nor a worker may be held up for so long. Thread-safe; must outlive the front.
class StreamedJson {
public:
    StreamedJson();
    /// Answers under way are let go.
    ~StreamedJson();
    StreamedJson(const StreamedJson&) = delete;
    StreamedJson& operator=(const StreamedJson&) = delete;

    /// Sends all that `source` makes, then ends the stream. Takes over the stream's callbacks.
    void send(std::shared_ptr<api::Stream> stream, PieceSource source);

    /// The output of `source`, as JSON that is streamed.
    api::Response stream(PieceSource source, int status = 200);
    /// The same, but at once and with its length if it turns out to be short.
    api::Response respond(PieceSource source, int status = 200);

private:
    struct Answer;
    /// The part that the streams' callbacks reach; it outlives this object for as long as they need
    /// it.
    struct Inbox {
        Mutex mutex;
        StoppableCondition changed;
        FairLine<std::shared_ptr<Answer>> due HEARTH_GUARDED_BY(mutex);
        bool closed HEARTH_GUARDED_BY(mutex) = false;

        void add(std::shared_ptr<Answer> answer);
    };

    void loop(const std::stop_token& stop);
    /// Some pieces of one answer, and no more than a moment; true if it wants another turn.
    static bool turn(Answer& answer);

    const std::shared_ptr<Inbox> inbox_ = std::make_shared<Inbox>();
    std::jthread thread_;
};

}  // namespace hearth::rest
