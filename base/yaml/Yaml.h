#pragma once

#include <cstddef>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/Error.h"
#include "base/Json.h"

namespace hearth {

/// The limits of a foreign YAML text; an alias counts each time it is used.
struct YamlLimits {
    std::size_t bytes = 1U << 20U;
    std::size_t depth = 32;
    std::size_t values = 20'000;
};

/// A fault of a YAML text and its place: what() is "line <number>: <reason>".
class YamlFault : public Error {
public:
    YamlFault(int line, const std::string& reason)
        : Error(ErrorCode::InvalidArgument, "line " + std::to_string(line) + ": " + reason),
          line_(line),
          reason_(reason) {}
    int line() const noexcept { return line_; }
    const std::string& reason() const noexcept { return reason_; }

private:
    int line_;
    std::string reason_;
};

struct YamlDocument {
    Json json;
    std::map<std::string, int> lines;  ///< the line of each value, by "/key/0"
};

/// The documents of a YAML text as JSON, by the core schema of YAML 1.2: no duplicate key, every
/// key a plain name. Throws YamlFault.
std::vector<YamlDocument> parseYamlDocuments(const std::string& text,
                                             const YamlLimits& limits = {});
/// The same for a text that must be one document.
Json parseYaml(const std::string& text, const YamlLimits& limits = {});

}  // namespace hearth
