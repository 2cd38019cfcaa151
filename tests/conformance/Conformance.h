#pragma once

#include <functional>
#include <string>
#include <vector>

#include "api/mcp/http/ChangeNotifier.h"
#include "api/mcp/server/Catalog.h"

namespace hearth::mcp::conformance {

/// Returns the native catalog and the fixtures that the official MCP conformance suite (npm
/// `@modelcontextprotocol/conformance`) expects of a server under test: tools, prompts and
/// resources named `test_…` that give fixed answers, ask their client, and change.
Catalog catalog(const controller::Services& services, ChangeNotifier& notifier);

// The parts of the catalog, one file each.
std::vector<Tool> contentTools();
std::vector<Tool> talkingTools(ChangeNotifier& notifier);
std::vector<Tool> inputTools(const controller::Services& services);
std::vector<Prompt> prompts();
std::shared_ptr<const ResourceSource> resources();

/// Returns a form that the user fills in, as in `elicitation/create` and `inputRequests`.
Json form(const std::string& message, Json properties, const std::vector<std::string>& required);
using Handler = std::function<ToolOutcome(const CallContext&, const Arguments&)>;

/// Returns a line of the table: arguments by name with their type, all required.
Tool fixture(const std::string& name, const std::string& description,
             const std::vector<std::pair<std::string, std::string>>& arguments, Handler handler);
/// The smallest PNG (one pixel) and a WAV without samples, as base64.
extern const std::string kPng;
extern const std::string kWav;

}  // namespace hearth::mcp::conformance
