#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "pool/agent/program/core/JsonValue.h"

namespace hearth::agent {

/// Turns a piece of code into a file and a command: by the image's own table (at most 64 KiB), else
/// by the launcher's findings in the image, else by own findings (LanguageProbe.h). Read once.
class Languages {
public:
    /// `path`: the image's own table; `found`: the launcher's findings, null if it did not look.
    Languages(const std::string& path, const JsonValue& found);

    /// The table for hello.
    const JsonValue& table() const noexcept { return table_; }
    bool has(std::string_view language) const;
    /// Returns the name of the code's file.
    std::string file(std::string_view language) const;
    /// Returns the command for the code in `path`; with a `compile` step, both in one shell.
    std::vector<std::string> command(std::string_view language, const std::string& path) const;
    /// True unless the table says that the command never speaks on its channel (PROTOCOL.md,
    /// Drivers).
    bool speaks(std::string_view language) const;
    /// Returns the command that forks fresh interpreters; empty if there is none.
    std::vector<std::string> zygote(std::string_view language) const;
    /// Returns the command that keeps one interpreter; empty if there is none.
    std::vector<std::string> context(std::string_view language) const;

private:
    JsonValue table_ = JsonValue::object();
};

}  // namespace hearth::agent
