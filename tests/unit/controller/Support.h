#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "tests/support/House.h"

/// Steps that several tests take with a House and its Ground.
namespace hearth::controller::test {

inline ExecutionRequest command(const std::string& line) {
    ExecutionRequest request;
    request.command = line;
    return request;
}

inline ExecutionRequest inBackground(const std::string& line) {
    ExecutionRequest request = command(line);
    request.background = true;
    return request;
}

/// True while the runtime has the sandbox.
inline bool exists(Ground& ground, const std::string& sandbox) {
    const auto all = ground.runtime.list();
    return std::any_of(all.begin(), all.end(), [&](const auto& i) { return i.id == sandbox; });
}

/// Returns the number of events of a type.
inline std::size_t toldOf(House& house, const std::string& type) {
    EventQuery query;
    query.limit = 1000;
    const std::vector<Event> all = house.events.list(house.who, query);
    return static_cast<std::size_t>(
        std::count_if(all.begin(), all.end(), [&](const Event& e) { return e.type == type; }));
}

/// Lets time pass and the loop work until `done`. Returns false if that never happens.
inline bool laterOn(House& house, const std::function<bool()>& done) {
    return eventually([&] {
        house.ground.manual.advance(std::chrono::seconds(1));
        house.loop.settle();
        return done();
    });
}

/// Returns the condition of this type; null if the pool has none.
inline const PoolCondition* conditionIn(const PoolStatus& status, ConditionType type) {
    for (const PoolCondition& each : status.conditions) {
        if (each.type == type) return &each;
    }
    return nullptr;
}

/// A house whose pool "p" has this many ready sandboxes.
struct Filled : Ground {
    House house{*this};

    explicit Filled(std::uint32_t warm = 1) {
        house.declare("p", smallSpec(warm));
        REQUIRE(house.filled("p", warm));
    }
};

}  // namespace hearth::controller::test
