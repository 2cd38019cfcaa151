#pragma once

#include <cstddef>
#include <vector>

#include "base/tenants/FairBuffer.h"
#include "metrics/trace/Span.h"

namespace hearth::metrics {

/// The spans that wait to be sent. If there are too many, the tenant with the most loses its oldest
/// one; requests without a tenant count as a tenant's, and so does the server's own work.
/// Not thread-safe.
class SpanQueue {
public:
    explicit SpanQueue(std::size_t most) : spans_(most) {}

    /// Returns how many spans were lost; the new one may be among them.
    std::size_t push(Span span);
    std::size_t size() const { return spans_.size(); }
    /// Moves all spans out, oldest first.
    std::vector<Span> takeAll() { return spans_.takeAll(); }

private:
    FairBuffer<Span> spans_;
};

}  // namespace hearth::metrics
