#include "api/rest/streams/StreamedJson.h"

#include <chrono>
#include <exception>
#include <utility>

namespace hearth::rest {
namespace {

/// The limits of one answer's turn, before another answer has its turn.
constexpr int kPiecesInTurn = 8;
constexpr auto kTurn = std::chrono::milliseconds(5);
/// An answer up to about this size is sent whole, with its length.
constexpr std::size_t kShort = 128U << 10U;

/// Makes some pieces of an answer, for a short time. Waits if its client must read first.
Progress make(api::Stream& stream, const LiveSource& source) {
    const auto over = std::chrono::steady_clock::now() + kTurn;
    Progress progress = Progress::More;
    for (int i = 0; i < kPiecesInTurn && progress == Progress::More; ++i) {
        if (i > 0 && std::chrono::steady_clock::now() >= over) break;
        if (stream.closed()) return Progress::Last;
        if (stream.pending() > api::Stream::kHighWater) return Progress::Waits;
        std::string piece;
        progress = source(piece);
        if (!piece.empty()) stream.send(std::move(piece));
    }
    return progress;
}

// NOLINTBEGIN(performance-unnecessary-value-param): the frame keeps them
Task<> carry(std::shared_ptr<api::Stream> stream, LiveSource source, std::shared_ptr<Signal> news) {
    // NOLINTEND(performance-unnecessary-value-param)
    try {
        while (true) {
            news->clear();
            const Progress progress = make(*stream, source);
            if (progress == Progress::Last) break;
            WaitablePtr next = itsTurn();
            if (progress == Progress::Waits) next = news;
            co_await next;
        }
        stream->finish();
    } catch (const std::exception&) {  // the top of this task: its client sees the failure
        stream->cut();
    }
}

}  // namespace

void StreamedJson::send(std::shared_ptr<api::Stream> stream, PieceSource source) {
    follow(std::move(stream), [source = std::move(source)](std::string& out) {
        return source(out) ? Progress::More : Progress::Last;
    });
}

// NOLINTNEXTLINE(performance-unnecessary-value-param): the task and the stream keep it
std::function<void()> StreamedJson::follow(std::shared_ptr<api::Stream> stream, LiveSource source) {
    const auto news = std::make_shared<Signal>();
    std::function<void()> wake = [news] { news->set(); };
    stream->onDrained(wake);
    const std::string tenant = stream->tenant();
    // The stream holds the task until the stream ends, the task holds the stream until done.
    std::shared_ptr<void> task = executor_.start(tenant, carry(stream, std::move(source), news));
    stream->onClosed([task = std::move(task)]() mutable { task.reset(); });
    return wake;
}

api::Response StreamedJson::stream(PieceSource source, int status) {
    api::Response response;
    response.status = status;
    response.headers.add("Content-Type", "application/json");
    response.body = api::StreamStarter(
        [this, source = std::move(source)](std::shared_ptr<api::Stream> stream) mutable {
            send(std::move(stream), [source = std::move(source)](std::string& out) {
                if (source(out)) return true;
                out += '\n';
                return false;
            });
        });
    return response;
}

api::Response StreamedJson::respond(PieceSource source, int status) {
    std::string begun;
    while (begun.size() <= kShort) {
        if (source(begun)) continue;
        api::Response response;
        response.status = status;
        response.headers.add("Content-Type", "application/json");
        response.body = std::move(begun) + "\n";
        return response;
    }
    return stream(
        [begun = std::move(begun), source = std::move(source)](std::string& out) mutable {
            if (begun.empty()) return source(out);
            out.append(std::exchange(begun, {}));
            return true;
        },
        status);
}

}  // namespace hearth::rest
