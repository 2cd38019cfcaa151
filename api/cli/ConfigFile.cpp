#include "api/cli/ConfigFile.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "api/cli/TextFile.h"
#include "base/Ids.h"
#include "base/http/Url.h"
#include "controller/TokenStore.h"

namespace hearth::cli {
namespace {

constexpr std::size_t kMaxFile = 1U << 20U;
constexpr std::size_t kLeastToken = 16;

/// Reads one document; knows its file's name, so that each error names the place.
class ConfigReader {
public:
    using Reader = std::function<void(const YAML::Node&, const std::string&)>;

    ConfigReader(std::string name, std::string directory, ServeConfig& config)
        : name_(std::move(name)), directory_(std::move(directory)), config_(config) {}

    void read(const YAML::Node& root) {
        if (root.IsNull()) return;
        const std::map<std::string, Reader> keys = {
            {"listen", text(config_.listen)},
            {"opsListen", text(config_.ops_listen)},
            {"compat", text(config_.compat)},
            {"dataDir", path(config_.data_dir)},
            {"pools",
             [this](const auto& n, const auto& k) {
                 list(config_.pools)(n, k);
                 for (std::string& file : config_.pools.value) file = resolved(file);
             }},
            {"runtime",
             [this](const auto& n, const auto& k) {
                 config_.runtime = setting(runtimeFromName(scalar(n, k), at(n) + " " + k), n);
             }},
            {"ociRuntime", text(config_.oci_runtime)},
            {"dockerAgent",
             [this](const auto& n, const auto& k) {
                 config_.docker_agent =
                     setting(agentModeFromName(scalar(n, k), at(n) + " " + k), n);
             }},
            {"user", text(config_.user)},
            {"defaultPool", text(config_.default_pool)},
            {"tokens", [this](const auto& n, const auto& k) { tokens(n, k); }},
            {"allowedHosts", list(config_.allowed_hosts)},
            {"allowedOrigins", list(config_.allowed_origins)},
            {"workers", [this](const auto& n, const auto& k) { workers(n, k); }},
            {"logLevel", text(config_.log_level)},
            {"shutdown", [this](const auto& n, const auto& k) { shutdown(n, k); }},
            {"images", [this](const auto& n, const auto& k) { images(n, k); }},
            {"mirrors", [this](const auto& n, const auto& k) { mirrors(n, k); }},
            {"egress", [this](const auto& n, const auto& k) { egress(n, k); }},
            {"limits", [this](const auto& n, const auto& k) { limits(n, k); }},
            {"audit",
             [this](const auto& n, const auto& k) {
                 eachKey(n, {"file"}, k, [this](const std::string& inner, const YAML::Node& value) {
                     path(config_.audit_log)(value, inner);
                 });
             }},
        };
        std::vector<std::string> known;
        known.reserve(keys.size());
        for (const auto& [key, reader] : keys) known.push_back(key);
        eachKey(root, known, "the file",
                [&](const std::string& key, const YAML::Node& value) { keys.at(key)(value, key); });
    }

private:
    std::string at(const YAML::Node& node) const {
        return name_ + ":" + std::to_string(node.Mark().line + 1);
    }
    [[noreturn]] void fail(const YAML::Node& node, const std::string& what,
                           const std::string& hint) const {
        throw UsageError(at(node) + ": " + what, hint);
    }
    template <typename T>
    Setting<T> setting(T value, const YAML::Node& node) const {
        return {std::move(value), Source::File, at(node)};
    }
    std::string resolved(const std::string& file) const {
        const std::filesystem::path relative(file);
        return relative.is_absolute() ? file : (std::filesystem::path(directory_) / file).string();
    }

    void eachKey(const YAML::Node& map, const std::vector<std::string>& known,
                 const std::string& where,
                 const std::function<void(const std::string&, const YAML::Node&)>& visit) const {
        if (!map.IsMap()) fail(map, where + " is no mapping", "write `key: value` lines");
        std::set<std::string> seen;
        for (const auto& entry : map) {
            const std::string key = entry.first.IsScalar() ? entry.first.Scalar() : "";
            if (std::ranges::find(known, key) == known.end()) {
                const auto near = suggestion(key, known);
                fail(entry.first, "unknown key \"" + key + "\"",
                     near ? "did you mean " + *near + "?" : "`hearth config` lists the keys");
            }
            if (!seen.insert(key).second) {
                fail(entry.first, "the key \"" + key + "\" is given twice", "give it once");
            }
            visit(key, entry.second);
        }
    }

