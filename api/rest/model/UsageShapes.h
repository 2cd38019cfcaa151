#pragma once

#include <string>
#include <vector>

#include "api/rest/model/Shape.h"
#include "controller/contract/Usage.h"

namespace hearth::rest {

/// A report on use: tenants and the amounts they used.
Schema usageReportSchema();
Json usageReportJson(const controller::UsageQuery& query,
                     const std::vector<controller::UsageRow>& rows, WallTime now);
/// The same as CSV (RFC 4180), with a line of names. A cell that a spreadsheet would take for a
/// formula begins with an apostrophe.
std::string usageReportCsv(const std::vector<controller::UsageRow>& rows);

}  // namespace hearth::rest
