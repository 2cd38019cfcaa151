#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace hearth::http {

/// One event of a text/event-stream.
struct SseEvent {
    std::string id;    ///< the last id seen, also of an earlier event
    std::string type;  ///< "message" if the server named none
    std::string data;  ///< lines joined by '\n'
};

/// Cuts a text/event-stream, given in pieces of any size, into events. Skips comments. Not
/// thread-safe.
class SseReader {
public:
    /// If `on_event` returns false, the reading ends.
    explicit SseReader(std::function<bool(const SseEvent&)> on_event)
        : on_event_(std::move(on_event)) {}

    /// False once on_event has returned false. Throws Error(Internal) for an event above 64 MiB.
    bool feed(std::string_view piece);

private:
    bool line(std::string_view text);

    std::function<bool(const SseEvent&)> on_event_;
    std::string rest_;  ///< the start of an incomplete line
    SseEvent event_;
    bool has_data_ = false;
};

}  // namespace hearth::http
