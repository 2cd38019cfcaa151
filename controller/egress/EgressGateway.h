#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/Clock.h"
#include "base/Mutex.h"
#include "controller/egress/credentials/KeyringFactory.h"
#include "controller/egress/mirror/PackageMirror.h"
#include "controller/egress/mirror/store/FileCache.h"
#include "controller/egress/policy/ClaimSeal.h"
#include "controller/egress/policy/IndexKind.h"
#include "controller/egress/policy/WorkspaceEgress.h"
#include "controller/egress/transport/ConnectionThreads.h"
#include "controller/egress/transport/Dialer.h"
#include "metrics/Log.h"
#include "metrics/Metrics.h"
#include "pool/agent/client/AgentClient.h"

namespace hearth::egress {

/// The port of the gateway in every sandbox, on its own loopback.
inline constexpr std::uint16_t kEgressPort = 3128;

struct EgressOptions {
    MirrorSources mirrors;
    std::string cache_directory;
    std::uint64_t cache_bytes = 4ULL << 30U;
    DenySet deny;
    EgressLimits limits;
    std::string secrets_directory;  ///< the folder of SecretDirectory; empty: none
    std::string seal_key;           ///< the server's secret, for ClaimSeal
    std::string ca_file;  ///< extra authorities for hosts that get credentials; empty: none
};

/// The way out of all sandboxes: takes the connections that their agents hand over, and serves each
/// in a thread of its own, at a lower priority than claims and executions. A workspace whose
/// network is None gets no way out. Thread-safe.
class EgressGateway {
public:
    EgressGateway(EgressOptions options, metrics::Log& log, metrics::Metrics& metrics,
                  const Clock& clock, const metrics::Tracer& tracer);
    /// Ends every connection and waits for the threads.
    ~EgressGateway();
    EgressGateway(const EgressGateway&) = delete;
    EgressGateway& operator=(const EgressGateway&) = delete;

    /// The environment variables that lead programs in a workspace of this mode to the gateway.
    std::map<std::string, std::string> environment(NetworkMode mode) const;
    /// The kinds of package indexes that sandboxes can use.
    std::vector<IndexKind> mirrored() const;
    /// The kinds whose index failed at the last requests, each with the reason.
    std::map<IndexKind, std::string> failingMirrors() const;

    const KeyringFactory& keyrings() const noexcept { return keyrings_; }
    const ClaimSeal& claimSeal() const noexcept { return claim_seal_; }

    /// Opens the way out of a workspace. `sandbox` is its key here, because two attempts of one
    /// claim share one workspace name. The agent gets this request before any later request. Does
    /// nothing in mode None. `keyring` may be null. Throws agent::AgentLost.
    void open(const std::string& sandbox, const WorkspaceEgress::Facts& facts,
              const NetworkPolicy& policy, std::shared_ptr<const Keyring> keyring,
              agent::AgentClient& agent);
    /// Opens it again after open(), for the agent's next connection: open streams continue and
    /// still count, except carried ones, which break.
    void resume(const std::string& sandbox, const WorkspaceEgress::Facts& facts,
                const NetworkPolicy& policy, std::shared_ptr<const Keyring> keyring,
                agent::AgentClient& agent);
    /// Ends the way out with all its connections. Idempotent.
    void close(const std::string& sandbox);
    /// The account of the sandbox's requests; empty if it has no way out.
    EgressReport report(const std::string& sandbox) const;

private:
    class Session;

    const EgressOptions options_;
    metrics::Log& log_;
    metrics::Metrics& metrics_;
    const Clock& clock_;
    const metrics::Tracer& tracer_;
    const KeyringFactory keyrings_;
    const ClaimSeal claim_seal_;
    const Dialer dialer_;
    ConnectionThreads threads_;
    ConnectionThreads fetches_;
    std::optional<Fetcher> fetcher_;
    std::optional<FileCache> cache_;
    std::optional<PackageMirror> mirror_;
    mutable Mutex mutex_;
    /// Keyed by sandbox.
    std::map<std::string, std::shared_ptr<Session>> sessions_ HEARTH_GUARDED_BY(mutex_);
};

}  // namespace hearth::egress
