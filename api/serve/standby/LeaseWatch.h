#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "api/serve/runtimes/RuntimeFactory.h"
#include "base/Error.h"
#include "base/Mutex.h"

namespace hearth::program {

/// While another replica may lead, no sandbox is made here. A claim that would wait for one is
/// refused, so that its client asks again and may reach that replica. Thread-safe.
class LeaseWatch {
public:
    /// Refuses claims that would wait, with this error; none: they wait again.
    using Bar = std::function<void(std::optional<Error>)>;
    /// Calls `bar` at once, and in another thread after each change.
    LeaseWatch(Leadership& leadership, Bar bar);
    LeaseWatch(const LeaseWatch&) = delete;
    LeaseWatch& operator=(const LeaseWatch&) = delete;

private:
    void look();

    Leadership& leadership_;
    const Bar bar_;
    Mutex mutex_;
    std::shared_ptr<void> subscription_;
};

}  // namespace hearth::program
