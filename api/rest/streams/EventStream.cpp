#include "api/rest/streams/EventStream.h"

#include <exception>
#include <utility>

#include "api/rest/model/Answers.h"
#include "api/rest/streams/Sse.h"

namespace hearth::rest {

void EventStream::start(controller::Events& events, controller::Principal who,
                        controller::EventQuery query, std::shared_ptr<api::Stream> stream) {
    std::make_shared<EventStream>(Key{}, events, std::move(who), std::move(query),
                                  std::move(stream))
        ->begin();
}

EventStream::EventStream(Key, controller::Events& events, controller::Principal who,
                         controller::EventQuery query, std::shared_ptr<api::Stream> stream)
    : events_(events), who_(std::move(who)), stream_(std::move(stream)), query_(std::move(query)) {}

void EventStream::begin() {
    const std::weak_ptr<EventStream> weak = weak_from_this();
    const auto move = [weak] {
        if (const std::shared_ptr<EventStream> self = weak.lock()) self->pump();
    };
    stream_->onDrained(move);
    subscription_ = events_.subscribe(move);
    pump();
    const auto keeper = std::make_shared<std::shared_ptr<EventStream>>(shared_from_this());
    stream_->onClosed([keeper] {
        if (const std::shared_ptr<EventStream> self = std::exchange(*keeper, nullptr)) {
            const std::shared_ptr<void> ended = std::move(self->subscription_);
        }
    });
}

void EventStream::pump() {
    turnstile_.pass([this] {
        try {  // the top of a callback in a foreign thread: a failure ends only this stream
            step();
        } catch (const std::exception&) {
            stream_->finish();
        }
    });
}

void EventStream::step() {
    while (!stream_->closed() && stream_->pending() <= api::Stream::kHighWater) {
        const std::vector<controller::Event> events = events_.list(who_, query_);
        for (const controller::Event& event : events) {
            query_.since = event.id;
            stream_->send(sseEvent(event.type, event.id, jsonOf(event)));
        }
        if (events.size() < query_.limit) return;
    }
}

}  // namespace hearth::rest
