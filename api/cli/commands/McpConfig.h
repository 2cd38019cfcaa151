#pragma once

#include <string>

namespace hearth::cli {

/// The text to paste into an MCP client's configuration.
struct McpConfig {
    std::string text;    ///< JSON, or TOML for codex; ends with a line break
    std::string file;    ///< the file to paste it into
    std::string remark;  ///< may be empty
};

/// `client`: claude, claude-code, cursor, vscode, codex. `transport`: http, stdio or empty for the
/// client's best. `program` is started by a stdio client: an absolute path, since the client has no
/// PATH. If `with_token`, the client sends a bearer token, which it takes from its own environment
/// or asks for. Throws UsageError for other values.
McpConfig makeMcpConfig(const std::string& client, const std::string& transport,
                        const std::string& url, const std::string& program, bool with_token);

}  // namespace hearth::cli
