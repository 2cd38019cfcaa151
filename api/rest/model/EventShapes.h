#pragma once

#include <string>
#include <vector>

#include "api/rest/schema/Schema.h"

namespace hearth::rest {

/// The events of one kind of stream, each a Schema with `id`, `event` and `data`.
struct EventShapes {
    std::string name;  ///< the name of their union in the document
    std::vector<Schema> events;
};

/// Events of a started or followed execution (streams/ExecutionStream, streams/ClaimStreams).
EventShapes executionEvents();
/// Events of GET /v1/events.
EventShapes systemEvents();
/// Events of GET /v1/logs; `line` is a line of the server's log.
EventShapes logEvents(Schema line);

}  // namespace hearth::rest
