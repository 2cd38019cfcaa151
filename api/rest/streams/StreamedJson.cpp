#include "api/rest/streams/StreamedJson.h"

#include <pthread.h>

#include <atomic>
#include <chrono>
#include <exception>
#include <utility>

namespace hearth::rest {
namespace {

/// Of one answer before it is another one's turn.
constexpr int kPiecesInTurn = 8;
constexpr auto kTurn = std::chrono::milliseconds(5);
/// An answer that is no longer is sent whole, with its length.
constexpr std::size_t kShort = 128U << 10U;

}  // namespace

struct StreamedJson::Answer {
    std::shared_ptr<api::Stream> stream;
    PieceSource source;
    bool done = false;              ///< of the thread only
    std::atomic<bool> asked{true};  ///< stands in the inbox

    /// Once: calls meanwhile ask for the same.
    static void ask(const std::shared_ptr<Inbox>& inbox, const std::weak_ptr<Answer>& which) {
        std::shared_ptr<Answer> answer = which.lock();
        if (answer && !answer->asked.exchange(true)) inbox->add(std::move(answer));
    }
};

void StreamedJson::Inbox::add(std::shared_ptr<Answer> answer) {
    const MutexLock lock(mutex);
    if (closed) return;
    const std::string tenant = answer->stream->tenant();
    due.push(tenant, std::move(answer));
    changed.notifyOne();
}

StreamedJson::StreamedJson() : thread_([this](const std::stop_token& stop) { loop(stop); }) {
    ::pthread_setname_np(thread_.native_handle(), "long-answers");
}

StreamedJson::~StreamedJson() {
    thread_.request_stop();
    thread_.join();
    FairLine<std::shared_ptr<Answer>> left;
    const MutexLock lock(inbox_->mutex);
    inbox_->closed = true;
    std::swap(left, inbox_->due);
}

void StreamedJson::send(std::shared_ptr<api::Stream> stream, PieceSource source) {
    const auto answer = std::make_shared<Answer>();
    answer->stream = std::move(stream);
    answer->source = std::move(source);
    const std::weak_ptr<Answer> weak = answer;
    // The stream holds the answer until it has ended, and the answer the stream until it is done.
    answer->stream->onDrained([inbox = inbox_, weak] { Answer::ask(inbox, weak); });
    answer->stream->onClosed([inbox = inbox_, answer] { Answer::ask(inbox, answer); });
    inbox_->add(answer);
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

void StreamedJson::loop(const std::stop_token& stop) {
    while (true) {
        std::shared_ptr<Answer> answer;
        {
            const MutexLock lock(inbox_->mutex);
            if (!inbox_->changed.wait(inbox_->mutex, stop, [this]() HEARTH_REQUIRES(inbox_->mutex) {
                    return !inbox_->due.empty();
                }))
                return;
            if (stop.stop_requested()) return;
            answer = inbox_->due.pop();
        }
        answer->asked = false;
        // The top of this thread: what fails costs its own answer, and the client sees that.
        try {
            if (turn(*answer)) Answer::ask(inbox_, answer);
        } catch (const std::exception&) {
            answer->done = true;
            answer->source = {};
            answer->stream->cut();
        }
    }
}

bool StreamedJson::turn(Answer& answer) {
    if (answer.done) return false;
    bool more = true;
    const auto over = std::chrono::steady_clock::now() + kTurn;
    for (int i = 0; i < kPiecesInTurn && more && !answer.stream->closed() &&
                    (i == 0 || std::chrono::steady_clock::now() < over);
         ++i) {
        if (answer.stream->pending() > api::Stream::kHighWater) return false;  // onDrained asks
        std::string piece;
        more = answer.source(piece);
        if (!piece.empty()) answer.stream->send(std::move(piece));
    }
    if (more && !answer.stream->closed()) return true;
    answer.done = true;
    answer.source = {};
    answer.stream->finish();
    return false;
}

}  // namespace hearth::rest
