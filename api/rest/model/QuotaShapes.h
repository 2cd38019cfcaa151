#pragma once

#include "api/rest/schema/Schema.h"
#include "controller/contract/Quotas.h"

namespace hearth::rest {

/// The limits of a quota, as a PUT sends them.
Schema quotaLimitsSchema();
/// One tenant's quota: limits, use, and where it was declared.
Schema quotaSchema();
Json quotaJson(const controller::QuotaView& view);

}  // namespace hearth::rest
