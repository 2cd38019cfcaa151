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
    std::string tenant{};  ///< empty: not a tenant's; seen by operators only
    std::string reason{};
    std::string message{};
    std::string trace_id{};
    /// About the workspace of a one shot, which no list shows. Not kept: an event of before a
    /// restart has it false.
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
    /// `changed` is called after each new event, from any thread; must not block, and may still be
    /// under way when the subscription has just ended: it owns what it touches (Subscribers.h).
    virtual std::shared_ptr<void> subscribe(std::function<void()> changed) = 0;
};

}  // namespace hearth::controller
