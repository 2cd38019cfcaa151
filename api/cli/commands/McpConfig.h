#pragma once

#include <string>

namespace hearth::cli {

/// The text to paste into an MCP client's configuration.
struct McpConfig {
    std::string text;    ///< JSON, or TOML for codex; ends with a line break
    std::string file;    ///< where it goes
    std::string remark;  ///< may be empty
};

/// `client`: claude, claude-code, cursor, vscode, codex. `transport`: http, stdio or empty for the
/// client's best. `program` is what a stdio client starts: an absolute path, for it knows no PATH.
/// With `with_token` the client sends a bearer token, which it takes from its own environment or
/// asks for. Throws UsageError for anything else.
McpConfig makeMcpConfig(const std::string& client, const std::string& transport,
                        const std::string& url, const std::string& program, bool with_token);

}  // namespace hearth::cli
