#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "base/Error.h"
#include "base/Ids.h"
#include "base/Json.h"
#include "base/yaml/Yaml.h"
#include "pool/runtime/kubernetes/client/ClusterConfig.h"

namespace hearth::pool::kubernetes {
namespace {

/// One file during its reading; relative paths in it start at its folder.
class KubeconfigFile {
public:
    explicit KubeconfigFile(const std::string& path) : path_(path) {
        std::ifstream in(path, std::ios::binary);
        if (!in)
            throw refuse("cannot be read").hint("name a kubeconfig file that the server reads");
        const std::string text{std::istreambuf_iterator<char>(in), {}};
        try {
            json_ = parseYaml(text);
        } catch (const YamlFault& e) {
            throw refuse(e.what());
        }
        if (!json_.is_object()) throw refuse("is not a kubeconfig");
    }

    Error refuse(const std::string& reason) const {
        return {ErrorCode::InvalidArgument, "kubeconfig " + path_ + ": " + reason};
    }

    const Json& json() const { return json_; }

    /// Returns the part `inside` of the entry with this name in a list such as "clusters".
    Json named(const char* list, const char* inside, const std::string& name) const {
        const auto entries = json_.find(list);
        if (entries != json_.end() && entries->is_array()) {
            for (const Json& entry : *entries) {
                if (!entry.is_object() || textAt(entry, "name") != name) continue;
                const auto found = entry.find(inside);
                if (found != entry.end() && found->is_object()) return *found;
            }
        }
        throw refuse("has no \"" + name + "\" in " + list);
    }

    /// Reads a field that names a file, or `field`-data, which has its contents as base64 and wins
    /// if both exist.
    CredentialSource source(const Json& object, const std::string& field) const {
        const std::string data = textAt(object, (field + "-data").c_str());
        const std::string file = textAt(object, field.c_str());
        CredentialSource out;
        if (!data.empty()) {
            if (!base64Decode(data, out.text)) throw refuse(field + "-data is not base64");
        } else if (!file.empty()) {
            out.file = absolute(file);
        }
        return out;
    }

    std::string absolute(const std::string& file) const {
        return (std::filesystem::absolute(path_).parent_path() / file).string();
    }

private:
    std::string path_;
    Json json_;
};

struct Unsupported {
    const char* field;
    const char* hint;
};
constexpr Unsupported kUnsupportedUser[] = {
    {"exec", "Hearth runs no credential plugins; write a token into a file and name it tokenFile"},
    {"auth-provider",
     "kubectl no longer has such plugins either; use token, tokenFile or a client certificate"},
    {"username",
     "API servers accept no passwords since 1.19; use token, tokenFile or a client certificate"},
    {"as", "Hearth does not act as somebody else; give its own user the permissions"}};

void readUser(const KubeconfigFile& file, const Json& user, ClusterConfig& config) {
    for (const Unsupported& one : kUnsupportedUser) {
        if (user.contains(one.field)) {
            throw file.refuse(std::string("its user has ") + one.field).hint(one.hint);
        }
    }
    config.certificate = file.source(user, "client-certificate");
    config.key = file.source(user, "client-key");
    if (config.certificate.empty() != config.key.empty()) {
        throw file.refuse("its user has only one of client-certificate and client-key");
    }
    config.token.text = textAt(user, "token");
    // kubectl also prefers the file, because somebody keeps it up to date.
    const std::string token_file = textAt(user, "tokenFile");
    if (!token_file.empty()) config.token = {.file = file.absolute(token_file)};
}

void readCluster(const KubeconfigFile& file, const Json& cluster, ClusterConfig& config) {
    config.url = textAt(cluster, "server");
    if (config.url.empty()) throw file.refuse("its cluster has no server");
    const auto insecure = cluster.find("insecure-skip-tls-verify");
    if (insecure != cluster.end() && *insecure == true) {
        throw file.refuse("insecure-skip-tls-verify is set")
            .hint("name the cluster's authority in certificate-authority");
    }
    if (!textAt(cluster, "tls-server-name").empty()) {
        throw file.refuse("tls-server-name is not supported")
            .hint("name the server as its certificate does");
    }
    config.authority = file.source(cluster, "certificate-authority");
    config.proxy = textAt(cluster, "proxy-url");
}

}  // namespace

ClusterConfig kubeconfig(const std::string& path, const std::string& context) {
    const KubeconfigFile file(path);
    const std::string wanted = context.empty() ? textAt(file.json(), "current-context") : context;
    if (wanted.empty()) {
        throw file.refuse("has no current-context").hint("kubectl config use-context NAME sets it");
    }
    const Json chosen = file.named("contexts", "context", wanted);
    ClusterConfig config;
    readCluster(file, file.named("clusters", "cluster", textAt(chosen, "cluster")), config);
    const std::string user = textAt(chosen, "user");
    if (!user.empty()) readUser(file, file.named("users", "user", user), config);
    const std::string ns = textAt(chosen, "namespace");
    if (!ns.empty()) config.ns = ns;
    return config;
}

}  // namespace hearth::pool::kubernetes
