#pragma once

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/Clock.h"
#include "base/Mutex.h"
#include "pool/runtime/ContainerRuntime.h"
#include "tests/fake/runtime/FakeGroup.h"

namespace hearth::pool {

class FakeAgent;
class FakeLoop;

/// Sandboxes without containers, for tests and simulation (`hearth-fake`): each is an agent in
/// this process that speaks the real protocol over real sockets. Executions echo: argv
/// ["echo", …] or a command "echo …" prints its words, "cat" copies its input, "sleep N" ends
/// after N seconds of the clock or when killed, "exit N" exits with N, "flood N" writes N
/// bytes, anything else prints itself. Code is run line by line, in "bash" and "python", which
/// also has contexts; in addition to those commands it has "set NAME VALUE", "get NAME",
/// "result JSON", "raise NAME MESSAGE" and "stubborn N", a sleep that ignores interrupts.
/// Modules "missing…" cannot be imported. Files are held in memory. Layers are only their
/// digests. The agents do not end themselves at their deadlines: with a ManualClock that would
/// race with the server under test. Images whose name begins with "missing" do not exist;
/// "far" images exist only after a fetch; "packed" images must be unpacked once
/// ("packed-broken" cannot be); "plain" images lack python. Faults are caused by the methods
/// below. Thread-safe.
class FakeRuntime final : public ContainerRuntime {
public:
    explicit FakeRuntime(const Clock& clock);
    ~FakeRuntime() override;

    std::string trouble() const override;
    Started create(const SandboxId& id, const SandboxSpec& spec) override;
    void destroy(const SandboxId& id) override;
    std::vector<SandboxInfo> list() override;
    void onNews(const std::function<void(const SandboxId&)>& news) override;
    Fd connect(const SandboxId& id) override;
    std::optional<SandboxUsage> usage(const SandboxId& id) override;
    std::optional<LimitInUse> narrow(const SandboxId& id, const SandboxLimits& limits) override;
    std::optional<std::uint64_t> takeMemoryPeak(const SandboxId& id) override;
    std::optional<FileTable> fileTable() override;
    std::map<SandboxId, std::uint64_t> openFiles() override;
    bool goFirst(const SandboxId& id, bool first) override;
    void noteClaim(const SandboxId& id) override;
    bool freezes() override { return !cannot_freeze_; }
    bool freeze(const SandboxId& id) override;
    bool thaw(const SandboxId& id) override;
    std::string resolveImage(const std::string& name) override;
    std::optional<std::string> readyImage(const std::string& name) override;
    std::optional<KnownImage> knownImage(const std::string& wanted) override;
    KnownImage fetchImage(const ImageFetch& fetch, ImageStages& stages) override;
    void stopFetching() override { letFetch(); }
    void collectImages(const std::vector<std::string>& wanted) override;
    std::vector<std::string> layers() override;
    void addLayer(const std::string& digest, int tar) override;
    void removeLayer(const std::string& digest) override;
    std::vector<Leftover> sweep(const std::vector<SandboxId>& keep) override;
    RuntimeFacts facts() override;

