#include "controller/program/Options.h"

#include <unistd.h>

#include <cstring>

#include "base/Error.h"
#include "base/Units.h"

namespace hearth::program {
namespace {

constexpr auto kLinger = std::chrono::milliseconds(500);

}  // namespace

metrics::LogLevel logLevel(const std::string& name) {
    if (name == "debug") return metrics::LogLevel::Debug;
    if (name == "warn") return metrics::LogLevel::Warn;
    if (name == "error") return metrics::LogLevel::Error;
    return metrics::LogLevel::Info;
}

controller::OnDemandRules onDemandRules(const cli::ServeConfig& config) {
    controller::OnDemandRules rules;
    rules.allow = controller::ImageAllowList(*config.on_demand_allow);
    rules.max_sandboxes = *config.on_demand_max_sandboxes;
    rules.keep = std::chrono::seconds(*config.on_demand_keep_seconds);
    rules.max_wait = std::chrono::seconds(*config.on_demand_wait_seconds);
    rules.insecure_registries = *config.insecure_registries;
    return rules;
}

broker::BrokerOptions brokerOptions(const cli::ServeConfig& config, const Instance& instance,
                                    const std::string& secret_key) {
    broker::BrokerOptions options;
    options.mirrors.pypi = *config.mirror_pypi;
    options.mirrors.npm = *config.mirror_npm;
    options.mirrors.apt = broker::parseAptSources(*config.mirror_apt);
    options.mirrors.hosts = *config.mirror_hosts;
    options.cache_directory = instance.data_dir + "/state/mirror";
    options.cache_bytes = parseBytes(*config.mirror_cache).value();
    options.deny = broker::DenySet(broker::parseRanges(*config.egress_deny, "egress.deny"),
                                   broker::parseRanges(*config.egress_exempt, "egress.exempt"));
    // Told now, in words: a request would only find that there is no such secret.
    const auto readable = [](const auto& setting, int how) {
        if (setting.value.empty() || ::access(setting.value.c_str(), how) == 0) return;
        throw cli::UsageError(
            setting.origin + ": " + setting.value + " cannot be read: " + std::strerror(errno),
            "the user that the server runs as must be able to read it");
    };
    readable(config.egress_secrets, R_OK | X_OK);
    readable(config.egress_ca, R_OK);
    options.secrets_directory = *config.egress_secrets;
    options.ca_file = *config.egress_ca;
    options.seal_key = secret_key;
    return options;
}

std::vector<controller::ConfiguredToken> configuredTokens(const cli::ServeConfig& config) {
    std::vector<controller::ConfiguredToken> tokens;
    for (const cli::TokenConfig& token : *config.tokens) {
        tokens.push_back({token.name, token.tenant, token.role, token.sha256});
    }
    return tokens;
}

api::FrontOptions frontOptions(const cli::ServeConfig& config) {
    api::FrontOptions options;
    options.listen = *config.listen;
    options.hosts = *config.allowed_hosts;
    options.origins = *config.allowed_origins;
    options.workers = *config.workers;
    // A client that comes back soon finds its worker still there; who needs one takes it away.
    options.linger = kLinger;
    return options;
}

}  // namespace hearth::program
