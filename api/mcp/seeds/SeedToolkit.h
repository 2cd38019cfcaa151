#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/mcp/seeds/SeedPaths.h"
#include "api/mcp/tools/Toolbox.h"
#include "base/Error.h"
#include "controller/Services.h"

// The parts of the seeds' tools. Handlers throw Error; Seeds.cpp gives it the seed's own form.

namespace hearth::mcp::seeds {

/// How long one call may run. A call without an end would block its client.
inline constexpr auto kLongestRun = std::chrono::minutes(10);

/// A tool, and its seed's form of a failure; none: a failed tool of MCP.
struct SeedTool {
    Tool tool;
    std::function<Json(const Error&)> failure = {};
};

std::vector<SeedTool> s0Tools(const controller::Services& services);
std::vector<SeedTool> s1Tools(const controller::Services& services);
std::vector<SeedTool> s2Tools(const controller::Services& services);
std::vector<SeedTool> s3Tools(const controller::Services& services);

/// A caller named a path on its own disk, which this server never touches. The URL does the same,
/// and so does the stdio bridge, which runs where the disk is.
class LocalPathError : public Error {
public:
    /// `key` is "upload_url" or "download_url".
    LocalPathError(const std::string& argument, const std::string& key, const std::string& url,
                   const std::string& how);
    const std::string& key() const { return key_; }
    const std::string& url() const { return url_; }

private:
    std::string key_;
    std::string url_;
};

/// Returns code, text, fields and hint of an error in one line.
std::string inWords(const Error& error);

/// Returns the value as JSON text in the seeds' form, and as JSON for programs; a text stays as is.
ToolResult valueResult(const Json& value);

/// The schema of a text argument that may be left out or null.
Json optionalText(const std::string& description);
/// The schema of an argument with a default.
Json withDefault(Json schema, Json value);

/// The properties of a workspace for a seed's client.
struct Wish {
    std::optional<std::string> image;
    std::string default_image;  ///< the image of the seed's tool if none is named
    std::optional<std::string> name;
    std::map<std::string, std::string> labels;
    bool packages = true;  ///< with access to the package mirror, if a pool has it
};
/// Opens a workspace. The seed's default image means "any Python": if no pool has that image and it
/// may not be fetched, a pool with Python is used. Any other missing image is refused, and the
/// error lists the images that exist.
Task<controller::WorkspaceView> openWorkspace(const controller::Services& services,
                                              CallContext call, Wish wish);

/// Returns the path as programs in the workspace see it.
std::string pathInSandbox(const controller::WorkspaceView& view, const std::string& path);

/// Writes a file as a whole.
agent::FileStat writeText(const controller::Services& services, const CallContext& call,
                          const std::string& workspace, const std::string& path,
                          const std::string& text);
/// Returns a URL on this server that gives the file for an hour, without a token.
std::string fileLink(const controller::Services& services, const CallContext& call,
                     const std::string& workspace, const std::string& path);

/// Returns the URL to PUT the file's bytes to, with the caller's own token.
std::string uploadUrl(const CallContext& call, const std::string& workspace,
                      const std::string& path);

/// Returns the URL to PUT a tar to, which becomes the directory.
std::string archiveUrl(const CallContext& call, const std::string& workspace,
                       const std::string& path);

/// Returns the result that `finish` makes when the execution has ended.
Task<ToolResult> whenEnded(const controller::Services& services, CallContext call,
                           std::shared_ptr<controller::Execution> execution,
                           std::function<ToolResult(const controller::ExecutionView&)> finish);

/// Returns both channels in the order in which they were written. The text says how many bytes were
/// not kept, and that bytes beyond `most` are left out.
std::string mergedOutput(const controller::Execution& execution, std::uint64_t most);

/// Returns in words why a run did not end by itself; nullopt if it did.
std::optional<std::string> brokenOff(const controller::ExecutionView& view);
/// Returns the exit status; -1 if there is none.
int exitCode(const controller::ExecutionView& view);

/// Sets the request's code. Python code that is too long for one request to the agent is sent as a
/// file, which is deleted before its first line runs. Other languages: Error(PayloadTooLarge).
void setCode(const controller::Services& services, const CallContext& call,
             const std::string& workspace, const std::string& code,
             controller::ExecutionRequest& request);

/// Runs execute_python_code of S1 and S3.
enum class FileLinks { Texts, Objects };
ToolOutcome runPython(const controller::Services& services, const CallContext& call,
                      const std::string& workspace, const std::string& code, FileLinks links);
/// Returns that tool's form of a failure.
Json pythonFailure(const Error& error, FileLinks links);

}  // namespace hearth::mcp::seeds