    /// Makes the next `count` calls of create() throw.
    void failCreates(unsigned count);
    /// Makes usage() throw from now on.
    void failUsage();
    /// Makes usage() block from now on until letUse(), like an Engine that hangs.
    void holdUsage();
    void letUse();
    /// Sets how often the kernel has killed for memory in each existing sandbox.
    void oomKills(std::uint64_t kills) { group_->oom_kills = kills; }
    /// Sets the processor time that each sandbox has used since its start.
    void setCpu(std::chrono::nanoseconds used) {
        group_->cpu_ns = static_cast<std::uint64_t>(used.count());
    }
    /// Sets the memory that each sandbox reports; 0: as much as its files and 1 MiB.
    void setMemory(std::uint64_t bytes) { group_->memory_bytes = bytes; }
    /// Sets what takeMemoryPeak() returns next for the sandbox.
    void setMemoryPeak(const SandboxId& id, std::uint64_t bytes);
    /// Makes the sandbox hold so many open files until its end, of `most` of the machine's.
    void holdFiles(const SandboxId& id, std::uint64_t files, std::uint64_t most);
    /// Makes narrow() find this much memory in use from now on, instead of the value of usage().
    void useMemory(std::uint64_t bytes);
    /// Makes freeze() fail from now on; planes that begin later know it.
    void failFreezes() { cannot_freeze_ = true; }
    /// Makes this a cluster's runtime, for planes that begin later: usage() is unknown, and the
    /// agents report it. `claim`: the volume that its servers share.
    void beCluster(std::string claim = {}) {
        own_claim_ = std::move(claim);
        in_cluster_ = true;
        group_->agents_tell = true;
    }
    /// Makes the agents stop reporting usage, like ones without access.
    void letAgentsTellNothing() { group_->agents_tell = false; }
    bool inCluster() const override { return in_cluster_; }
    std::string ownClaim() const override { return own_claim_; }
    /// Sandboxes that are frozen.
    std::set<SandboxId> frozen() const;
    /// Returns the limits of the sandbox; nullopt if it does not exist.
    std::optional<SandboxLimits> limitsOf(const SandboxId& id) const;
    /// Makes create() only accept sandboxes from now on; they listen after letListen().
    void acceptOnly();
    /// Makes every accepted sandbox listen, and notifies listeners.
    void letListen();
    /// Makes create() take this long from now on (real time).
    void slowCreates(std::chrono::milliseconds by);
    /// Sets the result of trouble().
    void setTrouble(const std::string& trouble);
    /// Makes the sandbox's agent disappear as if its container had died; list() shows it until
    /// destroy().
    void kill(const SandboxId& id);
    /// The same, because the kernel ended the whole container for memory.
    void killForMemory(const SandboxId& id);
    /// Makes the sandbox's node take no more work; its news reports that.
    void cordon(const SandboxId& id);
    /// Makes the sandbox's agent stop answering; after resume() it answers all earlier requests.
    void hang(const SandboxId& id);
    void resume(const SandboxId& id);
    /// Ends the connections to its agent, and nothing else.
    void sever(const SandboxId& id);
    /// Makes destroy() of it throw and a sweep leave it, until a call with false.
    void resist(const SandboxId& id, bool resists = true);
    /// Begins the life of a server: from now on a sweep keeps the sandboxes made in it.
    void begin();
    /// Makes fetchImage() and unpacking block from now on until letFetch().
    void holdFetches();
    void letFetch();
    /// Returns the fetched images that still exist; fetches() counts the calls of fetchImage().
    std::set<std::string> fetched() const;
    std::size_t fetches() const;
    /// Returns how often an image was unpacked, including failures.
    std::size_t unpackings() const;
    /// Sandboxes that have priority.
    std::set<SandboxId> first() const;
    std::size_t running() const;
    std::size_t created() const;

private:
    std::shared_ptr<FakeAgent> findAgent(const SandboxId& id) const;
    std::optional<SandboxUsage> used(const SandboxId& id);

    const Clock& clock_;
    std::unique_ptr<FakeLoop> loop_;
    mutable Mutex mutex_;
    std::map<SandboxId, std::shared_ptr<FakeAgent>> agents_ HEARTH_GUARDED_BY(mutex_);
    std::map<SandboxId, SandboxInfo> infos_ HEARTH_GUARDED_BY(mutex_);
    std::set<SandboxId> first_ HEARTH_GUARDED_BY(mutex_);
    std::set<SandboxId> frozen_ HEARTH_GUARDED_BY(mutex_);
    std::atomic<bool> cannot_freeze_ = false;
    std::string own_claim_;
    std::atomic<bool> in_cluster_ = false;
    std::map<SandboxId, SandboxLimits> limits_ HEARTH_GUARDED_BY(mutex_);
    std::map<SandboxId, std::uint64_t> peaks_ HEARTH_GUARDED_BY(mutex_);
    std::map<SandboxId, std::uint64_t> files_ HEARTH_GUARDED_BY(mutex_);
    std::uint64_t most_files_ HEARTH_GUARDED_BY(mutex_) = 1'000'000;
    const std::shared_ptr<FakeGroup> group_ = std::make_shared<FakeGroup>();
    std::uint64_t memory_used_ HEARTH_GUARDED_BY(mutex_) = 0;  // 0: use usage()
    unsigned failing_ HEARTH_GUARDED_BY(mutex_) = 0;
    bool blind_ HEARTH_GUARDED_BY(mutex_) = false;
    bool accept_only_ HEARTH_GUARDED_BY(mutex_) = false;
    std::function<void(const SandboxId&)> news_ HEARTH_GUARDED_BY(mutex_);
    std::chrono::milliseconds slow_ HEARTH_GUARDED_BY(mutex_){0};
    std::size_t created_ HEARTH_GUARDED_BY(mutex_) = 0;
    std::string trouble_ HEARTH_GUARDED_BY(mutex_);
    std::set<SandboxId> resisting_ HEARTH_GUARDED_BY(mutex_);
    std::optional<std::set<SandboxId>> born_ HEARTH_GUARDED_BY(mutex_);  // since begin()
    std::set<std::string> fetched_ HEARTH_GUARDED_BY(mutex_);
    std::set<std::string> layers_ HEARTH_GUARDED_BY(mutex_);
    std::size_t fetches_ HEARTH_GUARDED_BY(mutex_) = 0;
    std::set<std::string> unpacked_ HEARTH_GUARDED_BY(mutex_);  // names
    std::size_t unpackings_ HEARTH_GUARDED_BY(mutex_) = 0;
    bool hold_usage_ HEARTH_GUARDED_BY(mutex_) = false;
    bool hold_ HEARTH_GUARDED_BY(mutex_) = false;
    Condition let_;
};

}  // namespace hearth::pool
