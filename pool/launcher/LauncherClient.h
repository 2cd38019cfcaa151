#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/Fd.h"
#include "base/Json.h"
#include "base/Mutex.h"
#include "base/host/Instance.h"
#include "metrics/Log.h"
#include "pool/gpu/cdi/CdiSpecs.h"
#include "pool/launcher/protocol/LauncherMessages.h"
#include "pool/spec/SandboxSpec.h"

namespace hearth::pool {

/// The launcher's programs, users and ranges. Fixed when it is forked; no message can change them.
struct LauncherOptions {
    Instance instance;
    std::string runtime = "runc";  ///< program that speaks runc's command line
    std::string agent_path;        ///< the static agent, copied for each instance
    unsigned server_uid = 0;       ///< owner of sockets and marks
    unsigned server_gid = 0;
    std::uint32_t uid_base = 200'000;  ///< first host uid of the leased ranges
    std::uint32_t uid_ranges = 10'000;
    cdi::CdiFolders cdi = {};  ///< where to look up the devices that sandboxes get
    metrics::LogFormat log_format = metrics::LogFormat::Logfmt;
};

/// The server's end of the privileged launcher process. Thread-safe: several calls may be under
/// way; each blocks until its answer, or its deadline (OperationRules.h): Error(Deadline). Every
/// call throws Error(Unavailable) after the launcher has died; if it could not even begin, with the
/// reason that it reported.
///
/// A call that missed its deadline counts as stuck until its answer comes. Until then the same
/// operation on the same thing is refused, so retries never pile up behind one that hangs.
class LauncherClient {
public:
    /// Makes the directories of the instance (sockets, marks and state belong to the server's user)
    /// and forks the launcher. Call as root, while the process has one thread and before it drops
    /// its privileges. When the returned socket closes, the launcher ends; its operations then have
    /// five seconds more.
    static Fd forkLauncher(const LauncherOptions& options);

    /// Takes the socket of forkLauncher(). `on_death` is called once, on a separate thread, if the
    /// launcher was ready and dies first.
    LauncherClient(Fd socket, metrics::Log& log, std::function<void()> on_death)
        : LauncherClient(std::move(socket), log, std::move(on_death), Waiting{}) {}
    struct Waiting {
        /// How long a call waits for its answer; null: as in OperationRules.
        std::function<std::chrono::milliseconds(const launcher::RequestBody&)> patience{};
        /// Called with the number of stuck operations of a name when it changes; on any thread.
        std::function<void(const std::string& operation, std::size_t count)> stuck{};
    };
    LauncherClient(Fd socket, metrics::Log& log, std::function<void()> on_death, Waiting waiting);
    /// Closes the socket and waits for the launcher's end, a few seconds at most.
    ~LauncherClient();
    LauncherClient(const LauncherClient&) = delete;
    LauncherClient& operator=(const LauncherClient&) = delete;

    using Found = launcher::Found;

    /// `listen` becomes the agent's descriptor 3; it is only borrowed.
    void create(const SandboxId& id, const SandboxSpec& spec, int listen);
    void destroy(const SandboxId& id);
    /// See ContainerRuntime::narrow().
    std::optional<LimitInUse> narrow(const SandboxId& id, const SandboxLimits& limits);
    /// `count_files`: counts their open files, too.
    std::vector<Found> list(bool count_files = false);
    /// Finds one sandbox of list(), at a cost that does not grow.
    std::optional<Found> find(const SandboxId& id);
    /// Removes everything of this instance that belongs neither to `keep` nor to a sandbox that
    /// this launcher made and was not asked to destroy: `keep` may be older than that sandbox.
    /// Returns what could not be removed.
    std::vector<Leftover> sweep(const std::vector<SandboxId>& keep);
    /// Finds an image by name or reference and unpacks it by digest, unless that is done already;
    /// blocks until then, or until stopFetching().
    image::Image prepareImage(const std::string& name);
    /// Finds the image without unpacking it.
    image::Image describeImage(const std::string& name);
    /// Brings an image from its registry; blocks until it is unpacked, or until stopFetching().
    /// `gateway` gets the listeners of the fetch, its only way out; it is only borrowed.
    launcher::Fetched fetchImage(const launcher::FetchImageRequest& fetch, int gateway);
    /// Waits no longer for images that are fetched or unpacked, and refuses later ones:
    /// Error(Unavailable). The launcher's work for them ends with it.
    void stopFetching();
    /// Makes all calls end within `most`, present and later ones: the server stops, and a launcher
    /// that does not answer must not hold it up.
    void finishWithin(std::chrono::milliseconds most);
    /// Forgets images that fetchImage() brought and that no name in `wanted` means.
    void forgetImages(const std::vector<std::string>& wanted);
    /// Unpacks the archive in the file `tar`, which is only borrowed; see image::LayerStore.
    void addLayer(const std::string& digest, int tar);
    void removeLayer(const std::string& digest);
    /// Returns program version, cgroup layout and isolation in force; see RuntimeFacts.
    Json facts();

    /// Returns the launcher's process id; 0 until it is ready.
    int pid();
    struct State {
        bool up = false;
        std::size_t in_flight = 0;  ///< operations that wait for an answer, stuck ones included
    };
    State state();
    /// Returns an operation that has missed its deadline and after which no other was answered;
    /// empty: none.
    std::string stuckOperation();
    /// Returns how many uid ranges the instance's sandboxes hold; throws std::system_error.
    static std::size_t leasedRanges(const Instance& instance);

private:
    struct Pending {
        bool done = false;
        launcher::Reply reply;
    };

    /// An operation that missed its deadline.
    struct Late {
        std::string operation;
        std::string subject;
        std::uint64_t answers = 0;  ///< answers that had come by then
    };

    Json call(launcher::RequestBody body, int fd = -1, bool stoppable = false);
    /// Sends the request; returns 0, or errno.
    int send(const launcher::Request& request, int fd) const;
    [[noreturn]] void giveUp(const launcher::Request& request, std::chrono::milliseconds after);
    void tellStuck(const std::string& operation, std::size_t count) const;
    std::size_t stuck(const std::string& operation) const HEARTH_REQUIRES(mutex_);
    void readLoop();
    void deliver(launcher::Reply reply);
    void waitEnd();

    Fd socket_;
    metrics::Log& log_;
    std::function<void()> on_death_;
    const Waiting waiting_;
    Mutex mutex_;
    Condition answered_;
    std::uint64_t next_ HEARTH_GUARDED_BY(mutex_) = 1;
    std::uint64_t answers_ HEARTH_GUARDED_BY(mutex_) = 0;
    std::map<std::uint64_t, Pending*> pending_ HEARTH_GUARDED_BY(mutex_);
    std::map<std::uint64_t, Late> late_ HEARTH_GUARDED_BY(mutex_);
    bool dead_ HEARTH_GUARDED_BY(mutex_) = false;
    bool closing_ HEARTH_GUARDED_BY(mutex_) = false;
    bool fetching_ HEARTH_GUARDED_BY(mutex_) = true;  // false: never again
    std::chrono::steady_clock::time_point finish_by_ HEARTH_GUARDED_BY(mutex_) =
        std::chrono::steady_clock::time_point::max();
    int pid_ HEARTH_GUARDED_BY(mutex_) = 0;
    std::optional<launcher::Reply> unable_ HEARTH_GUARDED_BY(mutex_);  // why it did not begin
    std::jthread reader_;
};

}  // namespace hearth::pool
