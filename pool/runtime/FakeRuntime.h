#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "base/Clock.h"
#include "pool/runtime/ContainerRuntime.h"

namespace hearth::pool {

class FakeAgent;
class FakeLoop;

/// Sandboxes without containers, for tests and simulation (`--runtime fake`): each is an agent in
/// this process that speaks the real protocol over real sockets. Executions echo: argv ["echo", …]
/// or a command "echo …" prints its words, "cat" copies its input, "sleep N" ends after N seconds
/// of the clock or when killed, "exit N" exits so, "flood N" writes N bytes, anything else prints
/// itself. Code is run line by line, in "bash" and "python", which also knows contexts; besides
/// those commands it knows "set NAME VALUE", "get NAME", "result JSON", "raise NAME MESSAGE" and
/// "stubborn N", a sleep that heeds no interrupt. Modules "missing…" cannot be imported. Files are
/// held in memory. Layers are known by their digests alone. The agents do not end themselves at
/// their deadlines: with a ManualClock that would race with the server under test. Images whose
/// name begins with "missing" are not there, and those that begin with "far" only once they were
/// fetched. Faults are asked for by the methods below. Thread-safe.
class FakeRuntime final : public ContainerRuntime {
public:
    explicit FakeRuntime(const Clock& clock);
    ~FakeRuntime() override;

    Started create(const SandboxId& id, const SandboxSpec& spec) override;
    void destroy(const SandboxId& id) override;
    std::vector<SandboxInfo> list() override;
    void onNews(const std::function<void(const SandboxId&)>& news) override;
    Fd connect(const SandboxId& id) override;
    std::optional<SandboxUsage> usage(const SandboxId& id) override;
    std::optional<LimitInUse> narrow(const SandboxId& id, const SandboxLimits& limits) override;
    bool goFirst(const SandboxId& id, bool first) override;
    std::string resolveImage(const std::string& name) override;
    std::optional<KnownImage> knownImage(const std::string& wanted) override;
    KnownImage fetchImage(const ImageFetch& fetch, ImageStages& stages) override;
    void stopFetching() override { letFetch(); }
    void collectImages(const std::vector<std::string>& wanted) override;
    std::vector<std::string> layers() override;
    void addLayer(const std::string& digest, int tar) override;
    void removeLayer(const std::string& digest) override;
    void sweep(const std::vector<SandboxId>& keep) override;
    RuntimeFacts facts() override;

    /// The next `count` calls of create() throw.
    void failCreates(unsigned count);
    /// usage() throws from now on.
    void failUsage();
    /// narrow() finds so much memory in use from now on; else what usage() tells.
    void useMemory(std::uint64_t bytes);
    /// What the sandbox is held to; nullopt if it is not there.
    std::optional<SandboxLimits> limitsOf(const SandboxId& id) const;
    /// create() only accepts sandboxes from now on; they listen when letListen() is called.
    void acceptOnly();
    /// Every sandbox that was only accepted listens, and the news are told.
    void letListen();
    /// create() takes this long from now on (real time).
    void slowCreates(std::chrono::milliseconds by);
    /// The sandbox's agent disappears as if its container had died; list() shows it until
    /// destroy().
    void kill(const SandboxId& id);
    /// The sandbox's agent stops answering.
    void hang(const SandboxId& id);
    /// fetchImage() does not return from now on until letFetch().
    void holdFetches();
    void letFetch();
    /// What was fetched and is still here; and how many calls of fetchImage() there were.
    std::set<std::string> fetched() const;
    std::size_t fetches() const;
    /// Those that go before the others.
    std::set<SandboxId> first() const;
    std::size_t running() const;
    std::size_t created() const;

private:
    std::shared_ptr<FakeAgent> findAgent(const SandboxId& id) const;

    const Clock& clock_;
    std::unique_ptr<FakeLoop> loop_;
    mutable std::mutex mutex_;
    std::map<SandboxId, std::shared_ptr<FakeAgent>> agents_;  // guarded by mutex_
    std::map<SandboxId, SandboxInfo> infos_;                  // guarded by mutex_
    std::set<SandboxId> first_;                               // guarded by mutex_
    std::map<SandboxId, SandboxLimits> limits_;               // guarded by mutex_
    std::uint64_t memory_used_ = 0;                           // guarded by mutex_; 0: as usage()
    unsigned failing_ = 0;                                    // guarded by mutex_
    bool blind_ = false;                                      // guarded by mutex_
    bool accept_only_ = false;                                // guarded by mutex_
    std::function<void(const SandboxId&)> news_;              // guarded by mutex_
    std::chrono::milliseconds slow_{0};                       // guarded by mutex_
    std::size_t created_ = 0;                                 // guarded by mutex_
    std::set<std::string> fetched_;                           // guarded by mutex_
    std::set<std::string> layers_;                            // guarded by mutex_
    std::size_t fetches_ = 0;                                 // guarded by mutex_
    bool hold_ = false;                                       // guarded by mutex_
    std::condition_variable let_;
};

}  // namespace hearth::pool
