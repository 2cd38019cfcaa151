#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/mcp/protocol/JsonRpc.h"

namespace hearth::mcp {

/// Returns the faults of a tool's arguments under its input schema, one sentence each, or none.
/// Knows the keywords that Hearth's schemas use: type, enum, minimum, maximum, minLength,
/// maxLength, minItems, maxItems, items, properties, required, additionalProperties, anyOf.
std::vector<std::string> argumentProblems(const Json& schema, const Json& arguments);

/// Returns the arguments without nulls that the schema does not allow and does not require: many
/// clients write null for arguments that they leave out.
Json withoutNulls(const Json& schema, Json arguments);

/// Typed reading of arguments that have passed argumentProblems().
class Arguments {
public:
    explicit Arguments(Json values) : values_(std::move(values)) {}

    bool has(const std::string& name) const { return member(values_, name) != nullptr; }
    std::optional<std::string> text(const std::string& name) const;
    std::string textOr(const std::string& name, std::string fallback) const;
    std::optional<std::uint64_t> number(const std::string& name) const;
    std::optional<std::chrono::milliseconds> seconds(const std::string& name) const;
    bool flag(const std::string& name) const;
    std::vector<std::string> textList(const std::string& name) const;
    std::map<std::string, std::string> textMap(const std::string& name) const;
    const Json& values() const { return values_; }
    /// The fingerprint (controller/contract/Fingerprint.h) of all arguments, which distinguishes a
    /// repeated call from a reused idempotency key.
    std::string fingerprint(std::string_view secret_key) const;

private:
    Json values_;
};

}  // namespace hearth::mcp
