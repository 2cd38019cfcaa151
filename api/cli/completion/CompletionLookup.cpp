#include "api/cli/completion/Completion.h"
#include "api/cli/remote/Remote.h"
#include "api/cli/remote/RemotePath.h"
#include "base/Error.h"
#include "base/Json.h"

namespace hearth::cli {
namespace {

constexpr std::chrono::milliseconds kPatience{1000};

/// The value of a flag in the line, or else of its environment variable.
std::string setting(const std::vector<std::string>& words, const Environment& environment,
                    const std::string& flag, const std::string& fallback) {
    for (std::size_t i = 0; i < words.size(); ++i) {
        if (words[i] == "--" + flag && i + 2 < words.size()) return words[i + 1];
        if (words[i].starts_with("--" + flag + "=")) return words[i].substr(flag.size() + 3);
    }
    return environment(environmentName(flag)).value_or(fallback);
}

std::vector<Candidate> pathsIn(http::HttpClient& client, const std::string& word) {
    const auto typed = RemotePath::parse(word);
    if (!typed) return {};
    const std::string shown = word.substr(0, word.find_last_of(":/") + 1);
    const auto directory = RemotePath::parse(shown);
    const http::ClientResponse answer = client.get(directory->listTarget());
    if (answer.status != 200) return {};
    std::vector<Candidate> all;
    const Json list = parseJson(answer.body);
    for (const Json& item : list.at("items")) {
        const std::string path = textAt(item, "path");
        const std::string name = path.substr(path.rfind('/') + 1);
        all.push_back({shown + name + (textAt(item, "type") == "directory" ? "/" : ""), ""});
    }
    return all;
}

constexpr std::size_t kMostWorkspaces = 10;  ///< the most that are asked for their executions

std::vector<Candidate> executionsIn(http::HttpClient& client) {
    const http::ClientResponse workspaces = client.get("/v1/workspaces?limit=200");
    if (workspaces.status != 200) return {};
    std::vector<Candidate> all;
    std::size_t asked = 0;
    const Json owners = parseJson(workspaces.body);
    for (const Json& owner : owners.at("items")) {
        if (asked++ == kMostWorkspaces) break;
        const http::ClientResponse answer =
            client.get("/v1/workspaces/" + textAt(owner, "id") + "/executions?limit=20");
        if (answer.status != 200) continue;
        const Json list = parseJson(answer.body);
        for (const Json& item : list.at("items")) {
            all.push_back({textAt(item, "id"), textAt(item, "status")});
        }
    }
    return all;
}

std::vector<Candidate> named(http::HttpClient& client, const std::string& kind) {
    if (kind == "@execution") return executionsIn(client);
    const bool pools = kind == "@pool";
    const bool workspaces = kind == "@workspace" || kind == "@remote";
    if (!pools && !workspaces && kind != "@sandbox") return {};
    const std::string target = pools        ? "/v1/pools"
                               : workspaces ? "/v1/workspaces"
                                            : "/v1/sandboxes";
    const http::ClientResponse answer = client.get(target + "?limit=200");
    if (answer.status != 200) return {};
    std::vector<Candidate> all;
    const Json list = parseJson(answer.body);
    for (const Json& item : list.at("items")) {
        std::string about = textAt(item, "pool");
        if (const std::string name = textAt(item, "name"); !name.empty()) about += " " + name;
        all.push_back({pools ? textAt(item.at("metadata"), "name")
                             : textAt(item, "id") + (kind == "@remote" ? ":" : ""),
                       pools ? "" : about});
    }
    return all;
}

}  // namespace

Lookup serverLookup(const std::vector<std::string>& words, const Environment& environment) {
    return [words, environment](const std::string& kind, const std::string& word) {
        try {
            http::ClientOptions options;
            options.connect_timeout = kPatience;
            options.timeout = kPatience;
            options.proxies = http::ProxySettings::from(environment);
            if (const std::string file = setting(words, environment, "ca-file", "");
                !file.empty()) {
                options.tls = std::make_shared<const http::TlsContext>(
                    http::TlsContext::Files{.authority = file});
            }
            const std::string token = setting(words, environment, "token", "");
            if (!token.empty()) options.headers.emplace_back("Authorization", "Bearer " + token);
            http::HttpClient client(setting(words, environment, "url", "http://127.0.0.1:8080"),
                                    options);
            if (kind == "@remote" && word.find(':') != std::string::npos) {
                return pathsIn(client, word);
            }
            return named(client, kind);
        } catch (const std::exception&) {
            // Without a server, or with a different program in its place, there are no names to
            // offer; a message in the middle of the user's line would be worse.
            return std::vector<Candidate>{};
        }
    };
}

}  // namespace hearth::cli
