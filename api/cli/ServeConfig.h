#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/cli/Options.h"
#include "base/Json.h"
#include "controller/Principal.h"
#include "pool/runtime/docker/AgentMode.h"

namespace hearth::cli {

/// A value and where it came from.
template <typename T>
struct Setting {
    T value;
    Source source = Source::Default;
    std::string origin =
        {};  ///< "--listen", "HEARTH_LISTEN", "/etc/hearth.yaml:3"; empty for a default

    const T& operator*() const { return value; }
};

enum class RuntimeChoice { Auto, Oci, Docker, Fake };
const char* runtimeName(RuntimeChoice runtime);
const char* agentModeName(pool::docker::AgentMode mode);
/// What becomes of warm sandboxes when the server stops.
enum class ShutdownWarm { Destroy, Keep };

/// A static token of the configuration file. Only its hash is kept.
struct TokenConfig {
    std::string name;
    std::string tenant = "default";
    controller::Role role = controller::Role::User;
    std::string sha256;      ///< 64 hex digits
    std::string token_file;  ///< where the token itself was read from; empty if the hash was given
};

/// What a number in the configuration may be.
struct NumberRange {
    std::uint32_t least;
    std::uint32_t most;
};
inline constexpr NumberRange kOnDemandSandboxes{1, 1000};
inline constexpr NumberRange kOnDemandKeep{1, 30 * 86'400};
inline constexpr NumberRange kOnDemandWait{1, 600};
inline constexpr NumberRange kRequestRate{0, 1'000'000};

/// Everything `hearth serve` runs by: flags over environment over one YAML file over defaults.
struct ServeConfig {
    Setting<std::string> listen{"127.0.0.1:8080"};
    Setting<std::string> ops_listen{"127.0.0.1:9464"};
    /// Whose unchanged clients are served at the root, "s0" to "s3" (mcp::seeds); empty: nobody's.
    Setting<std::string> compat{""};
    Setting<std::string> data_dir{"/var/lib/hearth"};
    Setting<std::vector<std::string>> pools{{}};  ///< manifest files
    Setting<RuntimeChoice> runtime{RuntimeChoice::Auto};
    Setting<std::string> oci_runtime{"runc"};
    Setting<pool::docker::AgentMode> docker_agent{pool::docker::AgentMode::Auto};
    Setting<std::string> user{"hearth"};
    Setting<std::string> default_pool{""};  ///< empty: the oldest pool
    Setting<std::vector<TokenConfig>> tokens{{}};
    Setting<std::vector<std::string>> allowed_hosts{{}};
    Setting<std::vector<std::string>> allowed_origins{{}};
    Setting<std::uint32_t> workers{128};
    Setting<std::string> log_level{"info"};  ///< debug, info, warn, error
    Setting<ShutdownWarm> shutdown_warm{ShutdownWarm::Destroy};
    /// Images that claims may use without a pool (ImageAllowList); none: no such image.
    Setting<std::vector<std::string>> on_demand_allow{{}};
    Setting<std::uint32_t> on_demand_max_sandboxes{20};
    Setting<std::uint32_t> on_demand_keep_seconds{3600};
    Setting<std::uint32_t> on_demand_wait_seconds{300};
    /// Registries, "HOST[:PORT]", that may speak HTTP or have an unknown certificate.
    Setting<std::vector<std::string>> insecure_registries{{}};
    /// Package indexes that sandboxes with a network find on their loopback; empty: none.
    Setting<std::string> mirror_pypi{""};
    Setting<std::string> mirror_npm{""};
    Setting<std::vector<std::string>> mirror_apt{{}};  ///< lines of broker::AptSource
    /// Where else their files lie, as "HOST[:PORT]"; such hosts may be inside, like the indexes.
    Setting<std::vector<std::string>> mirror_hosts{{}};
    Setting<std::string> mirror_cache{"4Gi"};  ///< of their files on disk
    /// Ranges of addresses that no sandbox reaches besides the built-in ones, and such that the
    /// built-in ones do not hold for (broker::DenySet).
    Setting<std::vector<std::string>> egress_deny{{}};
    Setting<std::vector<std::string>> egress_exempt{{}};
    /// What pools and claims name as secrets (broker::SecretDirectory); empty: none.
    Setting<std::string> egress_secrets{""};
    /// Certificates of authorities that hosts with credentials may have; empty: the system's.
    Setting<std::string> egress_ca{""};
    /// Requests a second of each tenant, and how many at once; 0: no limit, twice the rate.
    Setting<std::uint32_t> requests_per_second{0};
    Setting<std::uint32_t> request_burst{0};
    Setting<std::string> audit_log{""};  ///< a file (metrics::AuditLog); empty: none
    /// Also offer what the official MCP conformance suite expects: for tests, by flag only.
    bool conformance = false;
};

/// The flags of `serve` and `config`.
std::vector<Flag> serveFlags();

/// Reads the file that --config names, if any, and lays environment and flags over it. Throws
/// UsageError for a wrong value (naming its flag, variable, or file and line) and for an unknown
/// key, std::system_error for a file that cannot be read.
ServeConfig loadServeConfig(const Options& options);
/// The same from a text instead of a file; `name` stands for it in messages. Paths in it are
/// relative to `directory`.
void readConfigText(const std::string& text, const std::string& name, const std::string& directory,
                    ServeConfig& config);

/// An address to listen on.
struct ListenAddress {
    std::string host;  ///< without brackets
    std::uint16_t port = 0;

    bool loopback() const;
};
/// "127.0.0.1:8080", "[::1]:8080", "localhost:0"; nullopt for anything else.
std::optional<ListenAddress> parseListenAddress(std::string_view text);

/// Refuses (UsageError) to serve other machines without knowing who asks: an address that is not
/// loopback needs a token. `has_tokens`: whether configuration or data directory hold any.
void checkExposure(const ServeConfig& config, bool has_tokens);

/// The effective configuration: `{"listen": {"value", "source", "origin"}, …}`. Hashes of tokens
/// are not shown.
Json configDocument(const ServeConfig& config);
/// The same as a table.
std::string configTable(const ServeConfig& config);

}  // namespace hearth::cli
