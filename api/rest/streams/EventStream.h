#pragma once

#include <memory>

#include "api/http/Handler.h"
#include "api/rest/streams/Turnstile.h"
#include "controller/contract/Events.h"

namespace hearth::rest {

/// Follows the events that one principal may see, as server-sent events named by their type, with
/// their id. Holds no thread and pauses while the client is slow, as ExecutionStream does. Ends
/// only with the client or the server. `events` must outlive the stream.
class EventStream : public std::enable_shared_from_this<EventStream> {
public:
    /// The stream begins after `query.since`.
    static void start(controller::Events& events, controller::Principal who,
                      controller::EventQuery query, std::shared_ptr<api::Stream> stream);

private:
    struct Key {};

public:
    EventStream(Key key, controller::Events& events, controller::Principal who,
                controller::EventQuery query, std::shared_ptr<api::Stream> stream);

private:
    void begin();
    void pump();
    void step();

    controller::Events& events_;
    controller::Principal who_;
    std::shared_ptr<api::Stream> stream_;
    std::shared_ptr<void> subscription_;
    Turnstile turnstile_;
    controller::EventQuery query_;  ///< advances; used only inside a step
};

}  // namespace hearth::rest
