#pragma once

#include <cstdint>
#include <memory>

#include "api/http/Handler.h"
#include "api/rest/model/Shape.h"
#include "api/rest/streams/Turnstile.h"
#include "metrics/LogTail.h"

namespace hearth::rest {

/// A line of the log in answers.
void listFields(Shape<metrics::LogTail::Line>& shape);

/// Follows the server's log as server-sent events "line", with their ids. Holds no thread; a slow
/// client misses the lines that are gone meanwhile. Ends only with the client or the server. `tail`
/// must outlive the stream.
class LogStream : public std::enable_shared_from_this<LogStream> {
public:
    static void start(metrics::LogTail& tail, std::uint64_t after,
                      std::shared_ptr<api::Stream> stream);

private:
    struct Key {};

public:
    LogStream(Key key, metrics::LogTail& tail, std::uint64_t after,
              std::shared_ptr<api::Stream> stream);

private:
    void begin();
    void pump();
    void step();

    metrics::LogTail& tail_;
    std::shared_ptr<api::Stream> stream_;
    std::shared_ptr<void> subscription_;
    Turnstile turnstile_;
    std::uint64_t after_;  ///< advances; used only inside a step
};

}  // namespace hearth::rest
