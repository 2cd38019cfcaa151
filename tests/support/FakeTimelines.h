#pragma once

#include <string>

#include "base/Error.h"
#include "controller/contract/Timeline.h"

namespace hearth::test {

/// Returns the same timeline for every id with the right prefix.
class FakeTimelines final : public controller::Timelines {
public:
    controller::Timeline ofWorkspace(const controller::Principal&, const std::string& id) override {
        return known(id, "ws_", false);
    }
    controller::Timeline ofExecution(const controller::Principal&, const std::string& id) override {
        return known(id, "ex_", true);
    }

private:
    static controller::Timeline known(const std::string& id, const char* prefix, bool execution) {
        if (!id.starts_with(prefix)) throw Error(ErrorCode::NotFound, "nothing known of " + id);
        controller::Timeline timeline;
        timeline.id = id;
        timeline.execution = execution;
        timeline.pool = "python";
        timeline.started_at = "2026-11-27T10:00:00.000Z";
        timeline.total_ms = 412.3;
        timeline.stages = {{"queue", 398.2}, {"bind", 14.1}};
        timeline.scene.emplace();
        timeline.scene->place = 3;
        timeline.scene->pool = {0, 4, 1, 3};
        timeline.scene->pressure = {12.5, 0, 3.1};
        explain(timeline);
        return timeline;
    }
};

}  // namespace hearth::test
