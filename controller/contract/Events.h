#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "controller/contract/Principal.h"

namespace hearth::controller {

/// Something that happened to a resource: "workspace.created", "workspace.reclaimed",
/// "sandbox.ready", "sandbox.failed", "pool.degraded", "execution.finished", …
struct Event {
    std::uint64_t id = 0;  ///< increasing, also across restarts
    std::string time{};
    std::string type{};
    std::string resource{};
    std::string pool{};
    std::string tenant{};  ///< empty: it belongs to no tenant and only operators see it
    std::string reason{};
    std::string message{};
    std::string trace_id{};
    /// True if it is about the workspace of a one shot, which no list shows. Not stored: false for
    /// an event from before a restart.
    bool one_shot = false;
};

struct EventQuery {
    std::uint64_t since = 0;  ///< events with a greater id
    std::string type;         ///< empty: all
    std::string resource;
    std::size_t limit = 100;
};

/// The recent past, scoped to the principal's tenant (operators see every tenant's). Thread-safe.
class Events {
public:
    virtual ~Events() = default;
    virtual std::vector<Event> list(const Principal& who, const EventQuery& query) = 0;
    /// `changed` is called after each new event, from any thread. It must not block. One call may
    /// still run when the subscription has just ended, so it owns what it touches (Subscribers.h).
    virtual std::shared_ptr<void> subscribe(std::function<void()> changed) = 0;
};

}  // namespace hearth::controller
