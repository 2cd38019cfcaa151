#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/Fd.h"
#include "base/Mutex.h"
#include "controller/egress/EgressGateway.h"
#include "controller/packages/LayerLock.h"
#include "controller/store/Epoch.h"
#include "metrics/Log.h"
#include "pool/runtime/ContainerRuntime.h"

namespace hearth::controller {

/// The packages to install in a layer.
struct LayerOrder {
    std::string image;
    std::string image_digest;
    std::string pool;  ///< the pool that the egress is counted for
    std::vector<std::string> specs;
    std::string
        lock;  ///< of an earlier time: installed as it is, nothing is resolved; may be empty
};

struct BuiltLayer {
    LayerLock lock;
    Fd tar;  ///< a file of the tree, which nobody has checked
};

/// Installs packages for a layer. Blocks until it is done, minutes perhaps. Throws Error in words
/// for an operator; Error(Unavailable) after stop().
class LayerBuilder {
public:
    virtual ~LayerBuilder() = default;
    virtual BuiltLayer build(const LayerOrder& order) = 0;
    /// Ends running builds soon and lets no other begin.
    virtual void stop() {}
};

/// Installs in a sandbox of the image that nobody can claim and whose only way out is the mirror;
/// wheels only, so nothing of them runs in it. Its agent ends it if the server does not; Recovery
/// sweeps it. One build at a time; owns() and stop() from any thread.
class SandboxLayerBuilder final : public LayerBuilder {
public:
    /// Files are kept in `directory` without a name while they are needed.
    SandboxLayerBuilder(pool::ContainerRuntime& runtime, agent::Poller& poller,
                        broker::EgressGateway& broker, const Epoch& epoch, std::string directory,
                        metrics::Log& log, const Clock& clock);

    BuiltLayer build(const LayerOrder& order) override;
    void stop() override;
    /// Whether the sandbox is one that a build uses now: no member of a pool, and no orphan.
    bool owns(const pool::SandboxId& id) const;
    /// The runtime has news of a sandbox that it owns.
    void notice();
    /// Whether a sandbox with these labels was made for a build.
    static bool isBuilder(const std::map<std::string, std::string>& labels);

private:
    class Bench;

    void check() const;
    /// Blocks until there was news since the last call, or the stop, at most for `most`.
    void awaitNews(std::chrono::milliseconds most);

    pool::ContainerRuntime& runtime_;
    agent::Poller& poller_;
    broker::EgressGateway& broker_;
    const Epoch& epoch_;
    const std::string directory_;
    metrics::Log& log_;
    const Clock& clock_;
    std::atomic<bool> stopped_{false};
    mutable Mutex mutex_;
    Condition changed_;
    pool::SandboxId bench_ HEARTH_GUARDED_BY(mutex_);  // in use; empty: none
    std::uint64_t news_ HEARTH_GUARDED_BY(mutex_) = 0;
    std::uint64_t seen_ HEARTH_GUARDED_BY(mutex_) = 0;  // of news_
};

}  // namespace hearth::controller
