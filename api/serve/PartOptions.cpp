#include "api/serve/PartOptions.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "base/Error.h"
#include "base/Units.h"
#include "controller/egress/images/OperatorProxy.h"

namespace hearth::program {
namespace {

constexpr std::size_t kFewestConnections = 64;
constexpr auto kLinger = std::chrono::milliseconds(500);
/// A tenant may have as many news streams as this number of its tokens together.
constexpr std::size_t kTokensWorth = 4;

}  // namespace

controller::OnDemandRules onDemandRules(const cli::ServeConfig& config) {
    controller::OnDemandRules rules;
    rules.allow = controller::ImageAllowList(*config.on_demand_allow);
    rules.max_sandboxes = *config.on_demand_max_sandboxes;
    rules.keep = std::chrono::seconds(*config.on_demand_keep_seconds);
    rules.max_wait = std::chrono::seconds(*config.on_demand_wait_seconds);
    return rules;
}

egress::DenySet denySet(const cli::ServeConfig& config) {
    return {egress::parseRanges(*config.egress_deny, "egress.deny"),
            egress::parseRanges(*config.egress_exempt, "egress.exempt")};
}

egress::EgressOptions egressOptions(const cli::ServeConfig& config, const Instance& instance,
                                    const std::string& secret_key) {
    egress::EgressOptions options;
    options.mirrors.pypi = *config.mirror_pypi;
    options.mirrors.npm = *config.mirror_npm;
    options.mirrors.hosts = *config.mirror_hosts;
    options.cache_directory = instance.data_dir + "/state/mirror";
    options.cache_bytes = parseBytes(*config.mirror_cache).value();
    options.deny = denySet(config);
    // Checked now, with a clear message: a request would only find that there is no such secret.
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

controller::PlaneOptions planeOptions(const cli::ServeConfig& config, const Instance& instance,
                                      const std::string& secret_key) {
    const std::string& data = instance.data_dir;
    const std::string& shared = *config.shared_volume;
    return {.secret_key = secret_key,
            .default_pool = *config.default_pool,
            .marks = instance.run_dir + "/marks/claimed",
            .layers = shared.empty() ? data + "/state/layers" : shared + "/locks",
            .traces = *config.record_traces,
            .artifacts = shared.empty() ? data + "/state/artifacts" : shared + "/artifacts",
            .on_demand = onDemandRules(config),
            .insecure_registries = *config.insecure_registries,
            .egress = egressOptions(config, instance, secret_key),
            .deny = denySet(config),
            .proxy = egress::OperatorProxy::ofEnvironment()};
}

controller::DiskReserve stateReserve(const cli::ServeConfig& config, const Instance& instance) {
    // Artifacts and the log of the history lie on the shared volume, if there is one.
    return {[state = instance.data_dir + "/state", shared = *config.shared_volume] {
                const auto own = controller::diskSpaceAt(state);
                if (shared.empty()) return own;
                const auto other = controller::diskSpaceAt(shared);
                return other && (!own || other->free < own->free) ? other : own;
            },
            parseBytes(*config.state_reserve).value()};
}

controller::DiskBudget workspaceBudget(const cli::ServeConfig& config, const Instance& instance) {
    return {[path = instance.data_dir + "/storage"] { return controller::diskSpaceAt(path); },
            parseBytes(*config.state_reserve).value(), *config.disk_overcommit};
}

std::vector<controller::ConfiguredToken> configuredTokens(
    const std::vector<cli::TokenConfig>& tokens) {
    std::vector<controller::ConfiguredToken> all;
    all.reserve(tokens.size());
    for (const cli::TokenConfig& token : tokens) {
        all.push_back({token.name, token.tenant, token.role, token.sha256});
    }
    return all;
}

api::FrontOptions frontOptions(const cli::ServeConfig& config, const metrics::Tracer& tracer,
                               api::AccessLog& access) {
    api::FrontOptions options;
    options.listen = *config.listen;
    options.tracer = &tracer;
    if (access.enabled()) options.access = &access;
    options.tls = {.certificate = *config.tls_cert, .key = *config.tls_key};
    options.hosts = *config.allowed_hosts;
    options.origins = *config.allowed_origins;
    options.trusted_proxies = *config.trusted_proxies;
    options.connections_per_address = *config.connections_per_address;
    options.news_of_token = *config.event_streams;
    options.news_of_tenant =
        std::min<std::size_t>(kTokensWorth * *config.event_streams, options.news);
    options.workers = *config.workers;
    // Leaves descriptors for sandboxes and files, which are more important.
    rlimit files{};
    if (::getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur != RLIM_INFINITY) {
        const rlim_t share = options.tls.any() ? 8 : 4;  // with TLS each connection has three
        options.connections = std::clamp<std::size_t>(files.rlim_cur / share, kFewestConnections,
                                                      options.connections);
    }
    // How long an idle worker is kept for its client's next request; other work may take it.
    options.linger = kLinger;
    return options;
}

}  // namespace hearth::program
