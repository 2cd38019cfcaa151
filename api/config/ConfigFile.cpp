#include "api/config/ConfigFile.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "api/config/Settings.h"
#include "api/config/TextFile.h"
#include "base/Digest.h"
#include "base/http/Url.h"
#include "controller/contract/RoleName.h"
#include "controller/contract/TenantName.h"

namespace hearth::cli {
namespace {

constexpr std::size_t kMaxFile = 1U << 20U;
constexpr std::size_t kLeastToken = 16;

/// Reads one document by the table of settings; each error names the place.
class ConfigReader {
public:
    ConfigReader(std::string name, std::string directory, Layers& layers)
        : name_(std::move(name)), directory_(std::move(directory)), layers_(layers) {}

    Setting<std::vector<TokenConfig>> read(const YAML::Node& root) {
        if (!root.IsNull()) readMap(root, "", "the file");
        return std::move(tokens_);
    }

private:
    /// Reads the keys of the table that begin with `prefix`.
    void readMap(const YAML::Node& map, const std::string& prefix, const std::string& where) {
        std::vector<std::string> known;
        for (const SettingRow& row : settings()) {
            if (row.key.empty() || !row.key.starts_with(prefix)) continue;
            const std::string key = row.key.substr(prefix.size());
            known.push_back(key.substr(0, key.find('.')));
        }
        eachKey(map, known, where, [&](const std::string& key, const YAML::Node& node) {
            const auto row = std::ranges::find(settings(), prefix + key, &SettingRow::key);
            if (row == settings().end()) return readMap(node, prefix + key + ".", key);
            if (row->type.shape == SettingType::Shape::Tokens) return tokens(node, key);
            layers_.put(row->name(), {texts(row->type, node, key), Source::File, at(node)});
        });
    }

    std::vector<std::string> texts(const SettingType& type, const YAML::Node& node,
                                   const std::string& key) const {
        std::vector<std::string> items;
        if (!type.list()) {
            items.push_back(scalar(node, key));
        } else if (node.IsSequence()) {
            for (const YAML::Node& item : node) items.push_back(scalar(item, key));
        } else {
            fail(node, key + " must be a list", "write `" + key + ": [A, B]`");
        }
        if (type.shape == SettingType::Shape::Path || type.shape == SettingType::Shape::Paths) {
            for (std::string& item : items) item = resolved(item);
        }
        return items;
    }

    std::string at(const YAML::Node& node) const {
        return name_ + ":" + std::to_string(node.Mark().line + 1);
    }
    [[noreturn]] void fail(const YAML::Node& node, const std::string& what,
                           const std::string& hint) const {
        throw UsageError(at(node) + ": " + what, hint);
    }
    std::string resolved(const std::string& file) const {
        const std::filesystem::path relative(file);
        return relative.is_absolute() ? file : (std::filesystem::path(directory_) / file).string();
    }

    void eachKey(const YAML::Node& map, const std::vector<std::string>& known,
                 const std::string& where,
                 const std::function<void(const std::string&, const YAML::Node&)>& visit) const {
        if (!map.IsMap()) fail(map, where + " must be a mapping", "write `key: value` lines");
        std::set<std::string> seen;
        for (const auto& entry : map) {
            const std::string key = entry.first.IsScalar() ? entry.first.Scalar() : "";
            if (std::ranges::find(known, key) == known.end()) {
                throw unknownWord(at(entry.first) + ": unknown key \"" + key + "\"", key, known,
                                  "`hearth config` lists the keys");
            }
            if (!seen.insert(key).second) {
                fail(entry.first, "the key \"" + key + "\" is given twice", "give it once");
            }
            visit(key, entry.second);
        }
    }

    std::string scalar(const YAML::Node& node, const std::string& key) const {
        if (!node.IsScalar() || node.Scalar().find('\0') != std::string::npos) {
            fail(node, key + " must be a text", "write `" + key + ": VALUE`");
        }
        return node.Scalar();
    }
    void tokens(const YAML::Node& node, const std::string& key) {
        if (!node.IsSequence()) {
            fail(node, key + " must be a list",
                 "write `- {name: ci, role: user, sha256: HEX}` lines");
        }
        std::vector<TokenConfig> all;
        for (const YAML::Node& item : node) {
            all.push_back(token(item));
            const auto same = [&](const TokenConfig& t) { return t.name == all.back().name; };
            if (std::ranges::count_if(all, same) > 1) {
                fail(item, "two tokens have the name \"" + all.back().name + "\"",
                     "rename one of them");
            }
        }
        tokens_ = {std::move(all), Source::File, at(node)};
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
            fail(node, "a token has no name or no tenant", "give it both");
        }
        if (!controller::isTenantName(token.tenant)) {
            fail(node, "\"" + token.tenant + "\" is not a tenant's name",
                 std::string("it ") + controller::kTenantNameRule);
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
        if (const auto known = controller::kRoles.find(name)) return *known;
        fail(node, "unknown role \"" + name + "\"", "use " + anyOf(controller::kRoles.all()));
    }

    std::string name_;
    std::string directory_;
    Layers& layers_;
    Setting<std::vector<TokenConfig>> tokens_;
};

}  // namespace

Setting<std::vector<TokenConfig>> readConfigText(const std::string& text, const std::string& name,
                                                 const std::string& directory, Layers& layers) {
    YAML::Node root;
    try {
        root = YAML::Load(text);
    } catch (const YAML::ParserException& e) {
        throw UsageError(name + ":" + std::to_string(e.mark.line + 1) + ": " + e.msg,
                         "the file is not valid YAML");
    }
    return ConfigReader(name, directory, layers).read(root);
}

Setting<std::vector<TokenConfig>> readConfigFile(const std::string& path, Layers& layers) {
    const std::string text = readTextFile(path, kMaxFile);
    const auto directory = std::filesystem::absolute(path).parent_path();
    return readConfigText(text, path, directory.string(), layers);
}

}  // namespace hearth::cli
