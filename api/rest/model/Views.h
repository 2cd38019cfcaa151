#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "base/Json.h"
#include "controller/contract/Contexts.h"
#include "controller/contract/Events.h"
#include "controller/contract/Executions.h"
#include "controller/contract/Pools.h"
#include "controller/contract/RoleName.h"
#include "controller/contract/Tokens.h"
#include "controller/contract/Workspaces.h"
#include "controller/services/PackageService.h"

namespace hearth::rest {

/// The JSON shapes of docs/rest.md, written once and used by REST and MCP alike. Pure functions;
/// text that came out of a sandbox is made valid UTF-8, bad bytes become U+FFFD. An empty
/// `trace_id` leaves the field out.

Json workspaceJson(const controller::WorkspaceView& view, const std::string& trace_id = {});
/// `origin` ("http://host") is put before the artifacts' urls, which are paths without it.
Json executionJson(const controller::ExecutionView& view, const std::string& trace_id = {},
                   const std::string& origin = {});
/// `{main, mime}`.
Json resultJson(const controller::Result& result);
Json contextJson(const controller::ContextView& view);
/// `{apiVersion, kind, metadata, spec, status}`, with name, generation, resourceVersion and
/// createdAt in the metadata.
Json poolJson(const controller::PoolView& view);
Json sandboxJson(const controller::SandboxView& view);
Json eventJson(const controller::Event& event);
Json tokenJson(const controller::TokenView& view);
Json usageJson(const controller::WorkspaceUsage& usage);
Json packagesJson(const controller::PackagesView& view);
Json egressJson(const egress::EgressReport& report);
Json fileJson(const agent::FileStat& stat);
Json limitsJson(const pool::SandboxLimits& limits);

/// null if there is no text.
Json orNull(const std::optional<std::string>& text);
/// null if it is empty.
Json orNull(const std::string& text);
/// `{"items": [...], "nextCursor": null}`; an empty cursor is null.
Json listJson(Json items, const std::string& next_cursor = {});

}  // namespace hearth::rest
