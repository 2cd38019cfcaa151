#include "api/cli/remote/RemotePath.h"

#include "base/http/Url.h"
#include "pool/agent/protocol/PathText.h"

namespace hearth::cli {
namespace {

std::string workspaceTarget(const RemotePath& path) {
    return "/v1/workspaces/" + percentEncode(path.workspace);
}

}  // namespace

std::optional<RemotePath> RemotePath::parse(const std::string& word) {
    const std::size_t colon = word.find(':');
    if (colon == std::string::npos || colon == 0 || word.front() == '-' || word.front() == '.' ||
        word.substr(0, colon).find('/') != std::string::npos) {
        return std::nullopt;
    }
    RemotePath out{word.substr(0, colon), word.substr(colon + 1), false};
    out.as_dir = out.path.ends_with('/');
    while (out.path.ends_with('/')) out.path.pop_back();
    while (out.path.starts_with("./")) out.path.erase(0, 2);
    if (out.path.starts_with("/workspace") &&
        (out.path.size() == 10 || out.path[10] == '/')) {  // its path inside the sandbox
        out.path.erase(0, out.path.size() == 10 ? 10 : 11);
    }
    if (out.path.empty() || out.path == ".") {
        out.path = ".";
        out.as_dir = true;
    }
    return out;
}

std::string RemotePath::name() const {
    if (path == ".") return "";
    return agent::pathBytes(path.substr(path.rfind('/') + 1));
}

std::string RemotePath::fileTarget() const {
    return workspaceTarget(*this) + "/files/" + percentEncode(path, true);
}

std::string RemotePath::archiveTarget() const {
    return workspaceTarget(*this) + "/archive?path=" + percentEncode(path);
}

std::string RemotePath::listTarget() const {
    return workspaceTarget(*this) + "/files?limit=1000&path=" + percentEncode(path);
}

RemotePath RemotePath::child(const std::string& name) const {
    return {workspace, path == "." ? name : path + "/" + name, false};
}

}  // namespace hearth::cli
