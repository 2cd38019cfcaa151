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
        lock;  ///< an earlier lock, which is installed as it is, without resolving; may be empty
};

struct BuiltLayer {
    LayerLock lock;
    Fd tar;  ///< the tree's tar file, unchecked
};

/// Installs packages for a layer. Blocks until it is done, perhaps for minutes. Throws Error with a
/// text for an operator; Error(Unavailable) after stop().
class LayerBuilder {
public:
    virtual ~LayerBuilder() = default;
    virtual BuiltLayer build(const LayerOrder& order) = 0;
    /// Ends running builds soon and prevents new ones.
    virtual void stop() {}
};

/// Installs in a sandbox of the image that nobody can claim and whose only way out is the mirror;
/// wheels only, so none of their code runs in it. Its agent ends the sandbox if the server does
/// not; Recovery sweeps it. One build at a time; owns() and stop() from any thread.
class SandboxLayerBuilder final : public LayerBuilder {
public:
    /// `directory`: for temporary files without a name.
    SandboxLayerBuilder(pool::ContainerRuntime& runtime, agent::Poller& poller,
                        egress::EgressGateway& gateway, const Epoch& epoch, std::string directory,
                        metrics::Log& log, const Clock& clock);

    BuiltLayer build(const LayerOrder& order) override;
    void stop() override;
    /// True if a build uses this sandbox now: it is no member of a pool, and no orphan.
    bool owns(const pool::SandboxId& id) const;
    /// Called when the runtime has news of a sandbox that owns() accepts.
    void notice();
    /// True if a sandbox with these labels was made for a build.
    static bool isBuilder(const std::map<std::string, std::string>& labels);

private:
    class Bench;

    void check() const;
    /// Blocks until news arrived since the last call, until stop(), or for at most `most`.
    void awaitNews(std::chrono::milliseconds most);

    pool::ContainerRuntime& runtime_;
    agent::Poller& poller_;
    egress::EgressGateway& gateway_;
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
