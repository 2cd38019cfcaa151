#pragma once

#include <string>
#include <vector>

#include "controller/egress/images/ImageGateway.h"
#include "controller/store/EventLog.h"
#include "metrics/Log.h"
#include "pool/runtime/ImageRuntime.h"

namespace hearth::controller {

/// Fetches images for claims from their registries: the runtime does it through the gateway, which
/// refuses denied addresses. A Docker daemon connects by itself: then only the registry's own
/// addresses are checked, beforehand, and the daemon follows redirects unchecked. Thread-safe.
class ImageFetcher {
public:
    /// `insecure`: registries without TLS, "registry.example:5000".
    ImageFetcher(pool::ImageRuntime& runtime, const egress::ImageGateway& gateway,
                 std::vector<std::string> insecure, EventLog& events, metrics::Log& log)
        : runtime_(runtime),
          gateway_(gateway),
          insecure_(std::move(insecure)),
          events_(events),
          log_(log) {}

    /// Blocks. Throws as ImageRuntime::fetchImage(); InvalidSpec if the registry, or an address it
    /// points to, is denied; Unavailable if one is not reached.
    pool::KnownImage fetch(const std::string& image, pool::ImageStages& stages);

private:
    pool::ImageRuntime& runtime_;
    const egress::ImageGateway& gateway_;
    const std::vector<std::string> insecure_;
    EventLog& events_;
    metrics::Log& log_;
};

}  // namespace hearth::controller
