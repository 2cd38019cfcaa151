#include "api/mcp/seeds/SeedToolkit.h"

#include <algorithm>

#include "api/mcp/tools/Pictures.h"
#include "api/mcp/tools/RunEnd.h"
#include "base/Ids.h"
#include "base/http/Url.h"

namespace hearth::mcp::seeds {
namespace {

using controller::ExecutionStatus;
using controller::ExecutionView;
using controller::Services;

constexpr std::int64_t kLinkSeconds = 3600;
/// A request to an agent may have 256 KiB, including everything besides the code.
constexpr std::size_t kLongCode = 200'000;
/// The most JSON text of a tool. It is far below kResultCap, because the quotes are escaped again
/// when the text is put into JSON.
constexpr std::size_t kTextsCap = 400'000;

bool offersPackages(const Services& services, const CallContext& call) {
    const auto pools = services.pools.list(call.who);
    return std::any_of(pools.begin(), pools.end(), [](const controller::PoolView& view) {
        return !view.pool->deleting && view.pool->on_demand.empty() &&
               view.pool->spec.network != egress::NetworkMode::None;
    });
}

/// Claims with packages rather than without, with the narrowest network that gives them.
Task<controller::WorkspaceView> claim(const Services& services, CallContext call,
                                      controller::WorkspaceRequest request, bool packages) {
    if (packages && offersPackages(services, call)) {
        request.network = egress::NetworkMode::Mirror;
        Task<controller::WorkspaceView> creating = services.workspaces.create(call.who, request);
        try {
            controller::WorkspaceView view = co_await creating;
            co_return view;
        } catch (const Error& error) {
            // None of the pools with a network has Python, or this image.
            if (error.code() != ErrorCode::InvalidSpec) throw;
        }
    }
    request.network = egress::NetworkMode::None;
    Task<controller::WorkspaceView> creating =
        services.workspaces.create(call.who, std::move(request));
    controller::WorkspaceView view = co_await creating;
    co_return view;
}

/// True if the error means that no caller can get this image.
bool imageMissing(const Error& error) {
    return error.code() == ErrorCode::InvalidSpec || error.code() == ErrorCode::Unavailable;
}

Json linksOf(const Services& services, const CallContext& call, const ExecutionView& view,
             FileLinks links) {
    Json out = Json::array();
    for (const controller::Artifact& artifact : view.artifacts) {
        const std::string url = artifact.url.empty()
                                    ? fileLink(services, call, view.workspace_id, artifact.path)
                                    : call.origin + artifact.url;
        if (links == FileLinks::Texts) {
            out.push_back(url);
        } else {
            out.push_back({{"name", toUtf8(artifact.path)}, {"url", url}});
        }
    }
    return out;
}

void addShownImages(ToolResult& result, const ExecutionView& view) {
    const ShownPictures shown = picturesOf(view, result.room());
    for (const auto& [number, picture] : shown.of_result) {
        result.encodedImage(picture.base64, picture.type);
    }
}

/// Returns the value with each text cut to `most` bytes.
Json withShortTexts(const Json& value, std::size_t most) {
    if (value.is_string()) return clip(value.get_ref<const std::string&>(), most).text;
    Json out = value;
    if (value.is_structured()) {
        for (auto& [key, member] : out.items()) member = withShortTexts(member, most);
    }
    return out;
}

}  // namespace

LocalPathError::LocalPathError(const std::string& argument, const std::string& key,
                               const std::string& url, const std::string& how)
    : Error(ErrorCode::InvalidArgument,
            argument + " is a path of your machine, which this server cannot reach"),
      key_(key),
      url_(url) {
    hint(how + " " + url +
         " ; through the bridge, `hearth mcp --root DIR`, it works without changes");
}

std::string inWords(const Error& error) {
    std::string text = std::string(errorCodeName(error.code())) + ": " + error.what();
    for (const FieldError& field : error.fields()) {
        text += "; " + field.pointer + " " + field.reason;
    }
    if (!error.hint().empty()) text += ". " + error.hint();
    return text;
}

ToolResult valueResult(const Json& value) {
    ToolResult result;
    std::string text = value.is_string() ? value.get<std::string>() : dumpJson(value);
    // Cuts the long texts inside, not the end, so that the result stays JSON that clients can read.
    for (std::size_t most = kTextsCap; text.size() > kTextsCap && most > 0; most /= 2) {
        Json fitting = withShortTexts(value, most);
        if (fitting.is_object()) fitting["truncated"] = true;
        text = fitting.is_string() ? fitting.get<std::string>() : dumpJson(fitting);
    }
    result.text(text);
    // structuredContent is an object by definition.
    result.structured = value.is_object() ? value : Json{{"result", value}};
    return result;
}

Json optionalText(const std::string& description) {
    return {{"anyOf", {{{"type", "string"}}, {{"type", "null"}}}},
            {"default", nullptr},
            {"description", description}};
}

Json withDefault(Json schema, Json value) {
    schema["default"] = std::move(value);
    return schema;
}

Task<controller::WorkspaceView> openWorkspace(const Services& services, CallContext call,
                                              Wish wish) {
    controller::WorkspaceRequest request = claimFor(call);
    request.name = wish.name;
    request.labels = wish.labels;
    if (wish.image) {
        request.image = wish.image;
        Task<controller::WorkspaceView> imaged = claim(services, call, request, wish.packages);
        try {
            controller::WorkspaceView view = co_await imaged;
            co_return view;
        } catch (const Error& error) {
            if (wish.image != wish.default_image || !imageMissing(error)) throw;
        }
        request.image.reset();
    }
    request.language = "python";
    Task<controller::WorkspaceView> any = claim(services, call, std::move(request), wish.packages);
    controller::WorkspaceView view = co_await any;
    co_return view;
}

std::string pathInSandbox(const controller::WorkspaceView& view, const std::string& path) {
    return path.starts_with('/') ? path : view.root + "/" + path;
}

agent::FileStat writeText(const Services& services, const CallContext& call,
                          const std::string& workspace, const std::string& path,
                          const std::string& text) {
    std::size_t taken = 0;
    return services.workspaces.writeFile(call.who, workspace, path, std::nullopt,
                                         [&text, &taken](char* out, std::size_t size) {
                                             const std::size_t n = text.copy(out, size, taken);
                                             taken += n;
                                             return n;
                                         });
}

std::string fileLink(const Services& services, const CallContext& call,
                     const std::string& workspace, const std::string& path) {
    controller::SignedLink link;
    link.tenant = call.who.tenant;
    link.workspace = workspace;
    link.path = path;
    link.expires_unix = toUnixMillis(services.clock.wall()) / 1000 + kLinkSeconds;
    return call.origin + controller::linkPath(services.secret_key, link);
}

std::string uploadUrl(const CallContext& call, const std::string& workspace,
                      const std::string& path) {
    return call.origin + "/v1/workspaces/" + workspace + "/files/" + percentEncode(path, true);
}

std::string archiveUrl(const CallContext& call, const std::string& workspace,
                       const std::string& path) {
    return call.origin + "/v1/workspaces/" + workspace + "/archive?path=" + percentEncode(path);
}

// NOLINTBEGIN(performance-unnecessary-value-param): the frame keeps them
Task<ToolResult> whenEnded(const Services& services, CallContext call,
                           std::shared_ptr<controller::Execution> execution,
                           std::function<ToolResult(const ExecutionView&)> finish) {
    // NOLINTEND(performance-unnecessary-value-param)
    Task<> end = untilEnd(services, std::move(call), execution, OnCancel::Kills);
    co_await end;
    execution->requireAnswer();
    co_return finish(execution->view());
}

std::string mergedOutput(const controller::Execution& execution, std::uint64_t most) {
    constexpr std::size_t kPiece = 64U << 10U;
    std::string text;
    std::uint64_t offset = 0;
    while (const auto chunk = execution.read(offset, kPiece)) {
        if (text.size() >= most) {
            text += "\n[… more is left out …]\n";
            break;
        }
        if (chunk->offset > offset) {
            text += "\n[… " + std::to_string(chunk->offset - offset) + " bytes left out …]\n";
        }
        text += chunk->bytes;
        offset = chunk->offset + chunk->bytes.size();
    }
    return text;
}

std::optional<std::string> brokenOff(const ExecutionView& view) {
    if (view.packages && !view.packages->done && view.error) {
        return "PackageError: " + stringMember(*view.error, "message").value_or("");
    }
    if (view.status == ExecutionStatus::Timeout) {
        return "it was ended after " +
               std::to_string(
                   std::chrono::duration_cast<std::chrono::seconds>(kLongestRun).count()) +
               " s; what it had written by then is here";
    }
    if (view.status == ExecutionStatus::Oom) return "it was ended because it used up its memory";
    if (view.status == ExecutionStatus::Lost) return "its sandbox has died; create a new one";
    if (view.status == ExecutionStatus::Killed) return "it was killed";
    if (view.status == ExecutionStatus::Running) return "it is still running";
    return std::nullopt;
}

int exitCode(const ExecutionView& view) {
    return view.exit_code.value_or(-1);
}

void setCode(const Services& services, const CallContext& call, const std::string& workspace,
             const std::string& code, controller::ExecutionRequest& request) {
    request.code = code;
    if (code.size() <= kLongCode) return;
    if (request.language != "python") {
        throw Error(ErrorCode::PayloadTooLarge,
                    "code has at most " + std::to_string(kLongCode) + " bytes, but in Python")
            .hint("write it to a file and run that");
    }
    const std::string path = newId(".hearth-code-") + ".py";
    writeText(services, call, workspace, path, code);
    request.code =
        "def _hearth_code(path):\n"
        "    import os\n"
        "    with open(path, 'rb') as file:\n"
        "        os.unlink(path)\n"
        "        return compile(file.read(), 'main.py', 'exec')\n"
        "_hearth_code = _hearth_code('" +
        path +
        "')\n"
        "exec(_hearth_code, globals())\n";
}

ToolOutcome runPython(const Services& services, const CallContext& call,
                      const std::string& workspace, const std::string& code, FileLinks links) {
    controller::ExecutionRequest request;
    request.language = "python";
    setCode(services, call, workspace, code, request);
    request.timeout = kLongestRun;
    request.collect = {"**"};
    request.started_at = call.started_at;
    const auto finish = [&services, call, links](const ExecutionView& view) {
        Json out{{"stdout", toUtf8(view.stdout_bytes)},
                 {"stderr", toUtf8(view.stderr_bytes)},
                 {"exit_code", exitCode(view)},
                 {"files", Json::array()},
                 {"file_links", linksOf(services, call, view, links)}};
        for (const controller::Artifact& artifact : view.artifacts) {
            out["files"].push_back(toUtf8(artifact.path));
        }
        if (links == FileLinks::Texts) out["machine_file_links"] = out["file_links"];
        if (const auto why = brokenOff(view)) out["error"] = *why;
        out["status"] = controller::kExecutionStatuses.of(view.status);
        out["duration_ms"] = view.duration_ms.value_or(0);
        if (view.truncated) out["truncated"] = true;
        ToolResult result = valueResult(out);
        addShownImages(result, view);
        return result;
    };
    return whenEnded(services, call, services.executions.start(call.who, workspace, request),
                     finish);
}

Json pythonFailure(const Error& error, FileLinks links) {
    Json out{{"stdout", ""},
             {"stderr", ""},
             {"exit_code", -1},
             {"files", Json::array()},
             {"file_links", Json::array()}};
    if (links == FileLinks::Texts) out["machine_file_links"] = Json::array();
    out["error"] = inWords(error);
    return out;
}

}  // namespace hearth::mcp::seeds
