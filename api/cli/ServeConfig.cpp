#include "api/cli/ServeConfig.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "api/cli/ConfigFile.h"
#include "api/cli/Console.h"
#include "api/mcp/seeds/Seeds.h"
#include "base/Error.h"
#include "base/Units.h"
#include "controller/ImageAllowList.h"
#include "controller/TokenStore.h"
#include "controller/broker/AllowList.h"
#include "controller/broker/mirror/AptSource.h"
#include "controller/broker/mirror/Fetcher.h"

namespace hearth::cli {
namespace {

constexpr std::string_view kKnownLevels[] = {"debug", "info", "warn", "error"};

const char* warmName(ShutdownWarm warm) {
    return warm == ShutdownWarm::Keep ? "Keep" : "Destroy";
}

/// Lays one flag, from wherever it was given, over a setting; `parse` throws UsageError itself.
template <typename T, typename Parse>
void overlay(const Options& options, const std::string& flag, Setting<T>& setting, Parse parse) {
    const Source source = options.source(flag);
    if (source == Source::Default) return;
    const std::string origin = source == Source::Flag ? "--" + flag : environmentName(flag);
    setting = {parse(origin), source, origin};
}

void overlayText(const Options& options, const std::string& flag, Setting<std::string>& setting) {
    overlay(options, flag, setting, [&](const std::string&) { return *options.get(flag); });
}

void overlayList(const Options& options, const std::string& flag,
                 Setting<std::vector<std::string>>& setting) {
    overlay(options, flag, setting, [&](const std::string&) { return options.all(flag); });
}

std::string joined(const std::vector<std::string>& items) {
    std::string text;
    for (const std::string& item : items) text += (text.empty() ? "" : ", ") + item;
    return text;
}

void checkAddress(const Setting<std::string>& setting, const std::string& key) {
    if (parseListenAddress(setting.value)) return;
    throw UsageError((setting.origin.empty() ? key : setting.origin) + " is \"" + setting.value +
                         "\", which is no address",
                     "write HOST:PORT, as 127.0.0.1:8080 or [::1]:8080");
}

/// Its clients look for it on the port that its documents name.
void serveSeed(ServeConfig& config) {
    const std::string& seed = config.compat.value;
    if (seed.empty()) return;
    if (!mcp::seeds::isSeed(seed)) {
        throw UsageError(config.compat.origin + " is \"" + seed + "\"", "use s0, s1, s2 or s3");
    }
    const std::optional<std::uint16_t> port = mcp::seeds::seedPort(seed);
    if (!port || config.listen.source != Source::Default) return;
    config.listen = {"127.0.0.1:" + std::to_string(*port), config.compat.source,
                     config.compat.origin};
}

void checkImages(const ServeConfig& config) {
    try {
        controller::ImageAllowList(config.on_demand_allow.value);
    } catch (const Error& e) {
        throw UsageError(config.on_demand_allow.origin + ": " + e.what(), e.hint());
    }
    for (const std::string& host : config.insecure_registries.value) {
        if (!host.empty() && controller::registryOf(host + "/x") == host) continue;
        throw UsageError(config.insecure_registries.origin + ": \"" + host + "\" is no registry",
                         "write HOST or HOST:PORT, as registry.example:5000");
    }
}

/// What sandboxes may reach is read once, at the start, with the place where it was said.
void checkOutside(const ServeConfig& config) {
    for (const auto* mirror : {&config.mirror_pypi, &config.mirror_npm}) {
        const std::string& url = mirror->value;
        const bool web = url.starts_with("https://") || url.starts_with("http://");
        if (!url.empty() && (!web || !broker::hostAndPort(url))) {
            throw UsageError(mirror->origin + ": \"" + url + "\" is no URL of an index",
                             "write https://HOST/PATH/");
        }
    }
    try {
        broker::parseAptSources(config.mirror_apt.value);
    } catch (const Error& e) {
        throw UsageError(config.mirror_apt.origin + ": " + e.what(), e.hint());
    }
    for (const std::string& host : config.mirror_hosts.value) {
        if (broker::Destination::parse(host, 443)) continue;
        throw UsageError(config.mirror_hosts.origin + ": \"" + host + "\" is no host",
                         "write HOST or HOST:PORT");
    }
    if (!parseBytes(config.mirror_cache.value)) {
        throw UsageError(
            config.mirror_cache.origin + ": \"" + config.mirror_cache.value + "\" is no size",
            "write 4Gi or 500Mi");
    }
    for (const auto* ranges : {&config.egress_deny, &config.egress_exempt}) {
        for (const std::string& range : ranges->value) {
            if (broker::IpRange::parse(range)) continue;
            throw UsageError(ranges->origin + ": \"" + range + "\" is no range of addresses",
                             "write 10.0.0.0/8 or 2001:4860::/32");
        }
    }
}

/// Calls `visit` with each setting's name, value as JSON and the setting itself.
template <typename Visit>
void eachSetting(const ServeConfig& config, const Visit& visit) {
    Json tokens = Json::array();
    for (const TokenConfig& token : config.tokens.value) {
        Json entry = {{"name", token.name},
                      {"tenant", token.tenant},
                      {"role", controller::roleName(token.role)}};
        if (!token.token_file.empty()) entry["tokenFile"] = token.token_file;
        tokens.push_back(std::move(entry));
    }
    visit("listen", Json(config.listen.value), config.listen);
    visit("opsListen", Json(config.ops_listen.value), config.ops_listen);
    visit("compat", Json(config.compat.value), config.compat);
    visit("dataDir", Json(config.data_dir.value), config.data_dir);
    visit("pools", Json(config.pools.value), config.pools);
    visit("runtime", Json(runtimeName(config.runtime.value)), config.runtime);
    visit("ociRuntime", Json(config.oci_runtime.value), config.oci_runtime);
    visit("dockerAgent", Json(agentModeName(config.docker_agent.value)), config.docker_agent);
    visit("user", Json(config.user.value), config.user);
    visit("defaultPool", Json(config.default_pool.value), config.default_pool);
    visit("tokens", tokens, config.tokens);
    visit("allowedHosts", Json(config.allowed_hosts.value), config.allowed_hosts);
    visit("allowedOrigins", Json(config.allowed_origins.value), config.allowed_origins);
    visit("workers", Json(config.workers.value), config.workers);
    visit("logLevel", Json(config.log_level.value), config.log_level);
    visit("shutdown.warm", Json(warmName(config.shutdown_warm.value)), config.shutdown_warm);
    visit("images.onDemand.allow", Json(config.on_demand_allow.value), config.on_demand_allow);
    visit("images.onDemand.maxSandboxes", Json(config.on_demand_max_sandboxes.value),
          config.on_demand_max_sandboxes);
    visit("images.onDemand.keepSeconds", Json(config.on_demand_keep_seconds.value),
          config.on_demand_keep_seconds);
    visit("images.onDemand.waitSeconds", Json(config.on_demand_wait_seconds.value),
          config.on_demand_wait_seconds);
    visit("images.insecureRegistries", Json(config.insecure_registries.value),
          config.insecure_registries);
    visit("mirrors.pypi", Json(config.mirror_pypi.value), config.mirror_pypi);
    visit("mirrors.npm", Json(config.mirror_npm.value), config.mirror_npm);
    visit("mirrors.apt", Json(config.mirror_apt.value), config.mirror_apt);
    visit("mirrors.hosts", Json(config.mirror_hosts.value), config.mirror_hosts);
    visit("mirrors.cache", Json(config.mirror_cache.value), config.mirror_cache);
    visit("egress.deny", Json(config.egress_deny.value), config.egress_deny);
    visit("egress.exempt", Json(config.egress_exempt.value), config.egress_exempt);
    visit("egress.secrets", Json(config.egress_secrets.value), config.egress_secrets);
    visit("egress.ca", Json(config.egress_ca.value), config.egress_ca);
    visit("limits.requestsPerSecond", Json(config.requests_per_second.value),
          config.requests_per_second);
    visit("limits.burst", Json(config.request_burst.value), config.request_burst);
    visit("audit.file", Json(config.audit_log.value), config.audit_log);
}

std::string cell(const Json& value) {
    if (value.is_string()) return value.get<std::string>();
    if (!value.is_array()) return value.dump();
    std::vector<std::string> items;
    for (const Json& item : value) {
        items.push_back(item.is_string() ? item.get<std::string>()
                                         : item["name"].get<std::string>() + " (" +
                                               item["role"].get<std::string>() + " of " +
                                               item["tenant"].get<std::string>() + ")");
    }
    return joined(items);
}

}  // namespace

const char* runtimeName(RuntimeChoice runtime) {
    switch (runtime) {
        case RuntimeChoice::Auto:
            return "auto";
        case RuntimeChoice::Oci:
            return "oci";
        case RuntimeChoice::Docker:
            return "docker";
        case RuntimeChoice::Fake:
            return "fake";
    }
    return "auto";
}

std::vector<Flag> serveFlags() {
    const auto flag = [](const char* name, const char* value, const char* help,
                         const char* fallback) {
        return Flag{.name = name, .value = value, .help = help, .fallback = fallback};
    };
    std::vector<Flag> flags = {
        flag("listen", "ADDRESS", "Where REST and MCP are served", "127.0.0.1:8080"),
        flag("ops-listen", "ADDRESS", "Where /metrics, /healthz and /readyz are served",
             "127.0.0.1:9464"),
        flag("compat", "SEED",
             "Serve the clients of an earlier system unchanged, s0 to s3, on its port", ""),
        flag("data-dir", "DIR", "Where state and images are kept", "/var/lib/hearth"),
        flag("config", "FILE", "A YAML file of settings, under flags and environment", ""),
        flag("pools", "FILE", "A manifest of pools to declare at start", ""),
        flag("runtime", "NAME", "What makes the sandboxes: auto, oci, docker or fake", "auto"),
        flag("oci-runtime", "PROGRAM", "The OCI runtime's program", "runc"),
        flag("docker-agent", "HOW",
             "How the agent comes into Docker's containers: auto, bind (mounted) or copy", "auto"),
        flag("user", "NAME", "The user that the server runs as beside its launcher", "hearth"),
        flag("default-pool", "NAME", "The pool of requests that name none", "the oldest"),
        flag("allowed-hosts", "HOST", "A further Host that requests may name", ""),
        flag("allowed-origins", "ORIGIN",
             "An Origin whose pages may call the server and read its answers", ""),
        flag("workers", "N", "Threads that answer requests", "128"),
        flag("log-level", "LEVEL", "debug, info, warn or error", "info"),
        flag("shutdown-warm", "WHAT", "Destroy or Keep warm sandboxes at the end", "Destroy"),
        flag("on-demand-images", "PATTERN",
             "Images that claims may use without a pool, fetched if need be: python:*", ""),
        flag("on-demand-max-sandboxes", "N", "Sandboxes of such images at once", "20"),
        flag("on-demand-keep-seconds", "N", "How long such an image is kept unused", "3600"),
        flag("on-demand-wait-seconds", "N", "How long a claim waits for its image", "300"),
        flag("insecure-registries", "HOST",
             "A registry that may speak HTTP or have an unknown certificate", ""),
        flag("mirror-pypi", "URL", "The Python index that sandboxes install from", ""),
        flag("mirror-npm", "URL", "The npm registry that sandboxes install from", ""),
        flag("mirror-apt", "ARCHIVE",
             "A suite of Debian packages for sandboxes, as apt's sources: \"URL SUITE COMPONENT\"",
             ""),
        flag("mirror-hosts", "HOST", "A further host of theirs, if it is an internal one", ""),
        flag("mirror-cache", "SIZE", "How much of their files is kept", "4Gi"),
        flag("egress-deny", "RANGE", "Addresses that no sandbox reaches: nodes, Pods, services",
             ""),
        flag("egress-exempt", "RANGE",
             "Internal addresses that pools may allow although they are no public ones", ""),
        flag("egress-secrets", "DIR",
             "A file for each secret that credentials of pools name; tenants/NAME/: a tenant's own",
             ""),
        flag("egress-ca", "FILE", "Authorities that hosts with credentials may have (PEM)", ""),
        flag("requests-per-second", "N", "What each tenant may send; 0: any number", "0"),
        flag("request-burst", "N", "How many of them at once", "twice as many"),
        flag("audit-log", "FILE", "Where calls that change something, and denied ones, are told",
             ""),
    };
    flags.push_back(
        Flag{.name = "conformance",
             .help = "Also offer the fixtures of the official MCP conformance suite; for tests",
             .environment = false});
    for (Flag& f : flags) {
        f.repeats = f.name == "pools" || f.name == "allowed-hosts" || f.name == "allowed-origins" ||
                    f.name == "on-demand-images" || f.name == "insecure-registries" ||
                    f.name == "mirror-apt" || f.name == "mirror-hosts" || f.name == "egress-deny" ||
                    f.name == "egress-exempt";
    }
    return flags;
}

ServeConfig loadServeConfig(const Options& options) {
    ServeConfig config;
    if (const auto file = options.get("config")) readConfigFile(*file, config);
    overlayText(options, "listen", config.listen);
    overlayText(options, "ops-listen", config.ops_listen);
    overlayText(options, "compat", config.compat);
    overlayText(options, "data-dir", config.data_dir);
    overlayList(options, "pools", config.pools);
    overlay(options, "runtime", config.runtime, [&](const std::string& origin) {
        return runtimeFromName(*options.get("runtime"), origin);
    });
    overlayText(options, "oci-runtime", config.oci_runtime);
    overlay(options, "docker-agent", config.docker_agent, [&](const std::string& origin) {
        return agentModeFromName(*options.get("docker-agent"), origin);
    });
    overlayText(options, "user", config.user);
    overlayText(options, "default-pool", config.default_pool);
    overlayList(options, "allowed-hosts", config.allowed_hosts);
    overlayList(options, "allowed-origins", config.allowed_origins);
    overlay(options, "workers", config.workers, [&](const std::string&) {
        return static_cast<std::uint32_t>(options.number("workers", 128, 1, 1024));
    });
    overlayText(options, "log-level", config.log_level);
    overlay(options, "shutdown-warm", config.shutdown_warm, [&](const std::string& origin) {
        return shutdownWarmFromName(*options.get("shutdown-warm"), origin);
    });
    overlayList(options, "on-demand-images", config.on_demand_allow);
    const auto number = [&](const char* name, Setting<std::uint32_t>& setting, NumberRange range) {
        overlay(options, name, setting, [&](const std::string&) {
            return static_cast<std::uint32_t>(
                options.number(name, setting.value, range.least, range.most));
        });
    };
    number("on-demand-max-sandboxes", config.on_demand_max_sandboxes, kOnDemandSandboxes);
    number("on-demand-keep-seconds", config.on_demand_keep_seconds, kOnDemandKeep);
    number("on-demand-wait-seconds", config.on_demand_wait_seconds, kOnDemandWait);
    overlayList(options, "insecure-registries", config.insecure_registries);
    overlayText(options, "mirror-pypi", config.mirror_pypi);
    overlayText(options, "mirror-npm", config.mirror_npm);
    overlayList(options, "mirror-apt", config.mirror_apt);
    overlayList(options, "mirror-hosts", config.mirror_hosts);
    overlayText(options, "mirror-cache", config.mirror_cache);
    overlayList(options, "egress-deny", config.egress_deny);
    overlayList(options, "egress-exempt", config.egress_exempt);
    overlayText(options, "egress-secrets", config.egress_secrets);
    overlayText(options, "egress-ca", config.egress_ca);
    number("requests-per-second", config.requests_per_second, kRequestRate);
    number("request-burst", config.request_burst, kRequestRate);
    overlayText(options, "audit-log", config.audit_log);
    config.conformance = options.on("conformance");
    serveSeed(config);
    checkImages(config);
    checkOutside(config);
    checkAddress(config.listen, "listen");
    checkAddress(config.ops_listen, "opsListen");
    if (std::ranges::find(kKnownLevels, config.log_level.value) == std::end(kKnownLevels)) {
        throw UsageError(config.log_level.origin + " is \"" + config.log_level.value + "\"",
                         "use debug, info, warn or error");
    }
    if (config.data_dir.value.empty()) {
        throw UsageError(config.data_dir.origin + " is empty", "name a directory");
    }
    return config;
}

RuntimeChoice runtimeFromName(const std::string& name, const std::string& origin) {
    if (name == "auto") return RuntimeChoice::Auto;
    if (name == "oci") return RuntimeChoice::Oci;
    if (name == "docker") return RuntimeChoice::Docker;
    if (name == "fake") return RuntimeChoice::Fake;
    throw UsageError(origin + " is \"" + name + "\"", "use auto, oci, docker or fake");
}

const char* agentModeName(pool::docker::AgentMode mode) {
    switch (mode) {
        case pool::docker::AgentMode::Auto:
            return "auto";
        case pool::docker::AgentMode::Bind:
            return "bind";
        case pool::docker::AgentMode::Copy:
            return "copy";
    }
    return "auto";
}

pool::docker::AgentMode agentModeFromName(const std::string& name, const std::string& origin) {
    if (name == "auto") return pool::docker::AgentMode::Auto;
    if (name == "bind") return pool::docker::AgentMode::Bind;
    if (name == "copy") return pool::docker::AgentMode::Copy;
    throw UsageError(origin + " is \"" + name + "\"", "use auto, bind or copy");
}

ShutdownWarm shutdownWarmFromName(const std::string& name, const std::string& origin) {
    if (name == "Destroy") return ShutdownWarm::Destroy;
    if (name == "Keep") return ShutdownWarm::Keep;
    throw UsageError(origin + " is \"" + name + "\"", "use Destroy or Keep");
}

bool ListenAddress::loopback() const {
    return host.starts_with("127.") || host == "::1" || host == "localhost";
}

std::optional<ListenAddress> parseListenAddress(std::string_view text) {
    const std::size_t colon = text.rfind(':');
    if (colon == std::string_view::npos) return std::nullopt;
    std::string_view host = text.substr(0, colon);
    const std::string_view port = text.substr(colon + 1);
    if (host.starts_with('[') && host.ends_with(']')) {
        host = host.substr(1, host.size() - 2);
        if (host.find(':') == std::string_view::npos) return std::nullopt;
    } else if (host.find(':') != std::string_view::npos) {
        return std::nullopt;
    }
    if (host.empty() || host.find_first_of("[]/ \t") != std::string_view::npos) return std::nullopt;
    ListenAddress address{std::string(host), 0};
    const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), address.port);
    if (error != std::errc{} || end != port.data() + port.size()) return std::nullopt;
    // "127.evil.example" is a name, and who knows where it leads.
    if (address.host.starts_with("127.") &&
        address.host.find_first_not_of("0123456789.") != std::string::npos) {
        return std::nullopt;
    }
    return address;
}

void checkExposure(const ServeConfig& config, bool has_tokens) {
    if (has_tokens) return;
    for (const auto& [key, setting] :
         {std::pair<std::string, const Setting<std::string>&>{"listen", config.listen},
          {"opsListen", config.ops_listen}}) {
        const auto address = parseListenAddress(setting.value);
        if (address && address->loopback()) continue;
        throw UsageError(
            "refusing to listen on " + setting.value + " (" + key +
                ") without a token: whoever reaches it could run code here",
            "make one with `hearth token create --role admin`, or listen on 127.0.0.1");
    }
}

Json configDocument(const ServeConfig& config) {
    Json document = Json::object();
    eachSetting(config, [&](const char* name, const Json& value, const auto& setting) {
        document[name] = {{"value", value}, {"source", sourceName(setting.source)}};
        if (!setting.origin.empty()) document[name]["origin"] = setting.origin;
    });
    return document;
}

std::string configTable(const ServeConfig& config) {
    Table table({"SETTING", "VALUE", "SOURCE", "ORIGIN"});
    eachSetting(config, [&](const char* name, const Json& value, const auto& setting) {
        table.add({name, cell(value), std::string(sourceName(setting.source)), setting.origin});
    });
    return table.text();
}

}  // namespace hearth::cli
