#include "api/cli/commands/McpConfig.h"

#include <nlohmann/json.hpp>

#include "api/command/Options.h"
#include "base/Json.h"

namespace hearth::cli {
namespace {

/// The user chooses the directory that a model may touch, so there is no default.
constexpr const char* kRootToChoose = "/path/you/choose";

/// The server's entry for a client that reads JSON. `token` is that client's name of the variable.
Json httpEntry(const std::string& url, const std::string& token) {
    Json entry = {{"type", "http"}, {"url", url + "/mcp"}};
    if (!token.empty()) entry["headers"] = {{"Authorization", "Bearer " + token}};
    return entry;
}

Json stdioEntry(const std::string& url, const std::string& program, const std::string& token) {
    Json entry = {{"command", program},
                  {"args", {"mcp", "--root", kRootToChoose}},
                  {"env", {{"HEARTH_URL", url}}}};
    if (!token.empty()) entry["env"]["HEARTH_TOKEN"] = token;
    return entry;
}

std::string servers(const char* key, const Json& entry) {
    return Json{{key, {{"hearth", entry}}}}.dump(2) + "\n";
}

/// A JSON string without a slash escape is a TOML basic string.
std::string quoted(const std::string& text) {
    return Json(text).dump();
}

std::string codexToml(bool http, const std::string& url, const std::string& program,
                      bool with_token) {
    std::string text = "[mcp_servers.hearth]\n";
    if (http) {
        text += "url = " + quoted(url + "/mcp") + "\n";
        if (with_token) text += "bearer_token_env_var = \"HEARTH_TOKEN\"\n";
        return text;
    }
    text += "command = " + quoted(program) + "\nargs = [\"mcp\", \"--root\", " +
            quoted(kRootToChoose) + "]\n";
    if (with_token) text += "env_vars = [\"HEARTH_TOKEN\"]\n";
    return text + "\n[mcp_servers.hearth.env]\nHEARTH_URL = " + quoted(url) + "\n";
}

std::string vscodeJson(bool http, const std::string& url, const std::string& program,
                       bool with_token) {
    const std::string token = with_token ? "${input:hearth-token}" : "";
    Json entry = http ? httpEntry(url, token) : stdioEntry(url, program, token);
    if (!http) entry["type"] = "stdio";
    Json document = {{"servers", {{"hearth", std::move(entry)}}}};
    if (with_token) {
        document["inputs"] = Json::array({{{"type", "promptString"},
                                           {"id", "hearth-token"},
                                           {"description", "Hearth token"},
                                           {"password", true}}});
    }
    return document.dump(2) + "\n";
}

}  // namespace

McpConfig makeMcpConfig(const std::string& client, const std::string& transport,
                        const std::string& url, const std::string& program, bool with_token) {
    if (!transport.empty() && transport != "http" && transport != "stdio") {
        throw UsageError("--transport is \"" + transport + "\"", "use http or stdio");
    }
    if (!url.starts_with("http://") && !url.starts_with("https://") &&
        (transport != "stdio" || !url.starts_with("unix://"))) {
        throw UsageError("--url (HEARTH_URL) is \"" + url + "\"",
                         "write http://HOST:PORT, as the client reaches the server");
    }
    std::string base = url;
    while (base.ends_with('/')) base.pop_back();
    const bool http = transport != "stdio" && client != "claude";
    const auto entry = [&](const char* token) {
        const std::string sent = with_token ? token : "";
        return servers("mcpServers",
                       http ? httpEntry(base, sent) : stdioEntry(base, program, sent));
    };
    std::string remark;
    if (!http) {
        remark = std::string("replace ") + kRootToChoose +
                 " by the directory that the model may read and write, or leave --root out: then "
                 "no local files";
    }
    if (client == "claude") {
        if (transport == "http") {
            throw UsageError("Claude Desktop's file takes stdio servers only",
                             "leave --transport out, or add " + base + "/mcp as a connector");
        }
        if (with_token) remark += "; replace YOUR-TOKEN: this client has no variables";
        return {entry("YOUR-TOKEN"),
                "claude_desktop_config.json (Settings, Developer, Edit Config)", remark};
    }
    if (client == "claude-code") {
        return {entry("${HEARTH_TOKEN}"), ".mcp.json of the project", remark};
    }
    if (client == "cursor") {
        return {entry("${env:HEARTH_TOKEN}"),
                "~/.cursor/mcp.json, or .cursor/mcp.json of the project", remark};
    }
    if (client == "vscode") {
        return {vscodeJson(http, base, program, with_token), ".vscode/mcp.json of the workspace",
                remark};
    }
    if (client == "codex") {
        return {codexToml(http, base, program, with_token), "~/.codex/config.toml", remark};
    }
    throw unknownWord("the client \"" + client + "\" is unknown", client,
                      {"claude", "claude-code", "cursor", "vscode", "codex"});
}

}  // namespace hearth::cli
