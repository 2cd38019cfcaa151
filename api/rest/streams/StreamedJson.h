#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "api/http/Handler.h"
#include "base/Clock.h"
#include "base/task/Executor.h"
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
/// queues. Each is a task of its own threads, because neither the front's thread nor a worker may
/// be held up for so long; a tenant holds at most two of the four. Thread-safe; must outlive the
/// front.
class StreamedJson {
public:
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

    TenantPlaces inline_places_{kInline, kInlineOfTenant};
    const SystemClock clock_;
    Executor executor_{clock_, kThreads, "long-answers"};
};

}  // namespace hearth::rest
