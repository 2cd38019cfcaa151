#include "api/config/Settings.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <nlohmann/json.hpp>
#include <type_traits>

#include "api/command/Console.h"
#include "api/http/admission/ProxyRules.h"
#include "api/mcp/seeds/Seeds.h"
#include "base/Error.h"
#include "base/Texts.h"
#include "base/Units.h"
#include "controller/contract/RoleName.h"
#include "controller/egress/mirror/store/Fetcher.h"
#include "controller/egress/policy/AllowList.h"
#include "controller/spec/ImageAllowList.h"

namespace hearth::cli {
namespace {

using Config = ServeConfig;
using TextList = std::vector<std::string>;
using Shape = SettingType::Shape;
/// Throws for wrong texts.
using Check = std::function<void(const TextList&)>;
template <typename T, std::size_t N>
using Words = std::array<std::pair<const char*, T>, N>;

constexpr auto kRuntimes = std::to_array<std::pair<const char*, RuntimeChoice>>({
    {"auto", RuntimeChoice::Auto},
#define HEARTH_RUNTIME(name, word) {word, RuntimeChoice::name},
#include "api/config/Runtimes.def"
#undef HEARTH_RUNTIME
});
constexpr Words<pool::docker::AgentMode, 3> kAgentModes{{{"auto", pool::docker::AgentMode::Auto},
                                                         {"bind", pool::docker::AgentMode::Bind},
                                                         {"copy", pool::docker::AgentMode::Copy}}};
constexpr Words<ShutdownWarm, 2> kShutdowns{
    {{"Destroy", ShutdownWarm::Destroy}, {"Keep", ShutdownWarm::Keep}}};
constexpr Words<metrics::LogFormat, 2> kLogFormats{
    {{"logfmt", metrics::LogFormat::Logfmt}, {"json", metrics::LogFormat::Json}}};
constexpr Words<bool, 2> kSwitch{{{"false", false}, {"true", true}}};

/// The names of an enumeration that has a table of texts.
template <typename T, std::size_t N>
constexpr Words<T, N> wordsOf(const Texts<T, N>& texts) {
    Words<T, N> words{};
    for (std::size_t i = 0; i < N; ++i) words[i] = {texts.texts[i], static_cast<T>(i)};
    return words;
}

template <typename T, std::size_t N>
const char* wordFor(const Words<T, N>& words, T value) {
    return std::ranges::find(words, value, [](const auto& word) { return word.second; })->first;
}

template <typename T, typename Parse, typename Show>
SettingType typed(Setting<T> Config::*member, const Parse& parse, const Show& show) {
    SettingType type;
    type.set = [member, parse](Config& config, const LayeredValue& given) {
        config.*member = {parse(given.texts), given.source, given.origin};
    };
    type.show = [member, show](const Config& config) -> Setting<Json> {
        const Setting<T>& setting = config.*member;
        return {show(setting.value), setting.source, setting.origin};
    };
    return type;
}

/// A setting that is a text, or a list of texts.
template <typename T>
SettingType plain(Setting<T> Config::*member, Shape shape, const Check& check = {}) {
    const auto parse = [check](const TextList& texts) -> T {
        if (check) check(texts);
        if constexpr (std::is_same_v<T, TextList>)
            return texts;
        else
            return texts.back();
    };
    SettingType type = typed(member, parse, [](const T& value) { return Json(value); });
    type.shape = shape;
    return type;
}

template <typename T, std::size_t N>
SettingType choice(Setting<T> Config::*member, const Words<T, N>& words) {
    TextList choices;
    for (const auto& [word, value] : words) choices.emplace_back(word);
    const auto parse = [words, choices](const TextList& texts) {
        for (const auto& [word, value] : words) {
            if (texts.back() == word) return value;
        }
        throw UsageError("\"" + texts.back() + "\"", "use " + anyOf(choices));
    };
    const auto show = [words](T value) { return Json(wordFor(words, value)); };
    SettingType type = typed(member, parse, show);
    type.words = anyOf(choices);
    type.choices = choices;
    return type;
}

SettingType number(Setting<std::uint32_t> Config::*member, std::uint32_t least,
                   std::uint32_t most) {
    const std::string words =
        "a number from " + std::to_string(least) + " to " + std::to_string(most);
    const auto parse = [words, least, most](const TextList& texts) {
        const std::string& given = texts.back();
        std::uint32_t value = 0;
        const auto [end, error] = std::from_chars(given.data(), given.data() + given.size(), value);
        if (error != std::errc{} || end != given.data() + given.size() || value < least ||
            value > most) {
            throw UsageError("not " + words + ": \"" + given + "\"", "give a whole number");
        }
        return value;
    };
    SettingType type = typed(member, parse, [](std::uint32_t value) { return Json(value); });
    type.words = words;
    return type;
}

/// Set only by the file, which has its own reader for them.
SettingType tokens() {
    SettingType type{.shape = Shape::Tokens};
    type.show = [](const Config& config) -> Setting<Json> {
        Json all = Json::array();
        for (const TokenConfig& token : *config.tokens) {
            all.push_back({{"name", token.name},
                           {"tenant", token.tenant},
                           {"role", controller::kRoles.of(token.role)}});
            if (!token.token_file.empty()) all.back()["tokenFile"] = token.token_file;
        }
        return {std::move(all), config.tokens.source, config.tokens.origin};
    };
    return type;
}

/// Checks that every text is `right`; else it is not `what`.
Check each(const char* what, const char* hint, bool (*right)(const std::string&)) {
    return [what, hint, right](const TextList& texts) {
        for (const std::string& one : texts) {
            if (!right(one)) throw UsageError("\"" + one + "\", which is not " + what, hint);
        }
    };
}

const Check kAddress =
    each("an address", "write HOST:PORT, such as 127.0.0.1:8080 or [::1]:8080",
         [](const std::string& one) { return parseListenAddress(one).has_value(); });
const Check kSeed = each("a seed", "use s0, s1, s2 or s3", [](const std::string& one) {
    return one.empty() || mcp::seeds::isSeed(one);
});
const Check kDirectory =
    each("a directory", "name a directory", [](const std::string& one) { return !one.empty(); });
const Check kLibrary =
    each("a library", "write its name, such as libcuda.so.1, or an absolute path",
         [](const std::string& one) {
             return !one.empty() && (one.front() == '/' || one.find('/') == std::string::npos);
         });
const Check kSize = each("a size", "write 256Mi or 4Gi",
                         [](const std::string& one) { return parseBytes(one).has_value(); });
const Check kHost = each("a host", "write HOST or HOST:PORT", [](const std::string& one) {
    return egress::Destination::parse(one, 443).has_value();
});
const Check kRange =
    each("a range of addresses", "write 10.0.0.0/8 or 2001:4860::/32",
         [](const std::string& one) { return egress::IpRange::parse(one).has_value(); });
const Check kIndex =
    each("the URL of an index", "write https://HOST/PATH/", [](const std::string& one) {
        const bool web = one.starts_with("https://") || one.starts_with("http://");
        return one.empty() || (web && egress::hostAndPort(one));
    });
const Check kRegistry = each("a registry", "write HOST or HOST:PORT, such as registry.example:5000",
                             [](const std::string& one) {
                                 return !one.empty() && pool::image::registryOf(one + "/x") == one;
                             });
const Check kImages = [](const TextList& patterns) { controller::ImageAllowList{patterns}; };
const Check kProxies = [](const TextList& ranges) { api::ProxyRules{ranges}; };

using C = Config;
// To add a setting: a line here, and its field in ServeConfig.
// Flag, name of its value, key in the file, type, default, help.
const std::vector<SettingRow> kSettings = {
    {"listen", "ADDRESS", "listen", plain(&C::listen, Shape::Text, kAddress), "127.0.0.1:8080",
     "Where REST and MCP are served"},
    {"tls-cert", "FILE", "tls.cert", plain(&C::tls_cert, Shape::Path), "",
     "A certificate with its chain, in PEM: REST and MCP are then served over TLS"},
    {"tls-key", "FILE", "tls.key", plain(&C::tls_key, Shape::Path), "",
     "The key of that certificate; both files are read again when they change"},
    {"ops-listen", "ADDRESS", "opsListen", plain(&C::ops_listen, Shape::Text, kAddress),
     "127.0.0.1:9464", "Where /metrics, /healthz and /readyz are served"},
    {"compat", "SEED", "compat", plain(&C::compat, Shape::Text, kSeed), "",
     "Serve the clients of an earlier system (s0 to s3) unchanged, on that system's port"},
    {"data-dir", "DIR", "dataDir", plain(&C::data_dir, Shape::Path, kDirectory), kDataDirectory,
     "Where state and images are kept"},
    {"config", "FILE", "", {}, "", "A YAML file of settings; flags and environment override it"},
    {"pools", "FILE", "pools", plain(&C::pools, Shape::Paths), "",
     "A manifest of pools to declare at each start; it overrides changes that were applied "
     "since"},
    {"pools-once", "FILE", "poolsOnce", plain(&C::pools_once, Shape::Paths), "",
     "A manifest of pools to declare at a start; pools that exist already are left as they "
     "are"},
    {"quotas", "FILE", "quotas", plain(&C::quotas, Shape::Paths), "",
     "Quotas of tenants, a mapping of names to limits; they override quotas set over REST"},
    {"runtime", "NAME", "runtime", choice(&C::runtime, kRuntimes), "auto",
     "The runtime that makes the sandboxes: auto, oci, docker or kubernetes"},
    {"oci-runtime", "PROGRAM", "ociRuntime", plain(&C::oci_runtime, Shape::Text), "runc",
     "The OCI runtime's program"},
    {"docker-agent", "HOW", "dockerAgent", choice(&C::docker_agent, kAgentModes), "auto",
     "How the agent gets into Docker's containers: auto, bind (mounted) or copy"},
    {"kubeconfig", "FILE", "kubeconfig", plain(&C::kubeconfig, Shape::Text), "",
     "How to reach the cluster of --runtime kubernetes; default: as the Pod of the server"},
    {"agent-image", "IMAGE", "agentImage", plain(&C::agent_image, Shape::Text), "",
     "The image that brings the agent into Pods (hearth agent-folder)"},
    {"keys", "DIR", "keys", plain(&C::keys, Shape::Path), "",
     "A directory with the files key and agent-key (32 random bytes each), the same for all "
     "replicas"},
    {"owner", "KIND/NAME", "owner", plain(&C::owner, Shape::Text), "",
     "The cluster object that owns the Pods, such as deployments.apps/hearth; they are deleted "
     "with it"},
    {"lease", "NAME", "lease", plain(&C::lease, Shape::Text), "",
     "The Lease by which the replicas in a cluster choose their leader"},
    {"shared-volume", "DIR", "sharedVolume.dir", plain(&C::shared_volume, Shape::Path), "",
     "The mount point of a volume that all replicas share: history, artifacts, layers"},
    {"shared-volume-claim", "NAME", "sharedVolume.claim",
     plain(&C::shared_volume_claim, Shape::Text), "",
     "The PersistentVolumeClaim of that volume; Pods get the packages of their pool from it"},
    {"advertise", "ADDRESS", "advertise", plain(&C::advertise, Shape::Text), "",
     "HOST:PORT where other replicas reach this one; default: the address of --listen"},
    {"custom-resources", "", "customResources", choice(&C::custom_resources, kSwitch), "false",
     "Serve the SandboxPool and Workspace objects of the cluster's namespace (hearth crds)"},
    {"public-url", "URL", "publicUrl", plain(&C::public_url, Shape::Text), "",
     "The server's URL for clients; sent to those that claim by an object or need a token"},
    {"gpu-library", "FILE", "gpuLibrary", plain(&C::gpu_library, Shape::Text, kLibrary),
     "libnvidia-ml.so.1", "NVIDIA's management library; none: do not look for GPUs"},
    {"cuda-library", "FILE", "cudaLibrary", plain(&C::cuda_library, Shape::Text, kLibrary),
     "libcuda.so.1", "CUDA's driver library, used to scrub GPUs"},
    {"cdi-folders", "DIR", "cdiFolders", plain(&C::cdi_folders, Shape::Paths),
     "/etc/cdi,/var/run/cdi",
     "Folders of CDI files, which say what a container with a GPU needs; a later folder wins"},
    {"user", "NAME", "user", plain(&C::user, Shape::Text), "hearth",
     "The user that the server runs as; only its launcher stays root"},
    {"default-pool", "NAME", "defaultPool", plain(&C::default_pool, Shape::Text), "",
     "The pool for requests that name none; default: the oldest"},
    {"", "TOKEN", "tokens", tokens(), "",
     "Tokens that are valid while the file lists them; the server follows its changes"},
    {"oidc", "FILE", "oidc", plain(&C::oidc, Shape::Path), "",
     "OpenID Connect issuers whose tokens are accepted, and what their claims mean"},
    {"allowed-hosts", "HOST", "allowedHosts", plain(&C::allowed_hosts, Shape::List), "",
     "An additional Host that requests may name"},
    {"allowed-origins", "ORIGIN", "allowedOrigins", plain(&C::allowed_origins, Shape::List), "",
     "An Origin whose pages may call the server and read its answers"},
    {"trusted-proxies", "RANGE", "trustedProxies",
     plain(&C::trusted_proxies, Shape::List, kProxies), "",
     "Proxies whose X-Forwarded-For is trusted; they may open any number of connections"},
    {"workers", "N", "workers", number(&C::workers, 1, 1024), "128",
     "Threads that answer requests"},
    {"log-level", "LEVEL", "logLevel", choice(&C::log_level, wordsOf(metrics::kLogLevels)), "info",
     "debug, info, warn or error"},
    {"log-format", "FORMAT", "logFormat", choice(&C::log_format, kLogFormats), "logfmt",
     "How a line of the log is written: logfmt or json"},
    {"shutdown-warm", "WHAT", "shutdown.warm", choice(&C::shutdown_warm, kShutdowns), "Destroy",
     "Destroy or Keep the warm sandboxes when the server stops"},
    {"shutdown-delay-seconds", "N", "shutdown.delaySeconds",
     number(&C::shutdown_delay_seconds, 0, 300), "0",
     "How long to keep serving after SIGTERM, while /readyz sends load balancers elsewhere"},
    {"on-demand-images", "PATTERN", "images.onDemand.allow",
     plain(&C::on_demand_allow, Shape::List, kImages), "",
     "Images that claims may use without a pool, fetched on demand: python:*"},
    {"on-demand-max-sandboxes", "N", "images.onDemand.maxSandboxes",
     number(&C::on_demand_max_sandboxes, 1, 1000), "20", "Sandboxes of such images at once"},
    {"on-demand-keep-seconds", "N", "images.onDemand.keepSeconds",
     number(&C::on_demand_keep_seconds, 1, 30 * 86'400), "3600",
     "How long such an image is kept unused"},
    {"on-demand-wait-seconds", "N", "images.onDemand.waitSeconds",
     number(&C::on_demand_wait_seconds, 1, 600), "300", "How long a claim waits for its image"},
    {"insecure-registries", "HOST", "images.insecureRegistries",
     plain(&C::insecure_registries, Shape::List, kRegistry), "",
     "A registry that may speak HTTP or have an unknown certificate"},
    {"mirror-pypi", "URL", "mirrors.pypi", plain(&C::mirror_pypi, Shape::Text, kIndex), "",
     "The Python index that sandboxes install from"},
    {"mirror-npm", "URL", "mirrors.npm", plain(&C::mirror_npm, Shape::Text, kIndex), "",
     "The npm registry that sandboxes install from"},
    {"mirror-hosts", "HOST", "mirrors.hosts", plain(&C::mirror_hosts, Shape::List, kHost), "",
     "An internal host that these indexes may name for their files"},
    {"mirror-cache", "SIZE", "mirrors.cache", plain(&C::mirror_cache, Shape::Text, kSize), "4Gi",
     "The size of the mirror's cache of package files"},
    {"egress-deny", "RANGE", "egress.deny", plain(&C::egress_deny, Shape::List, kRange), "",
     "Addresses that no sandbox reaches: nodes, Pods, services"},
    {"egress-exempt", "RANGE", "egress.exempt", plain(&C::egress_exempt, Shape::List, kRange), "",
     "Internal addresses that pools may allow"},
    {"egress-secrets", "DIR", "egress.secrets", plain(&C::egress_secrets, Shape::Path), "",
     "A directory with a file for each secret of credentials; tenants/NAME/ for a tenant's "
     "own"},
    {"egress-ca", "FILE", "egress.ca", plain(&C::egress_ca, Shape::Path), "",
     "Extra authorities to trust for hosts with credentials (PEM)"},
    {"requests-per-second", "N", "limits.requestsPerSecond",
     number(&C::requests_per_second, 0, 1'000'000), "0",
     "Requests per second of each tenant; 0: any number"},
    {"request-burst", "N", "limits.burst", number(&C::request_burst, 0, 1'000'000), "0",
     "The most requests in one burst; 0: twice that rate"},
    {"connections-per-address", "N", "limits.connectionsPerAddress",
     number(&C::connections_per_address, 4, 4096), "512",
     "The most connections of one address, without streams and waiting calls"},
    {"event-streams", "N", "limits.eventStreams", number(&C::event_streams, 1, 1024), "64",
     "The most event streams of one token; a newer one ends the oldest"},
    {"disk-overcommit", "N", "storage.overcommit", number(&C::disk_overcommit, 1, 1000), "4",
     "How many times the disk's size may be promised to workspaces"},
    {"state-reserve", "SIZE", "storage.reserve", plain(&C::state_reserve, Shape::Text, kSize),
     "256Mi", "Free disk that is kept for the server's own state"},
    {"audit-log", "FILE", "audit.file", plain(&C::audit_log, Shape::Path), "",
     "The file that records changes and denied calls"},
    {"access-log", "FILE", "accessLog", plain(&C::access_log, Shape::Path), "",
     "The file that gets a line for each request"},
    {"record-traces", "DIR", "traces", plain(&C::record_traces, Shape::Path), "",
     "A directory for the arrival times of claims, one file per pool, for hearth simulate"},
    {"open-loopback", "", "openLoopback", choice(&C::open_loopback, kSwitch), "false",
     "Serve loopback callers without a token even if all tokens were lost"},
};

std::string cell(const Json& value) {
    if (value.is_string()) return value.get<std::string>();
    if (!value.is_array()) return value.dump();
    std::string text;
    for (const Json& item : value) {
        text += text.empty() ? "" : ", ";
        text += item.is_string() ? item.get<std::string>()
                                 : textAt(item, "name") + " (" + textAt(item, "role") + " of " +
                                       textAt(item, "tenant") + ")";
    }
    return text;
}

/// Calls `visit` with the name and value of each setting that `hearth config` shows.
template <typename Visit>
void eachShown(const Config& config, const Visit& visit) {
    for (const SettingRow& row : settings()) {
        if (row.type.show && !row.key.empty()) visit(row.key, row.type.show(config));
    }
}

std::string code(const std::string& text) {
    return text.empty() ? "" : "`" + text + "`";
}

}  // namespace

const std::vector<SettingRow>& settings() {
    return kSettings;
}

ServeConfig::ServeConfig(Layers layers) {
    for (const SettingRow& row : settings()) {
        if (!row.type.set) continue;
        const bool none = row.type.list() && row.fallback.empty();
        layers.put(row.name(), {none ? TextList{} : TextList{row.fallback}});
        const LayeredValue given = layers.get(row.name()).value();
        const std::string key = row.key.substr(row.key.rfind('.') + 1);
        const std::string place = given.origin + (given.source == Source::File ? ": " + key : "");
        try {
            row.type.set(*this, given);
        } catch (const UsageError& e) {
            throw UsageError(place + " is " + e.what(), e.hint());
        } catch (const Error& e) {
            throw UsageError(place + ": " + e.what(), e.hint());
        }
    }
    if (tls_cert.value.empty() != tls_key.value.empty()) {
        throw UsageError(tls_cert.value.empty() ? "--tls-key without --tls-cert"
                                                : "--tls-cert without --tls-key",
                         "a certificate and its key go together");
    }
}

const char* runtimeName(RuntimeChoice runtime) {
    return wordFor(kRuntimes, runtime);
}

const char* agentModeName(pool::docker::AgentMode mode) {
    return wordFor(kAgentModes, mode);
}

std::vector<Flag> serveFlags() {
    std::vector<Flag> flags;
    for (const SettingRow& row : settings()) {
        if (row.flag.empty()) continue;
        const bool own = !row.key.empty() || !row.type.set;  // not for one call only
        flags.push_back({.name = row.flag,
                         .value = row.value,
                         .help = row.help,
                         .fallback = row.value.empty() ? "" : row.fallback,
                         .repeats = row.type.list(),
                         .environment = own});
        if (!row.value.empty() && !row.type.choices.empty())
            flags.back().choices = row.type.choices;
    }
    return flags;
}

Json configDocument(const ServeConfig& config) {
    Json document = Json::object();
    eachShown(config, [&](const std::string& name, const Setting<Json>& setting) {
        document[name] = {{"value", setting.value}, {"source", sourceName(setting.source)}};
        if (!setting.origin.empty()) document[name]["origin"] = setting.origin;
    });
    return document;
}

std::string configTable(const ServeConfig& config) {
    Table table({"SETTING", "VALUE", "SOURCE", "ORIGIN"});
    eachShown(config, [&](const std::string& name, const Setting<Json>& setting) {
        table.add(
            {name, cell(setting.value), std::string(sourceName(setting.source)), setting.origin});
    });
    return table.text();
}

std::string configReference() {
    std::string page = R"(# Configuration

This page is printed by `hearth config reference`; a test compares the two.

A value is taken from the first place that gives one: the flag of `hearth serve`, the variable of
the environment, the YAML file that `--config` (or `HEARTH_CONFIG`) names, the default. A list is
taken as a whole. `hearth config` prints each value and where it came from. Unknown keys and wrong
values stop the start, with the place in the message.

```yaml
listen: 127.0.0.1:8080
pools: [pools/python.yaml]          # paths are relative to this file
images:
  onDemand: {allow: ["python:*"]}
tokens:                             # in the file only
- {name: ci, tenant: default, role: user, tokenFile: /run/secrets/ci}
- {name: ops, role: admin, sha256: 64 hex digits of the token's SHA-256}
```

A dot in a key stands for a nested mapping. A flag with a list is repeated; its variable separates
the items by commas.

| Key | Flag and variable | Value | Default | Meaning |
|---|---|---|---|---|
)";
    for (const SettingRow& row : settings()) {
        std::string given = row.flag.empty() ? "" : code("--" + row.flag);
        if (!given.empty()) given += "<br>" + code(environmentName(row.flag));
        const std::string value = row.type.words.empty() ? row.value : row.type.words;
        for (const std::string& cell :
             {code(row.key), given, value + (row.type.list() ? ", a list" : ""), code(row.fallback),
              row.help}) {
            page.append("| ").append(cell).append(" ");
        }
        page.append("|\n");
    }
    return page;
}

}  // namespace hearth::cli
