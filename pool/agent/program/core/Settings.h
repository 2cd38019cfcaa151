#pragma once

#include <linux/filter.h>
#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pool/agent/secure/Keys.h"

namespace hearth::agent {

/// The mark of every process of an execution, which it keeps across fork and exec and cannot
/// remove.
enum class Mark {
    Group,  ///< a supplementary group; setting it needs CAP_SETGID
    Limit,  ///< the hard limit RLIMIT_LOCKS, which means nothing to the kernel any more: anybody
            ///< may lower it, nobody raise it, and the tenant filter refuses to touch it
};

/// How this agent was started. Everything a test may switch has its sandbox value here, and keeps
/// it when the agent is PID 1.
struct Settings {
    bool init = false;  ///< we are PID 1: the whole PID namespace is ours
    bool keep_identity =
        false;  ///< tenant processes keep our uid: test switch, or we are not uid 0
    Mark mark = Mark::Limit;
    uid_t uid = 1000;
    gid_t gid = 1000;
    std::string root = "/workspace";  ///< where the workspace really is
    std::string tmp = "/tmp";
    std::string languages = "/etc/hearth/languages.json";
    std::string image;  ///< HEARTH_IMAGE: what the image brings, as JSON
    /// "NAME=value" of a Pod: what its image, its template and its devices bring.
    std::vector<std::string> inherited;
    std::string gpu;        ///< HEARTH_GPU: what its GPUs need, as JSON
    std::string layer;      ///< HEARTH_LAYER: where the layer is mounted; may be empty
    std::string sandbox;    ///< HEARTH_SANDBOX, sent in hello
    std::string cpus;       ///< HEARTH_CPUS, for thread-count variables
    std::string listen;     ///< path to listen on; empty: descriptor 3
    std::string receive;    ///< path of a socket that hands the listening one over
    std::uint16_t tcp = 0;  ///< port to listen on instead; 0: none
    /// Whom we serve over a network. Without it every peer is believed, so the socket is a Unix
    /// one.
    std::optional<secure::ServerPublicKey> server;
    std::string pod;                     ///< the Pod's UID, where there is a `server`
    std::string identity;                ///< file with our own key, likewise
    std::int64_t proof_ms = 5'000;       ///< how long a peer may take to prove to be the server
    std::string outside;                 ///< an address that counts as another machine's
    std::int64_t orphan_ms = 3'600'000;  ///< life without bind and without control connection
    /// Our own oom_score_adj, kept open where a child cannot open its own, and what was in it.
    int oom_fd = -1;
    std::string oom_own;
    std::string group;                ///< our control group's files, as groupUse() takes it
    bool watch_scores = false;        ///< the kernel lets tenants take theirs below ours
    bool confined = true;             ///< false only in tests outside a sandbox
    std::vector<sock_filter> filter;  ///< the tenant's seccomp program; empty and confined: no exec
    std::vector<sock_filter> zygote_filter;  ///< the same, but a mark can be put on
};

/// The client's name of a path below `/workspace`.
inline constexpr const char* kWorkspace = "/workspace";

/// Reads flags, environment and the filter beside the program. Returns -1, or the exit status if
/// the program is done (`--help`, bad flags).
int readSettings(int argc, char** argv, Settings& settings);

/// Where `cwd` of a request leads: below the workspace if relative; in a test that is elsewhere.
std::string workingDirectory(const Settings& settings, std::string_view cwd);

/// At most `limit` bytes of a regular file; false if there is none or it is larger.
bool readFile(const char* path, std::size_t limit, std::string& out);

/// CLOCK_BOOTTIME, which the server shares.
std::int64_t nowNs() noexcept;

/// Gives this thread the tenant's identity for files, and takes it back at the end. Cheap: two
/// system calls each way, and none when both are the same user.
class TenantFiles {
public:
    explicit TenantFiles(const Settings& settings) noexcept;
    TenantFiles(const TenantFiles&) = delete;
    TenantFiles& operator=(const TenantFiles&) = delete;
    ~TenantFiles();

private:
    bool switched_;
};

}  // namespace hearth::agent
