#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/command/Options.h"
#include "base/Json.h"
#include "controller/contract/Principal.h"
#include "metrics/Log.h"
#include "pool/runtime/docker/AgentMode.h"

namespace hearth::cli {

/// A value and its source.
template <typename T>
struct Setting {
    T value{};
    Source source = Source::Default;
    std::string origin = {};  ///< as LayeredValue::origin; empty for a default

    const T& operator*() const { return value; }
};

enum class RuntimeChoice {
    Auto,
#define HEARTH_RUNTIME(name, word) name,
#include "api/config/Runtimes.def"
#undef HEARTH_RUNTIME
};
const char* runtimeName(RuntimeChoice runtime);
const char* agentModeName(pool::docker::AgentMode mode);
/// The fate of warm sandboxes when the server stops: destroyed, or kept for the next server.
enum class ShutdownWarm { Destroy, Keep };

/// A static token of the configuration file. Only its hash is kept.
struct TokenConfig {
    std::string name;
    std::string tenant = "default";
    controller::Role role = controller::Role::User;
    std::string sha256;      ///< 64 hex digits
    std::string token_file;  ///< the file that held the token itself; empty if the hash was given
};

inline constexpr const char* kDataDirectory = "/var/lib/hearth";

/// All settings of `hearth serve`: flags override the environment, which overrides one YAML file,
/// which overrides defaults. The table in Settings.cpp defines each field.
struct ServeConfig {
    /// Reads `layers` over the defaults. Throws UsageError for a wrong value, with its place.
    explicit ServeConfig(Layers layers = {});

    Setting<std::string> listen;
    Setting<std::string> tls_cert;
    Setting<std::string> tls_key;
    Setting<std::string> ops_listen;
    Setting<std::string> compat;  ///< "s0" to "s3" (mcp::seeds), or empty
    Setting<std::string> data_dir;
    Setting<std::vector<std::string>> pools;
    Setting<std::vector<std::string>> pools_once;
    Setting<std::vector<std::string>> quotas;
    Setting<std::string> oidc;  ///< read by auth::parseIssuers
    Setting<RuntimeChoice> runtime;
    Setting<std::string> oci_runtime;
    Setting<pool::docker::AgentMode> docker_agent;
    Setting<std::string> kubeconfig;
    Setting<std::string> agent_image;
    Setting<std::string> keys;           ///< folder of the keys that replicas share; empty: its own
    Setting<std::string> owner;          ///< owns Pods, policy and Lease; empty: none
    Setting<std::string> lease;          ///< name of the Lease that replicas share; empty: none
    Setting<std::string> shared_volume;  ///< a folder; empty: none
    /// The volume claim's name; empty: Pods do not get the volume.
    Setting<std::string> shared_volume_claim;
    Setting<bool> custom_resources;    ///< objects of the cluster declare pools, and claim
    Setting<std::string> public_url;   ///< where clients reach the server; empty: at `advertise`
    Setting<std::string> advertise;    ///< HOST:PORT for other replicas; empty: `listen`
    Setting<std::string> gpu_library;  ///< pool::gpu::kNoLibrary: GPUs are not looked for
    Setting<std::string> cuda_library;
    Setting<std::vector<std::string>> cdi_folders;
    Setting<std::string> user;
    Setting<std::string> default_pool;
    Setting<std::vector<TokenConfig>> tokens;
    std::string file;  ///< from --config, absolute; empty: no file that can be read again
    Setting<std::vector<std::string>> allowed_hosts;
    Setting<std::vector<std::string>> allowed_origins;
    Setting<std::vector<std::string>> trusted_proxies;  ///< for api::ProxyRules
    Setting<std::uint32_t> workers;
    Setting<metrics::LogLevel> log_level;
    Setting<metrics::LogFormat> log_format;
    Setting<ShutdownWarm> shutdown_warm;
    Setting<std::uint32_t> shutdown_delay_seconds;
    Setting<std::vector<std::string>> on_demand_allow;  ///< for ImageAllowList
    Setting<std::uint32_t> on_demand_max_sandboxes;
    Setting<std::uint32_t> on_demand_keep_seconds;
    Setting<std::uint32_t> on_demand_wait_seconds;
    Setting<std::vector<std::string>> insecure_registries;
    Setting<std::string> mirror_pypi;
    Setting<std::string> mirror_npm;
    Setting<std::vector<std::string>> mirror_hosts;  ///< may be inside, like the indexes
    Setting<std::string> mirror_cache;
    Setting<std::vector<std::string>> egress_deny;  ///< for egress::DenySet, like the next
    Setting<std::vector<std::string>> egress_exempt;
    Setting<std::string> egress_secrets;  ///< for egress::SecretDirectory; empty: none
    Setting<std::string> egress_ca;       ///< empty: the system's
    Setting<std::uint32_t> requests_per_second;
    Setting<std::uint32_t> request_burst;
    Setting<std::uint32_t> connections_per_address;
    Setting<std::uint32_t> event_streams;  ///< a tenant has four times as many
    Setting<std::uint32_t> disk_overcommit;
    Setting<std::string> state_reserve;
    Setting<std::string> audit_log;      ///< empty: none
    Setting<std::string> access_log;     ///< empty: none
    Setting<std::string> record_traces;  ///< empty: none
    Setting<bool> open_loopback;
};

/// The flags of `serve` and `config`.
std::vector<Flag> serveFlags();

/// Reads the file that --config names, if any, and applies environment and flags over it. Throws
/// UsageError for a wrong value (naming its flag, variable, or file and line) and for an unknown
/// key, std::system_error for a file that cannot be read.
ServeConfig loadServeConfig(const Options& options);

/// An address to listen on.
struct ListenAddress {
    std::string host;  ///< without brackets
    std::uint16_t port = 0;

    bool loopback() const;
};
/// "127.0.0.1:8080", "[::1]:8080", "localhost:0"; nullopt for any other text.
std::optional<ListenAddress> parseListenAddress(std::string_view text);

/// Refuses (UsageError) to serve other machines without authentication: an address that is not
/// loopback needs a token. `has_tokens`: configuration or data directory contain one.
void checkExposure(const ServeConfig& config, bool has_tokens);

/// The effective configuration: `{"listen": {"value", "source", "origin"}, …}`. Hashes of tokens
/// are not shown.
Json configDocument(const ServeConfig& config);
/// The same as a table.
std::string configTable(const ServeConfig& config);

}  // namespace hearth::cli
