#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/Clock.h"
#include "base/Json.h"

namespace hearth::cli {

// The tables of `hearth get`. They accept missing fields.
using TableOf = std::string (*)(const std::vector<Json>& items, WallTime now);
std::string poolTable(const std::vector<Json>& items, WallTime now);
std::string workspaceTable(const std::vector<Json>& items, WallTime now);
/// With labels, network and sandbox.
std::string wideWorkspaceTable(const std::vector<Json>& items, WallTime now);
std::string sandboxTable(const std::vector<Json>& items, WallTime now);
std::string executionTable(const std::vector<Json>& items, WallTime now);
/// With workspace, processor time and memory.
std::string wideExecutionTable(const std::vector<Json>& items, WallTime now);
std::string contextTable(const std::vector<Json>& items, WallTime now);
std::string fileTable(const std::vector<Json>& items, WallTime now);
std::string eventTable(const std::vector<Json>& items, WallTime now);
/// For the answer of `packages`.
std::string packageTable(const Json& packages);
/// Use and limit of each resource.
std::string quotaTable(const std::vector<Json>& items, WallTime now);
std::string gpuTable(const std::vector<Json>& items, WallTime now);
std::string tokenTable(const std::vector<Json>& items, WallTime now);

/// One event as one line.
std::string eventLine(const Json& event);
/// One object as aligned `path  value` lines, nested keys joined by dots; then texts of several
/// lines, each under its path, line by line.
std::string fieldList(const Json& object);
/// "Ready", "Filling", "Installing", "Degraded" or "Drained"; empty if the server reports none.
std::string poolStatus(const Json& pool);
/// Why a pool is degraded, or else what it lacks, as one line of a hundred bytes; may be empty.
std::string poolWhy(const Json& pool);
/// Seconds from an RFC 3339 time to `now`, negative if it is in the future; nullopt for no time.
std::optional<std::int64_t> secondsSince(const std::string& time, WallTime now);
/// "5s", "12m", "3h", "2d" between an RFC 3339 time and `now`, in either order; "-" for no time.
std::string age(const std::string& time, WallTime now);
/// A number in a form of printf, such as "%.1f", up to 47 characters.
std::string numberText(double value, const char* form);

}  // namespace hearth::cli
