#include "api/rest/streams/StreamedJson.h"

#include <pthread.h>

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

}  // namespace

struct StreamedJson::Answer {
    Answer(std::shared_ptr<api::Stream> to, LiveSource from)
        : stream(std::move(to)), source(std::move(from)) {}

    const std::shared_ptr<api::Stream> stream;
    // Both change under the inbox's mutex, which the checker cannot name here. While a thread makes
    // the answer, the source belongs to that thread.
    LiveSource source;
    State state = State::Idle;
};

void StreamedJson::Inbox::ask(const std::shared_ptr<Answer>& answer) {
    const MutexLock lock(mutex);
    if (answer->state == State::Running) answer->state = State::RunningAgain;
    if (answer->state == State::Idle) line(answer);
}

void StreamedJson::Inbox::end(const std::shared_ptr<Answer>& answer) {
    LiveSource gone;  // ends after the lock
    const MutexLock lock(mutex);
    const State before = std::exchange(answer->state, State::Over);
    if (before == State::Due) due.erase(answer->stream->tenant(), answer);
    if (before == State::Due || before == State::Idle) gone.swap(answer->source);
}

bool StreamedJson::Inbox::next(Turn& turn) {
    auto answer = due.popIf([&](const std::string& tenant) {
        turn.place = places.take(tenant);
        return turn.place != nullptr;
    });
    if (!answer) return false;
    turn.answer = std::move(*answer);
    turn.answer->state = State::Running;
    return true;
}

void StreamedJson::Inbox::done(Turn& turn, State next) {
    LiveSource gone;  // ends after the lock
    const MutexLock lock(mutex);
    turn.place.reset();
    Answer& answer = *turn.answer;
    if (next == State::Over || answer.state == State::Over) {
        answer.state = State::Over;
        gone.swap(answer.source);
    } else if (next == State::Due || answer.state == State::RunningAgain) {
        line(turn.answer);
    } else {
        answer.state = State::Idle;
    }
}

void StreamedJson::Inbox::line(const std::shared_ptr<Answer>& answer) {
    answer->state = State::Due;
    if (closed) return;
    due.push(answer->stream->tenant(), answer);
    changed.notifyOne();
}

StreamedJson::StreamedJson() {
    for (std::size_t i = 0; i < kThreads; ++i) {
        threads_.emplace_back([this](const std::stop_token& stop) { loop(stop); });
        ::pthread_setname_np(threads_.back().native_handle(), "long-answers");
    }
}

StreamedJson::~StreamedJson() {
    for (std::jthread& thread : threads_) thread.request_stop();
    threads_.clear();
    FairLine<std::shared_ptr<Answer>> left;
    const MutexLock lock(inbox_->mutex);
    inbox_->closed = true;
    std::swap(left, inbox_->due);
}

void StreamedJson::send(std::shared_ptr<api::Stream> stream, PieceSource source) {
    follow(std::move(stream), [source = std::move(source)](std::string& out) {
        return source(out) ? Progress::More : Progress::Last;
    });
}

std::function<void()> StreamedJson::follow(std::shared_ptr<api::Stream> stream, LiveSource source) {
    const auto answer = std::make_shared<Answer>(std::move(stream), std::move(source));
    const auto wake = [inbox = inbox_, weak = std::weak_ptr<Answer>(answer)] {
        if (const std::shared_ptr<Answer> same = weak.lock()) inbox->ask(same);
    };
    // The stream holds the answer until the stream ends, the answer holds the stream until done.
    answer->stream->onDrained(wake);
    answer->stream->onClosed([inbox = inbox_, answer] { inbox->end(answer); });
    inbox_->ask(answer);
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

void StreamedJson::loop(const std::stop_token& stop) {
    while (true) {
        Turn turn;
        {
            const MutexLock lock(inbox_->mutex);
            inbox_->changed.wait(inbox_->mutex, stop, [&]() HEARTH_REQUIRES(inbox_->mutex) {
                return inbox_->next(turn);
            });
        }
        if (stop.stop_requested() || !turn.answer) return;
        State next = State::Over;
        // The top of this thread: a failure costs only its own answer, and the client sees it.
        try {
            next = make(*turn.answer);
        } catch (const std::exception&) {
            turn.answer->stream->cut();
        }
        inbox_->done(turn, next);
    }
}

StreamedJson::State StreamedJson::make(Answer& answer) {
    Progress progress = Progress::More;
    const auto over = std::chrono::steady_clock::now() + kTurn;
    for (int i = 0; i < kPiecesInTurn && progress == Progress::More && !answer.stream->closed() &&
                    (i == 0 || std::chrono::steady_clock::now() < over);
         ++i) {
        if (answer.stream->pending() > api::Stream::kHighWater)
            return State::Idle;  // onDrained asks
        std::string piece;
        progress = answer.source(piece);
        if (!piece.empty()) answer.stream->send(std::move(piece));
    }
    if (progress != Progress::Last && !answer.stream->closed()) {
        return progress == Progress::Waits ? State::Idle : State::Due;
    }
    answer.stream->finish();
    return State::Over;
}

}  // namespace hearth::rest
