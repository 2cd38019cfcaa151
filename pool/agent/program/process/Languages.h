#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "pool/agent/program/core/JsonValue.h"

namespace hearth::agent {

/// How a piece of code becomes a file and a command: the image's own table (at most 64 KiB), else
/// what the launcher found in the image, else what is found here (LanguageProbe.h). Read once.
class Languages {
public:
    /// `path`: the image's own table; `found`: what the launcher found, null if it did not look.
    Languages(const std::string& path, const JsonValue& found);

    /// Told in hello.
    const JsonValue& table() const noexcept { return table_; }
    bool has(std::string_view language) const;
    /// The name of the code's file.
    std::string file(std::string_view language) const;
    /// The command for the code in `path`; with a `compile` step, both in one shell.
    std::vector<std::string> command(std::string_view language, const std::string& path) const;
    /// The command that forks fresh interpreters; empty if it has none.
    std::vector<std::string> zygote(std::string_view language) const;
    /// The command that keeps one interpreter; empty if it has none.
    std::vector<std::string> context(std::string_view language) const;

private:
    JsonValue table_ = JsonValue::object();
};

}  // namespace hearth::agent
