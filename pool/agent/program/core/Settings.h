#pragma once

#include <linux/filter.h>
#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pool/agent/secure/Keys.h"
#include "pool/spec/FileLimits.h"

namespace hearth::agent {

/// The mark on every process of an execution. A process keeps it across fork and exec and cannot
/// remove it.
enum class Mark {
    Group,  ///< a supplementary group; setting it needs CAP_SETGID
    Limit,  ///< the hard limit RLIMIT_LOCKS, which the kernel no longer uses: anybody
            ///< may lower it, nobody raise it, and the tenant filter forbids to change it
};

/// The way this agent was started. Everything that a test may switch has its sandbox value here,
/// and keeps it when the agent is PID 1.
struct Settings {
    bool init = false;           ///< the agent is PID 1: the whole PID namespace is its own
    bool keep_identity = false;  ///< tenants keep the agent's uid: test switch, or it is not uid 0
    Mark mark = Mark::Limit;
    uid_t uid = 1000;
    gid_t gid = 1000;
    std::string root = "/workspace";  ///< the real place of the workspace
    /// Files that tenants read: code and certificates. A full /tmp or workspace stops none of them.
    std::string run = pool::kRunPlace;
    std::string languages = "/etc/hearth/languages.json";
    std::string image;  ///< HEARTH_IMAGE: facts of the image, as JSON
    /// "NAME=value" of a Pod: the variables of its image, its template and its devices.
    std::vector<std::string> inherited;
    std::string gpu;        ///< HEARTH_GPU: needs of its GPUs, as JSON
    std::string layer;      ///< HEARTH_LAYER: mount point of the layer; may be empty
    std::string sandbox;    ///< HEARTH_SANDBOX, sent in hello
    std::string cpus;       ///< HEARTH_CPUS, for thread-count variables
    std::string listen;     ///< path to listen on; empty: descriptor 3
    std::string receive;    ///< path of a socket that hands the listening one over
    std::uint16_t tcp = 0;  ///< port to listen on instead; 0: none
    /// The server to serve over a network. Without it every peer is believed, so the socket is a
    /// Unix one.
    std::optional<secure::ServerPublicKey> server;
    std::string pod;                     ///< the Pod's UID, if `server` is set
    std::string identity;                ///< file with the agent's own key, likewise
    std::int64_t proof_ms = 5'000;       ///< how long a peer may take to prove to be the server
    std::string outside;                 ///< an address that counts as another machine's
    std::int64_t orphan_ms = 3'600'000;  ///< life without bind and without control connection
    /// The agent's oom_score_adj, kept open if a child cannot open its own, and its value.
    int oom_fd = -1;
    std::string oom_own;
    std::string group;                ///< files of the agent's control group, for groupUse()
    bool watch_scores = false;        ///< tenants can lower their score below the agent's
    bool confined = true;             ///< false only in tests outside a sandbox
    std::vector<sock_filter> filter;  ///< the tenant's seccomp program; empty and confined: no exec
    std::vector<sock_filter> zygote_filter;  ///< the same, but lets a mark be set
};

/// The client's name for the workspace.
inline constexpr const char* kWorkspace = "/workspace";

/// Reads flags, environment and the filter beside the program. Returns -1, or the exit status if
/// the program is done (`--help`, bad flags).
int readSettings(int argc, char** argv, Settings& settings);

/// Returns the directory for `cwd` of a request: below the workspace (`root`) if relative.
std::string workingDirectory(const Settings& settings, std::string_view cwd);

/// Reads at most `limit` bytes of a regular file; false if there is none or it is larger.
bool readFile(const char* path, std::size_t limit, std::string& out);

/// Returns CLOCK_BOOTTIME, which the server shares.
std::int64_t nowNs() noexcept;

/// Gives this thread the tenant's identity for files, and takes it back at the end. Cheap: two
/// system calls each way, and none if both are the same user.
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
