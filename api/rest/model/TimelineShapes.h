#pragma once

#include "api/rest/schema/Schema.h"
#include "controller/contract/Timeline.h"

namespace hearth::rest {

/// The stages in which a claim or an execution spent its time.
Schema timelineSchema();
Json timelineJson(const controller::Timeline& timeline);

}  // namespace hearth::rest
