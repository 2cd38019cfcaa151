#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/Fd.h"
#include "base/Instance.h"
#include "base/Json.h"
#include "metrics/Log.h"
#include "pool/spec/SandboxSpec.h"

namespace hearth::pool {

/// How the launcher finds what it needs. Fixed when it is forked; no message can change it.
struct LauncherOptions {
    Instance instance;
    std::string runtime = "runc";  ///< program that speaks runc's command line
    std::string agent_path;        ///< the static agent, copied for each instance
    unsigned server_uid = 0;       ///< who owns sockets and marks
    unsigned server_gid = 0;
    std::uint32_t uid_base = 200'000;  ///< first host uid of the leased ranges
    std::uint32_t uid_ranges = 10'000;
};

/// The server's end of the privileged launcher process. Thread-safe: several calls may be under
/// way; each blocks until its answer. Every call throws Error(Unavailable) once the launcher has
/// died.
class LauncherClient {
public:
    /// Forks the launcher. Call as root, while the process has one thread and before it drops its
    /// privileges. The launcher ends when the returned socket is closed.
    static Fd forkLauncher(const LauncherOptions& options);

    /// Takes the socket of forkLauncher(). `on_death` is called once, from an own thread, if the
    /// launcher dies first.
    LauncherClient(Fd socket, metrics::Log& log, std::function<void()> on_death);
    ~LauncherClient();
    LauncherClient(const LauncherClient&) = delete;
    LauncherClient& operator=(const LauncherClient&) = delete;

    struct Found {
        SandboxId id;
        bool alive = false;
        std::map<std::string, std::string> labels;
        std::int64_t created_unix_ms = 0;
    };

    /// `listen` becomes the agent's descriptor 3; it is only borrowed.
    void create(const SandboxId& id, const SandboxSpec& spec, int listen);
    void destroy(const SandboxId& id);
    std::vector<Found> list();
    void sweep(const std::vector<SandboxId>& keep);
    /// Unpacks `<data>/images/<name>` by digest unless that is done; gives the digest.
    std::string prepareImage(const std::string& name);
    /// Program version, cgroup layout, what is in force; see RuntimeFacts.
    Json facts();

private:
    struct Pending {
        bool done = false;
        Json reply;
    };

    Json call(Json request, int fd = -1);
    void readLoop();

    Fd socket_;
    metrics::Log& log_;
    std::function<void()> on_death_;
    std::mutex mutex_;
    std::condition_variable answered_;
    std::uint64_t next_ = 1;                    // guarded by mutex_
    std::map<std::uint64_t, Pending*> pending_;  // guarded by mutex_
    bool dead_ = false;                         // guarded by mutex_
    std::jthread reader_;
};

}  // namespace hearth::pool
