#include "api/cli/remote/References.h"

#include <algorithm>

#include "base/Error.h"
#include "base/http/Url.h"

namespace hearth::cli {
namespace {

constexpr std::size_t kIdDigits = 32;
constexpr std::size_t kMostShown = 5;

bool isWholeId(const std::string& word, std::string_view prefix) {
    return word.starts_with(prefix) && word.size() == prefix.size() + kIdDigits &&
           word.find_first_not_of("0123456789abcdef", prefix.size()) == std::string::npos;
}

void refuseEmpty(const std::string& word, const std::string& what, const std::string& hint) {
    if (word.empty()) throw UsageError("the name of the " + what + " is empty", hint);
}

std::vector<std::pair<std::string, std::string>> idsIn(const std::vector<Json>& items) {
    std::vector<std::pair<std::string, std::string>> ids;
    for (const Json& item : items) ids.emplace_back(textAt(item, "id"), textAt(item, "name"));
    return ids;
}

}  // namespace

std::string chooseId(const std::string& word,
                     const std::vector<std::pair<std::string, std::string>>& candidates) {
    std::vector<std::string> fitting;
    for (const auto& [id, name] : candidates) {
        if (id == word) return id;
        if (!name.empty() && name == word) fitting.push_back(id);
    }
    if (fitting.empty() && !word.empty()) {
        for (const auto& [id, name] : candidates) {
            const std::size_t digits = id.find('_') + 1;
            if (id.starts_with(word) || id.substr(digits).starts_with(word)) fitting.push_back(id);
        }
    }
    if (fitting.size() > 1) {
        std::string all;
        for (std::size_t i = 0; i < std::min(fitting.size(), kMostShown); ++i) {
            all += (i == 0 ? "" : ", ") + fitting[i];
        }
        throw UsageError(
            "\"" + word + "\" is ambiguous: it matches " + std::to_string(fitting.size()),
            "write more of the id: " + all);
    }
    return fitting.empty() ? std::string() : fitting[0];
}

std::string workspaceId(Remote& remote, const std::string& word) {
    refuseEmpty(word, "workspace", "`hearth ls` lists them; is the variable empty?");
    if (isWholeId(word, "ws_")) return word;
    const std::string id = chooseId(word, idsIn(remote.list("/v1/workspaces")));
    if (!id.empty() || word.starts_with("ws_")) return id.empty() ? word : id;
    throw Error(ErrorCode::NotFound, "no workspace " + word)
        .hint(word.starts_with("ex_") ? "that is an execution; `hearth ps --all` shows whose"
                                      : "`hearth ls` lists yours, `hearth open` makes one");
}

std::string executionId(Remote& remote, const std::string& word) {
    refuseEmpty(word, "execution", "`hearth ps --all` lists them; is the variable empty?");
    if (isWholeId(word, "ex_")) return word;
    auto all = idsIn(remote.list("/v1/executions"));  // all running ones, also in one shots
    const std::vector<Json> workspaces = remote.list("/v1/workspaces");
    for (const Json& workspace : workspaces) {
        try {
            const auto own = idsIn(remote.list(
                "/v1/workspaces/" + percentEncode(textAt(workspace, "id")) + "/executions"));
            all.insert(all.end(), own.begin(), own.end());
        } catch (const RemoteError& e) {
            if (e.status() != 404 && e.status() != 410) throw;  // it ended meanwhile
        }
    }
    std::ranges::sort(all);
    all.erase(std::unique(all.begin(), all.end()), all.end());
    const std::string id = chooseId(word, all);
    if (!id.empty()) return id;
    if (!chooseId(word, idsIn(workspaces)).empty()) {
        throw UsageError("\"" + word + "\" is a workspace, not an execution",
                         "`hearth ps --all " + word + "` lists its executions");
    }
    throw Error(ErrorCode::NotFound, "no execution " + word)
        .hint("an ended execution that ran outside a workspace needs its whole id");
}

std::string idOf(Remote& remote, const std::string& kind, const std::string& word) {
    if (kind == "workspace") return workspaceId(remote, word);
    if (kind == "execution") return executionId(remote, word);
    return word;
}

}  // namespace hearth::cli
