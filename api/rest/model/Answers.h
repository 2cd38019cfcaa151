#pragma once

#include <string>
#include <vector>

#include "api/rest/model/Shape.h"
#include "controller/contract/Contexts.h"
#include "controller/contract/Events.h"
#include "controller/contract/Executions.h"
#include "controller/contract/Gpus.h"
#include "controller/contract/Pools.h"
#include "controller/contract/Quotas.h"
#include "controller/contract/RoleName.h"
#include "controller/contract/Timeline.h"
#include "controller/contract/Tokens.h"
#include "controller/contract/Usage.h"
#include "controller/contract/Workspaces.h"
#include "controller/services/PackageService.h"

namespace hearth::rest {

// The JSON of docs/rest.md, written once: jsonOf(view) makes it, schemaOf<View>() describes it.
// Text that came out of a sandbox is made valid UTF-8, bad bytes become U+FFFD.

void listFields(Shape<controller::WorkspaceView>& shape);
void listFields(Shape<controller::ExecutionView>& shape);
void listFields(Shape<controller::ContextView>& shape);
void listFields(Shape<controller::PoolView>& shape);
void listFields(Shape<controller::SandboxView>& shape);
void listFields(Shape<controller::Event>& shape);
void listFields(Shape<controller::TokenView>& shape);
void listFields(Shape<controller::WorkspaceUsage>& shape);
void listFields(Shape<controller::PackagesView>& shape);
void listFields(Shape<controller::GpuView>& shape);
/// Devices of one product, as in the capabilities.
void listFields(Shape<controller::GpuProduct>& shape);
void listFields(Shape<controller::QuotaView>& shape);
/// The stages in which a claim or an execution spent its time.
void listFields(Shape<controller::Timeline>& shape);
void listFields(Shape<egress::EgressReport>& shape);
void listFields(Shape<agent::FileStat>& shape);
void listFields(Shape<agent::ArchiveCount>& shape);

/// An empty `trace_id` leaves the field out.
Json workspaceJson(const controller::WorkspaceView& view, const std::string& trace_id = {});
/// `origin` ("http://host") is put before the artifacts' urls, which are paths without it.
Json executionJson(const controller::ExecutionView& view, const std::string& trace_id = {},
                   const std::string& origin = {});
/// An execution as a list shows it: all except its output and results, but with their sizes. A
/// listing client wants to see which code ran; some ten MiB per execution would bury that.
Json executionSummaryJson(const controller::ExecutionView& view, const std::string& origin);
/// With output and results if the request asks for them.
Schema executionSummarySchema();
/// A value, figure or table that code has displayed.
Schema resultSchema();
/// The uncaught exception of code.
Schema executionErrorSchema();
/// A token in the one answer that also has the token itself.
Schema newTokenSchema();
/// GET /v1/capabilities. Open: a later version may have more fields.
Schema capabilitiesSchema();
/// The limits of a quota, as a PUT sends them.
Schema quotaLimitsSchema();
/// A report on use: tenants and the amounts they used.
Schema usageReportSchema();
Json usageReportJson(const controller::UsageQuery& query,
                     const std::vector<controller::UsageRow>& rows, WallTime now);
/// The same as CSV (RFC 4180), with a line of names. A cell that a spreadsheet would take for a
/// formula begins with an apostrophe.
std::string usageReportCsv(const std::vector<controller::UsageRow>& rows);
Schema problemSchema();
/// `{"ended": 3}`.
Schema endedSchema();
/// A page of `item`, named `name` in the document.
Schema listSchema(Schema item, std::string name);
template <typename View>
Schema listSchema(std::string name) {
    return listSchema(schemaOf<View>(), std::move(name));
}
/// `{"items": [...], "nextCursor": null}`; an empty cursor is null.
Json listJson(Json items, const std::string& next_cursor = {});
Schema workspaceListSchema();

}  // namespace hearth::rest
