#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "pool/agent/program/Value.h"

namespace hearth::agent {

/// The image's table of languages: how a piece of code becomes a file and a command. Read once; at
/// most 64 KiB, and empty if it is no JSON object.
class Languages {
public:
    explicit Languages(const std::string& path);

    /// Told in hello, as it stands in the image.
    const Value& table() const noexcept { return table_; }
    bool has(std::string_view language) const;
    /// The name of the code's file.
    std::string file(std::string_view language) const;
    /// The command for the code in `path`; with a `compile` step, both in one shell.
    std::vector<std::string> command(std::string_view language, const std::string& path) const;

private:
    Value table_ = Value::object();
};

}  // namespace hearth::agent