    std::string scalar(const YAML::Node& node, const std::string& key) const {
        if (!node.IsScalar()) fail(node, key + " is no text", "write `" + key + ": VALUE`");
        return node.Scalar();
    }
    Reader text(Setting<std::string>& target) {
        return [this, &target](const YAML::Node& node, const std::string& key) {
            target = setting(scalar(node, key), node);
        };
    }
    Reader path(Setting<std::string>& target) {
        return [this, &target](const YAML::Node& node, const std::string& key) {
            target = setting(resolved(scalar(node, key)), node);
        };
    }
    Reader list(Setting<std::vector<std::string>>& target) {
        return [this, &target](const YAML::Node& node, const std::string& key) {
            if (!node.IsSequence()) fail(node, key + " is no list", "write `" + key + ": [A, B]`");
            std::vector<std::string> items;
            for (const YAML::Node& item : node) items.push_back(scalar(item, key));
            target = setting(std::move(items), node);
        };
    }
    Setting<std::uint32_t> number(const YAML::Node& node, const std::string& key, NumberRange range,
                                  const std::string& hint) const {
        std::uint32_t count = 0;
        if (!node.IsScalar() || !YAML::convert<std::uint32_t>::decode(node, count) ||
            count < range.least || count > range.most) {
            fail(node,
                 key + " is no number from " + std::to_string(range.least) + " to " +
                     std::to_string(range.most),
                 hint);
        }
        return setting(count, node);
    }
    void workers(const YAML::Node& node, const std::string& key) {
        config_.workers = number(node, key, {1, 1024}, "16 is enough for most");
    }
    void images(const YAML::Node& node, const std::string& key) {
        eachKey(node, {"onDemand", "insecureRegistries"}, key,
                [this](const std::string& inner, const YAML::Node& value) {
                    if (inner == "onDemand") return onDemand(value, inner);
                    list(config_.insecure_registries)(value, inner);
                });
    }
    void mirrors(const YAML::Node& node, const std::string& key) {
        eachKey(node, {"pypi", "npm", "apt", "hosts", "cache"}, key,
                [this](const std::string& inner, const YAML::Node& value) {
                    if (inner == "pypi") text(config_.mirror_pypi)(value, inner);
                    if (inner == "npm") text(config_.mirror_npm)(value, inner);
                    if (inner == "apt") archives(value, inner);
                    if (inner == "hosts") list(config_.mirror_hosts)(value, inner);
                    if (inner == "cache") text(config_.mirror_cache)(value, inner);
                });
    }
    /// One line of an archive, or a list of them.
    void archives(const YAML::Node& node, const std::string& key) {
        if (!node.IsScalar()) return list(config_.mirror_apt)(node, key);
        config_.mirror_apt = setting(std::vector<std::string>{node.Scalar()}, node);
    }
    void egress(const YAML::Node& node, const std::string& key) {
        eachKey(node, {"deny", "exempt", "secrets", "ca"}, key,
                [this](const std::string& inner, const YAML::Node& value) {
                    if (inner == "deny") list(config_.egress_deny)(value, inner);
                    if (inner == "exempt") list(config_.egress_exempt)(value, inner);
                    if (inner == "secrets") path(config_.egress_secrets)(value, inner);
                    if (inner == "ca") path(config_.egress_ca)(value, inner);
                });
    }
    void limits(const YAML::Node& node, const std::string& key) {
        eachKey(node, {"requestsPerSecond", "burst"}, key,
                [this](const std::string& inner, const YAML::Node& value) {
                    Setting<std::uint32_t>& target =
                        inner == "burst" ? config_.request_burst : config_.requests_per_second;
                    target = number(value, inner, kRequestRate, "0 is no limit");
                });
    }
    void onDemand(const YAML::Node& node, const std::string& key) {
        eachKey(node, {"allow", "maxSandboxes", "keepSeconds", "waitSeconds"}, key,
                [this](const std::string& inner, const YAML::Node& value) {
                    if (inner == "allow") list(config_.on_demand_allow)(value, inner);
                    if (inner == "maxSandboxes") {
                        config_.on_demand_max_sandboxes =
                            number(value, inner, kOnDemandSandboxes, "20 is the default");
                    }
                    if (inner == "keepSeconds") {
                        config_.on_demand_keep_seconds =
                            number(value, inner, kOnDemandKeep, "3600 is an hour");
                    }
                    if (inner == "waitSeconds") {
                        config_.on_demand_wait_seconds =
                            number(value, inner, kOnDemandWait, "300 is the default");
                    }
                });
    }
    void shutdown(const YAML::Node& node, const std::string& key) {
        eachKey(node, {"warm"}, key, [this](const std::string& inner, const YAML::Node& value) {
            config_.shutdown_warm = setting(
                shutdownWarmFromName(scalar(value, inner), at(value) + " shutdown.warm"), value);
        });
    }
    void tokens(const YAML::Node& node, const std::string& key) {
        if (!node.IsSequence()) {
            fail(node, key + " is no list", "write `- {name: ci, role: user, sha256: HEX}` lines");
        }
        std::vector<TokenConfig> all;
        for (const YAML::Node& item : node) {
            all.push_back(token(item));
            const auto same = [&](const TokenConfig& t) { return t.name == all.back().name; };
            if (std::ranges::count_if(all, same) > 1) {
                fail(item, "a second token named \"" + all.back().name + "\"", "rename it");
            }
        }
        config_.tokens = setting(std::move(all), node);
    }
    TokenConfig token(const YAML::Node& node) const {
        TokenConfig token;
        eachKey(node, {"name", "tenant", "role", "sha256", "tokenFile"}, "a token",
                [&](const std::string& key, const YAML::Node& value) {
                    const std::string given = scalar(value, key);
                    if (key == "name") token.name = given;
                    if (key == "tenant") token.tenant = given;
                    if (key == "role") token.role = role(value, given);
                    if (key == "sha256") token.sha256 = toLower(given);
                    if (key == "tokenFile") token.token_file = resolved(given);
                });
        if (token.name.empty() || token.tenant.empty()) {
            fail(node, "a token has no name or no tenant", "name it after who holds it");
        }
        if (token.sha256.empty() == token.token_file.empty()) {
            fail(node, "token \"" + token.name + "\" needs exactly one of sha256 and tokenFile",
                 "`printf %s \"$TOKEN\" | sha256sum` gives the hash");
        }
        if (!token.token_file.empty()) {
            const std::string text = readTextFile(token.token_file, 4096);
            const std::size_t end = text.find_last_not_of(" \t\r\n");
            const std::string secret = end == std::string::npos ? "" : text.substr(0, end + 1);
            if (secret.size() < kLeastToken) {
                fail(node, "the token in " + token.token_file + " is shorter than 16 characters",
                     "`openssl rand -hex 32` makes a good one");
            }
            token.sha256 = toHex(sha256(secret));
        }
        if (token.sha256.size() != 64 ||
            token.sha256.find_first_not_of("0123456789abcdef") != std::string::npos) {
            fail(node, "the sha256 of token \"" + token.name + "\" is not 64 hex digits",
                 "`printf %s \"$TOKEN\" | sha256sum` gives it");
        }
        return token;
    }
    controller::Role role(const YAML::Node& node, const std::string& name) const {
        if (const auto known = controller::parseRole(name)) return *known;
        fail(node, "unknown role \"" + name + "\"", "use user, operator or admin");
    }

    std::string name_;
    std::string directory_;
    ServeConfig& config_;
};

}  // namespace

void readConfigText(const std::string& text, const std::string& name, const std::string& directory,
                    ServeConfig& config) {
    YAML::Node root;
    try {
        root = YAML::Load(text);
    } catch (const YAML::ParserException& e) {
        throw UsageError(name + ":" + std::to_string(e.mark.line + 1) + ": " + e.msg,
                         "the file is no valid YAML");
    }
    ConfigReader(name, directory, config).read(root);
}

void readConfigFile(const std::string& path, ServeConfig& config) {
    const std::string text = readTextFile(path, kMaxFile);
    const auto directory = std::filesystem::absolute(path).parent_path();
    readConfigText(text, path, directory.string(), config);
}

}  // namespace hearth::cli
