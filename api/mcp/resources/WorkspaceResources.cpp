#include "api/mcp/resources/WorkspaceResources.h"

#include <algorithm>

#include "api/mcp/resources/PoolResources.h"
#include "api/mcp/tools/RunText.h"
#include "base/http/Url.h"
#include "controller/executions/MediaType.h"

namespace hearth::mcp {
namespace {

constexpr std::string_view kWorkspaceScheme = "workspace://";
constexpr const char* kWorkspace = "workspace://{id}";
constexpr const char* kLogs = "workspace://{id}/logs";
constexpr const char* kFiles = "workspace://{id}/files/{+path}";
constexpr std::size_t kListed = 200;
constexpr std::size_t kLoggedRuns = 20;
/// The most entries of a directory that completion reads.
constexpr std::size_t kProposed = 1'000;
/// The most text that is shown, in bytes.
constexpr std::size_t kFileTextCap = 100'000;
/// How much of each run's output a log shows; none of it if the output is longer than kLongOutput.
constexpr std::size_t kLoggedOutput = 2'000;
constexpr std::uint64_t kLongOutput = 256U << 10U;

Json document(const controller::WorkspaceView& view) {
    Json out = {{"id", view.id},
                {"pool", view.pool},
                {"phase", controller::kWorkspacePhases.of(view.phase)},
                {"root", view.root},
                {"network", egress::kNetworkModes.of(view.network)},
                {"createdAt", view.created_at},
                {"lastActiveAt", view.last_active_at}};
    if (view.name) out["name"] = *view.name;
    if (view.idle_expires_at) out["idleExpiresAt"] = *view.idle_expires_at;
    if (view.expires_at) out["expiresAt"] = *view.expires_at;
    if (!view.labels.empty()) out["labels"] = view.labels;
    return out;
}

std::string rest(const std::string& path, std::size_t shown, std::uint64_t size) {
    return "(" + std::to_string(shown) + " of " + std::to_string(size) +
           " bytes. The rest: tool file_get with path \"" + toUtf8(path) + "\" and offset " +
           std::to_string(shown) + ", or GET /v1/workspaces/…/files/…)";
}

/// Returns a file's contents. Text is cut between two characters, with a note; other bytes are
/// given whole or not at all, because half a picture is useless.
Json fileContents(const std::string& uri, const std::string& path, const std::string& bytes,
                  std::uint64_t size) {
    const std::string mime = controller::mediaType(path, bytes);
    const bool whole = bytes.size() == size;
    const std::string_view shown = whole && size <= kFileTextCap
                                       ? std::string_view(bytes)
                                       : prefixOf(bytes, std::min(bytes.size(), kFileTextCap));
    const bool text = shown.find('\0') == std::string_view::npos && isUtf8(shown);
    if (text) {
        Json contents = Json::array({textContents(uri, mime, std::string(shown))});
        if (shown.size() < size) {
            contents.push_back(textContents(uri, "text/plain", rest(path, shown.size(), size)));
        }
        return contents;
    }
    if (whole) return Json::array({blobContents(uri, mime, bytes)});
    return Json::array({textContents(uri, "text/plain", rest(path, 0, size))});
}

/// The parts of a URI of this kind: the workspace, and the resource in it.
struct Parts {
    std::string id;
    std::string_view what;  ///< empty: the workspace itself
};

/// Returns parts that point into `uri`.
std::optional<Parts> partsOf(const std::string& uri) {
    if (!uri.starts_with(kWorkspaceScheme)) return std::nullopt;
    const std::string_view rest = std::string_view(uri).substr(kWorkspaceScheme.size());
    const std::size_t slash = rest.find('/');
    return Parts{std::string(rest.substr(0, slash)),
                 slash == std::string_view::npos ? std::string_view() : rest.substr(slash + 1)};
}

/// Omits the workspace of a one shot: it ends with its run, before a client can read it.
bool listed(const controller::WorkspaceView& view) {
    return controller::isOpen(view.phase) && !view.one_shot;
}

std::string tail(const std::string& bytes) {
    return clip(bytes, kLoggedOutput).text;
}

}  // namespace

void WorkspaceResources::list(const CallContext& context, Json& resources) const {
    controller::ListQuery query;
    query.limit = kListed;
    for (const auto& view : services_.workspaces.list(context.who, query).items) {
        if (!listed(view)) continue;
        const std::string uri = std::string(kWorkspaceScheme) + view.id;
        const std::string name = view.name ? *view.name : view.id;
        resources.push_back({{"uri", uri},
                             {"name", name},
                             {"description", "Workspace in pool " + view.pool + ", opened " +
                                                 view.created_at + "."},
                             {"mimeType", "application/json"}});
        resources.push_back({{"uri", uri + "/logs"},
                             {"name", name + " logs"},
                             {"description", "What ran in it, newest first."},
                             {"mimeType", "text/plain"}});
    }
}

void WorkspaceResources::templates(Json& templates) const {
    templates.push_back({{"uriTemplate", kWorkspace},
                         {"name", "workspace"},
                         {"description", "State and deadlines of a workspace."},
                         {"mimeType", "application/json"}});
    templates.push_back({{"uriTemplate", kLogs},
                         {"name", "workspace logs"},
                         {"description", "What ran in a workspace, newest first."},
                         {"mimeType", "text/plain"}});
    templates.push_back(
        {{"uriTemplate", kFiles},
         {"name", "workspace file"},
         {"description", "A file of a workspace; of a directory the list of its entries."}});
}

std::optional<FileUri> fileOf(const std::string& uri) {
    const std::optional<Parts> parts = partsOf(uri);
    if (!parts || (parts->what != "files" && !parts->what.starts_with("files/"))) {
        return std::nullopt;
    }
    const std::optional<std::string> path =
        percentDecode(parts->what.substr(std::min<std::size_t>(6, parts->what.size())));
    if (!path) throw Error(ErrorCode::InvalidArgument, "its path is not percent-encoded");
    return FileUri{parts->id, path->empty() ? "." : *path};
}

std::optional<Json> WorkspaceResources::read(const CallContext& context,
                                             const std::string& uri) const {
    const std::optional<Parts> parts = partsOf(uri);
    if (!parts) return std::nullopt;
    if (parts->what.empty()) return facts(context, uri, parts->id);
    if (parts->what == "logs") return logs(context, uri, parts->id);
    const std::optional<FileUri> named = fileOf(uri);
    if (!named) return std::nullopt;
    return file(context, uri, named->workspace, named->path);
}

bool WorkspaceResources::watchable(const CallContext& context, const std::string& uri) const {
    const std::optional<Parts> parts = partsOf(uri);
    if (!parts) return false;
    if (!parts->what.empty() && parts->what != "logs" && !fileOf(uri)) return false;
    // Operators see other tenants' workspaces, but get only changes of their own tenant's.
    return services_.workspaces.get(context.who, parts->id).tenant == context.who.tenant;
}

Json WorkspaceResources::facts(const CallContext& context, const std::string& uri,
                               const std::string& id) const {
    const Json json = document(services_.workspaces.get(context.who, id));
    return Json::array({textContents(uri, "application/json", json.dump(2))});
}

Json WorkspaceResources::logs(const CallContext& context, const std::string& uri,
                              const std::string& id) const {
    std::string text;
    std::size_t count = 0;
    for (const auto& one : services_.executions.list(context.who, id)) {
        if (count++ == kLoggedRuns) break;
        const auto execution = services_.executions.listed(context.who, one.id);
        if (!execution) continue;
        const controller::ExecutionView view = execution->viewUpTo(kLongOutput);
        text += view.started_at + "  " + runStatusLine(view) + "\n";
        if (view.withheld) text += "(long output: run_status run_id=" + view.id + " since=0)\n";
        if (!view.stdout_bytes.empty()) text += tail(view.stdout_bytes) + "\n";
        if (!view.stderr_bytes.empty()) text += "stderr:\n" + tail(view.stderr_bytes) + "\n";
    }
    if (text.empty()) text = "Nothing has run in it.\n";
    return Json::array({textContents(uri, "text/plain", text)});
}

Json WorkspaceResources::file(const CallContext& context, const std::string& uri,
                              const std::string& id, const std::string& path) const {
    const agent::FileStat stat = services_.workspaces.stat(context.who, id, path);
    if (stat.type == agent::FileType::Directory) {
        std::string text;
        const auto page = services_.workspaces.listFiles(context.who, id, path, false, kListed, "");
        for (const auto& one : page.items) {
            text += one.path + (one.type == agent::FileType::Directory ? "/" : "") + "\n";
        }
        if (!page.next.empty()) text += "(and more: tool file_get)\n";
        return Json::array({textContents(uri, "text/plain", text)});
    }
    agent::FileStat opened;
    std::string bytes;
    services_.workspaces.readFile(
        context.who, id, path, 0, kFileCap, [&opened](const agent::FileStat& now) { opened = now; },
        [&](std::string_view chunk) {
            bytes += chunk.substr(0, kFileCap - bytes.size());
            return bytes.size() < kFileCap;
        });
    return fileContents(uri, path, bytes, std::max<std::uint64_t>(opened.size, bytes.size()));
}

std::vector<std::string> WorkspaceResources::pathsLike(const CallContext& context,
                                                       const std::string& id,
                                                       const std::string& typed) const {
    const std::size_t slash = typed.rfind('/');
    const std::string folder = slash == std::string::npos ? "" : typed.substr(0, slash + 1);
    std::vector<std::string> paths;
    try {
        const agent::FileList page = services_.workspaces.listFiles(
            context.who, id, folder.empty() ? "." : folder, false, kProposed, "");
        for (const agent::FileStat& one : page.items) {
            const std::string name = one.path.substr(one.path.rfind('/') + 1);
            // A directory's slash makes the next completion show its entries.
            paths.push_back(folder + name + (one.type == agent::FileType::Directory ? "/" : ""));
        }
    } catch (const Error& error) {
        services_.log.debug("mcp.no_proposals", {{"workspace", id}, {"why", error.what()}});
    }
    return paths;
}

std::optional<std::vector<std::string>> WorkspaceResources::complete(
    const CallContext& context, const std::string& uri_template, const Typed& typed) const {
    if (uri_template != kWorkspace && uri_template != kLogs && uri_template != kFiles) {
        return std::nullopt;
    }
    if (typed.variable == "path" && uri_template == kFiles) {
        const auto id = typed.known.find("id");
        return id == typed.known.end() ? std::vector<std::string>()
                                       : pathsLike(context, id->second, typed.value);
    }
    std::vector<std::string> ids;
    if (typed.variable != "id") return ids;
    controller::ListQuery query;
    query.limit = kListed;
    for (const auto& view : services_.workspaces.list(context.who, query).items) {
        if (listed(view)) ids.push_back(view.id);
    }
    return ids;
}

std::vector<std::shared_ptr<const ResourceSource>> nativeResources(
    const controller::Services& services) {
    return {std::make_shared<PoolResources>(services),
            std::make_shared<WorkspaceResources>(services)};
}

}  // namespace hearth::mcp
