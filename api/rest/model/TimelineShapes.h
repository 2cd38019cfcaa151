#pragma once

#include "api/rest/schema/Schema.h"
#include "controller/contract/Timeline.h"

namespace hearth::rest {

/// Where the time of a claim or an execution went.
Schema timelineSchema();
Json timelineJson(const controller::Timeline& timeline);

}  // namespace hearth::rest
