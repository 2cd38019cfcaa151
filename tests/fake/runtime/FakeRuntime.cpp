#include "tests/fake/runtime/FakeRuntime.h"

#include <algorithm>
#include <cerrno>
#include <set>
#include <stdexcept>
#include <thread>

#include "base/Digest.h"
#include "base/Error.h"
#include "base/Version.h"
#include "tests/fake/runtime/FakeAgent.h"
#include "tests/fake/runtime/FakeLoop.h"

namespace hearth::pool {

FakeRuntime::FakeRuntime(const Clock& clock) : clock_(clock), loop_(std::make_unique<FakeLoop>()) {}
FakeRuntime::~FakeRuntime() = default;

ContainerRuntime::Started FakeRuntime::create(const SandboxId& id, const SandboxSpec& spec) {
    std::chrono::milliseconds slow{0};
    {
        const MutexLock lock(mutex_);
        if (failing_ > 0) {
            --failing_;
            throw std::runtime_error("the fake runtime was told to fail");
        }
        if (!spec.layer.empty() && !layers_.contains(spec.layer)) {
            throw Error(ErrorCode::NotFound, "there is no layer " + spec.layer);
        }
        slow = slow_;
    }
    if (slow.count() > 0) std::this_thread::sleep_for(slow);
    auto agent = std::make_shared<FakeAgent>(clock_, id, spec.limits.workspace_bytes,
                                             spec.image.starts_with("plain"), group_);
    const MutexLock lock(mutex_);
    if (!agents_.emplace(id, std::move(agent)).second) {
        throw std::runtime_error("the sandbox " + id + " exists");
    }
    infos_[id] = {.id = id,
                  .alive = true,
                  .listening = !accept_only_,
                  .labels = spec.labels,
                  .created_unix_ms = toUnixMillis(clock_.wall())};
    limits_[id] = spec.limits;
    ++created_;
    if (born_) born_->insert(id);
    return accept_only_ ? Started::Accepted : Started::Listening;
}

void FakeRuntime::destroy(const SandboxId& id) {
    std::shared_ptr<FakeAgent> agent;
    {
        const MutexLock lock(mutex_);
        if (resisting_.contains(id)) throw std::runtime_error("the fake runtime was told to fail");
        if (const auto it = agents_.find(id); it != agents_.end()) {
            agent = std::move(it->second);
            agents_.erase(it);
        }
        if (born_) born_->erase(id);
        infos_.erase(id);
        first_.erase(id);
        frozen_.erase(id);
        limits_.erase(id);
        files_.erase(id);
        peaks_.erase(id);
    }
    if (agent) loop_->kill(*agent);
}

std::vector<SandboxInfo> FakeRuntime::list() {
    std::vector<SandboxInfo> all;
    const MutexLock lock(mutex_);
    loop_->quiet([&]() HEARTH_REQUIRES(mutex_) {
        for (const auto& [id, info] : infos_) {
            all.push_back(info);
            all.back().alive = agents_.at(id)->alive();
            all.back().frozen = frozen_.contains(id);
        }
    });
    return all;
}

std::shared_ptr<FakeAgent> FakeRuntime::findAgent(const SandboxId& id) const {
    const MutexLock lock(mutex_);
    const auto it = agents_.find(id);
    return it == agents_.end() ? nullptr : it->second;
}

void FakeRuntime::onNews(const std::function<void(const SandboxId&)>& news) {
    const MutexLock lock(mutex_);
    news_ = news;
}

void FakeRuntime::acceptOnly() {
    const MutexLock lock(mutex_);
    accept_only_ = true;
}

void FakeRuntime::letListen() {
    std::vector<SandboxId> fresh;
    std::function<void(const SandboxId&)> news;
    {
        const MutexLock lock(mutex_);
        for (auto& [id, info] : infos_) {
            if (!std::exchange(info.listening, true)) fresh.push_back(id);
        }
        news = news_;
    }
    if (!news) return;
    for (const SandboxId& id : fresh) news(id);
}

Fd FakeRuntime::connect(const SandboxId& id) {
    const auto agent = findAgent(id);
    if (!agent) throwErrno(ENOENT, "connect", id);
    return loop_->connect(agent);
}

std::optional<SandboxUsage> FakeRuntime::usage(const SandboxId& id) {
    {
        const MutexLock lock(mutex_);
        let_.wait(mutex_, [this]() HEARTH_REQUIRES(mutex_) { return !hold_usage_; });
        if (blind_) throw std::runtime_error("the fake runtime was told to fail");
    }
    return in_cluster_ ? std::nullopt : used(id);
}

std::optional<SandboxUsage> FakeRuntime::used(const SandboxId& id) {
    const auto agent = findAgent(id);
    if (!agent) return std::nullopt;
    return loop_->quiet([&]() -> std::optional<SandboxUsage> {
        SandboxUsage usage;
        usage.oom_kills = group_->oom_kills;
        usage.cpu_ns = group_->cpu_ns;
        // The count of a dead sandbox stays, as in a control group that is not removed yet.
        if (!agent->alive()) return usage.oom_kills > 0 ? std::optional(usage) : std::nullopt;
        const std::uint64_t memory = group_->memory_bytes;
        usage.memory_bytes = memory > 0 ? memory : (1U << 20U) + agent->diskUsed();
        usage.memory_peak_bytes = usage.memory_bytes;
        usage.processes = 1 + agent->running();
        return usage;
    });
}

void FakeRuntime::setMemoryPeak(const SandboxId& id, std::uint64_t bytes) {
    const MutexLock lock(mutex_);
    peaks_[id] = bytes;
}

std::optional<std::uint64_t> FakeRuntime::takeMemoryPeak(const SandboxId& id) {
    const MutexLock lock(mutex_);
    const auto peak = peaks_.extract(id);
    return peak ? std::optional(peak.mapped()) : std::nullopt;
}

void FakeRuntime::holdFiles(const SandboxId& id, std::uint64_t files, std::uint64_t most) {
    const MutexLock lock(mutex_);
    files_[id] = files;
    most_files_ = most;
}

std::optional<FileTable> FakeRuntime::fileTable() {
    const MutexLock lock(mutex_);
    FileTable table{.open = 0, .most = most_files_};
    for (const auto& [id, files] : files_) table.open += files;
    return table;
}

std::map<SandboxId, std::uint64_t> FakeRuntime::openFiles() {
    const MutexLock lock(mutex_);
    return files_;
}

std::optional<LimitInUse> FakeRuntime::narrow(const SandboxId& id, const SandboxLimits& limits) {
    const std::optional<SandboxUsage> now = used(id);
    if (!now) throw Error(ErrorCode::NotFound, "the sandbox has gone");
    const MutexLock lock(mutex_);
    const auto found = limits_.find(id);
    if (found == limits_.end()) throw Error(ErrorCode::NotFound, "the sandbox has gone");
    SandboxLimits& held = found->second;
    if (limits.milli_cpu > held.milli_cpu || limits.memory_bytes > held.memory_bytes ||
        limits.pids > held.pids) {
        throw Error(ErrorCode::Forbidden, "a limit of a sandbox would be raised");
    }
    const std::uint64_t memory = memory_used_ > 0 ? memory_used_ : now->memory_bytes;
    if (now->processes >= limits.pids) {
        return LimitInUse{LimitInUse::Of::Processes, now->processes};
    }
    if (memory > limits.memory_bytes) return LimitInUse{LimitInUse::Of::Memory, memory};
    held.milli_cpu = limits.milli_cpu;
    held.memory_bytes = limits.memory_bytes;
    held.pids = limits.pids;
    return std::nullopt;
}

void FakeRuntime::useMemory(std::uint64_t bytes) {
    const MutexLock lock(mutex_);
    memory_used_ = bytes;
}

std::optional<SandboxLimits> FakeRuntime::limitsOf(const SandboxId& id) const {
    const MutexLock lock(mutex_);
    const auto found = limits_.find(id);
    return found == limits_.end() ? std::nullopt : std::optional(found->second);
}

bool FakeRuntime::goFirst(const SandboxId& id, bool first) {
    const MutexLock lock(mutex_);
    if (first && agents_.contains(id)) {
        first_.insert(id);
    } else {
        first_.erase(id);
    }
    return true;
}

bool FakeRuntime::freeze(const SandboxId& id) {
    const auto agent = findAgent(id);
    if (!agent || cannot_freeze_) return false;
    loop_->hang(*agent);
    const MutexLock lock(mutex_);
    frozen_.insert(id);
    return true;
}

bool FakeRuntime::thaw(const SandboxId& id) {
    {
        const MutexLock lock(mutex_);
        if (frozen_.erase(id) == 0) return true;
    }
    resume(id);
    return true;
}

std::set<SandboxId> FakeRuntime::frozen() const {
    const MutexLock lock(mutex_);
    return frozen_;
}

std::set<SandboxId> FakeRuntime::first() const {
    const MutexLock lock(mutex_);
    return first_;
}

std::string FakeRuntime::resolveImage(const std::string& name) {
    if (name.empty() || name.starts_with("missing")) {
        throw Error(ErrorCode::NotFound, "there is no image \"" + name + "\"")
            .hint("the fake runtime has every image whose name does not begin with \"missing\"");
    }
    if (name.starts_with("packed")) {
        const MutexLock lock(mutex_);
        if (!unpacked_.contains(name)) {
            ++unpackings_;
            let_.wait(mutex_, [this]() HEARTH_REQUIRES(mutex_) { return !hold_; });
            if (name == "packed-broken") {
                throw Error(ErrorCode::InvalidArgument, "the image cannot be unpacked");
            }
            unpacked_.insert(name);
        }
    }
    return "sha256:" + toHex(sha256(name));
}

std::optional<std::string> FakeRuntime::readyImage(const std::string& name) {
    {
        const MutexLock lock(mutex_);
        if (name.starts_with("packed") && !unpacked_.contains(name)) return std::nullopt;
    }
    return resolveImage(name);
}

std::size_t FakeRuntime::unpackings() const {
    const MutexLock lock(mutex_);
    return unpackings_;
}

void FakeRuntime::holdUsage() {
    const MutexLock lock(mutex_);
    hold_usage_ = true;
}

void FakeRuntime::letUse() {
    {
        const MutexLock lock(mutex_);
        hold_usage_ = false;
    }
    let_.notifyAll();
}

std::optional<KnownImage> FakeRuntime::knownImage(const std::string& wanted) {
    const std::string digest = "sha256:" + toHex(sha256(wanted));
    const MutexLock lock(mutex_);
    const bool far = wanted.starts_with("far") && !fetched_.contains(digest);
    if (wanted.starts_with("missing") || far) return std::nullopt;
    return KnownImage{digest, digest, {wanted}};
}

KnownImage FakeRuntime::fetchImage(const ImageFetch& fetch, ImageStages& stages) {
    const std::string digest = "sha256:" + toHex(sha256(fetch.reference));
    const MutexLock lock(mutex_);
    ++fetches_;
    let_.wait(mutex_, [this]() HEARTH_REQUIRES(mutex_) { return !hold_; });
    if (fetch.reference.starts_with("missing")) {
        throw Error(ErrorCode::NotFound, "the registry has no " + fetch.reference);
    }
    fetched_.insert(digest);
    stages.pull = std::chrono::milliseconds(5);
    return {digest, digest, {fetch.reference}};
}

void FakeRuntime::collectImages(const std::vector<std::string>& wanted) {
    const MutexLock lock(mutex_);
    std::erase_if(fetched_, [&](const std::string& digest) {
        return std::find(wanted.begin(), wanted.end(), digest) == wanted.end();
    });
}

std::vector<std::string> FakeRuntime::layers() {
    const MutexLock lock(mutex_);
    return {layers_.begin(), layers_.end()};
}

void FakeRuntime::addLayer(const std::string& digest, int) {
    const MutexLock lock(mutex_);
    layers_.insert(digest);
}

void FakeRuntime::removeLayer(const std::string& digest) {
    const MutexLock lock(mutex_);
    layers_.erase(digest);
}

void FakeRuntime::holdFetches() {
    const MutexLock lock(mutex_);
    hold_ = true;
}

void FakeRuntime::letFetch() {
    {
        const MutexLock lock(mutex_);
        hold_ = false;
    }
    let_.notifyAll();
}

std::set<std::string> FakeRuntime::fetched() const {
    const MutexLock lock(mutex_);
    return fetched_;
}

std::size_t FakeRuntime::fetches() const {
    const MutexLock lock(mutex_);
    return fetches_;
}

std::vector<Leftover> FakeRuntime::sweep(const std::vector<SandboxId>& keep) {
    std::set<SandboxId> kept(keep.begin(), keep.end());
    const std::vector<SandboxInfo> found = list();
    {
        const MutexLock lock(mutex_);
        if (born_) kept.insert(born_->begin(), born_->end());
    }
    std::vector<Leftover> leftovers;
    for (const SandboxInfo& info : found) {
        if (kept.contains(info.id)) continue;
        try {
            destroy(info.id);
        } catch (const std::exception& e) {
            leftovers.push_back({info.id, e.what()});
        }
    }
    return leftovers;
}

void FakeRuntime::begin() {
    const MutexLock lock(mutex_);
    born_.emplace();
}

void FakeRuntime::resist(const SandboxId& id, bool resists) {
    const MutexLock lock(mutex_);
    if (resists) {
        resisting_.insert(id);
    } else {
        resisting_.erase(id);
    }
}

void FakeRuntime::resume(const SandboxId& id) {
    if (const auto agent = findAgent(id)) loop_->resume(*agent);
}

void FakeRuntime::sever(const SandboxId& id) {
    if (const auto agent = findAgent(id)) loop_->sever(*agent);
}

RuntimeFacts FakeRuntime::facts() {
    RuntimeFacts facts;
    facts.name = "fake";
    facts.version = kHearthVersion;
    facts.cgroup = "none";
    facts.images = {"python"};
    return facts;
}

void FakeRuntime::failCreates(unsigned count) {
    const MutexLock lock(mutex_);
    failing_ = count;
}

void FakeRuntime::failUsage() {
    const MutexLock lock(mutex_);
    blind_ = true;
}

void FakeRuntime::slowCreates(std::chrono::milliseconds by) {
    const MutexLock lock(mutex_);
    slow_ = by;
}

std::string FakeRuntime::trouble() const {
    const MutexLock lock(mutex_);
    return trouble_;
}

void FakeRuntime::setTrouble(const std::string& trouble) {
    const MutexLock lock(mutex_);
    trouble_ = trouble;
}

void FakeRuntime::kill(const SandboxId& id) {
    const auto agent = findAgent(id);
    if (!agent) return;
    loop_->kill(*agent);
    std::function<void(const SandboxId&)> news;
    {
        const MutexLock lock(mutex_);
        news = news_;
    }
    if (news) news(id);
}

void FakeRuntime::noteClaim(const SandboxId& id) {
    const MutexLock lock(mutex_);
    const auto found = infos_.find(id);
    if (found != infos_.end()) found->second.claimed = in_cluster_;  // elsewhere marks suffice
}

void FakeRuntime::killForMemory(const SandboxId& id) {
    {
        const MutexLock lock(mutex_);
        infos_.at(id).out_of_memory = true;
    }
    kill(id);
}

void FakeRuntime::cordon(const SandboxId& id) {
    std::function<void(const SandboxId&)> news;
    {
        const MutexLock lock(mutex_);
        infos_.at(id).unfit = "its node is cordoned";
        news = news_;
    }
    if (news) news(id);
}

void FakeRuntime::hang(const SandboxId& id) {
    if (const auto agent = findAgent(id)) loop_->hang(*agent);
}

std::size_t FakeRuntime::running() const {
    const MutexLock lock(mutex_);
    return loop_->quiet([&]() HEARTH_REQUIRES(mutex_) {
        std::size_t count = 0;
        for (const auto& [id, agent] : agents_) count += agent->alive() ? 1 : 0;
        return count;
    });
}

std::size_t FakeRuntime::created() const {
    const MutexLock lock(mutex_);
    return created_;
}

}  // namespace hearth::pool
