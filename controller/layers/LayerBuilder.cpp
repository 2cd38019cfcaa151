#include "controller/layers/LayerBuilder.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/Error.h"
#include "base/Ids.h"
#include "base/Json.h"
#include "controller/packages/PackageSpec.h"

namespace hearth::controller {
namespace {

using std::chrono::milliseconds;

constexpr const char* kProgram = "/.hearth/packages/layer.py";
constexpr const char* kFolder = "layer";  // in the workspace, where the program installs
constexpr const char* kLabel = "layer-builder";
constexpr auto kStart = std::chrono::minutes(5);
constexpr auto kAnswer = std::chrono::seconds(10);
constexpr auto kResolve = std::chrono::minutes(10);
constexpr auto kInstall = std::chrono::minutes(15);
constexpr auto kWhole = std::chrono::minutes(40);
constexpr auto kSlice = milliseconds(200);
constexpr std::size_t kMostBuildOutput = 2U << 20U;
constexpr std::uint64_t kMostArchive = 5ULL << 30U;
constexpr JsonLimits kBuildOutcome{
    .bytes = kMostBuildOutput, .depth = 4, .values = 16, .members = 8};

/// Enough room to unpack; the pool's own limits may be too small.
pool::SandboxLimits limits() {
    pool::SandboxLimits limits;
    limits.milli_cpu = 2000;
    limits.memory_bytes = 3ULL << 30U;
    limits.pids = 256;
    limits.workspace_bytes = 3ULL << 30U;
    limits.tmp_bytes = 64ULL << 20U;
    return limits;
}

/// Keeps a program's last output and its end.
class Told final : public agent::ExecSink {
public:
    void started(const agent::ExecStart&) override {}
    void output(int channel, std::uint64_t, std::string_view bytes) override {
        if (channel != 1) return;
        const MutexLock lock(mutex_);
        text_ += bytes;
        if (text_.size() > 2 * kMostBuildOutput) text_.erase(0, text_.size() - kMostBuildOutput);
    }
    void exited(const agent::ExecResult& result) override {
        const MutexLock lock(mutex_);
        status_ = result.status;
        exit_code_ = result.exit_code;
    }
    void lost(const std::optional<agent::AgentError>& error) override {
        const MutexLock lock(mutex_);
        status_ = agent::ExecutionStatus::Lost;
        if (error) refused_ = error->code();
    }

    bool ended() const {
        const MutexLock lock(mutex_);
        return status_.has_value();
    }
    /// The last line, in which the program reports its outcome; throws Error without one.
    Json outcome() const {
        const MutexLock lock(mutex_);
        if (status_ == agent::ExecutionStatus::Timeout) {
            throw Error(ErrorCode::Deadline, "installing the packages took too long");
        }
        if (status_ == agent::ExecutionStatus::Lost && refused_.empty()) {
            throw Error(ErrorCode::SandboxLost, "the sandbox that installed them was lost");
        }
        std::string text = text_;
        while (!text.empty() && text.back() == '\n') text.pop_back();
        Json told = Json::object();
        try {
            told = parseJson(text.substr(text.rfind('\n') + 1), kBuildOutcome);
        } catch (const Error&) {
            told = nullptr;
        }
        if (!told.is_object()) {
            const bool no_python = exit_code_ == 126 || exit_code_ == 127;
            throw Error(ErrorCode::InvalidArgument,
                        no_python ? "the image has no python3"
                                  : "the installer ended without an outcome, status " +
                                        (refused_.empty() ? agent::kExecutionStatuses.of(*status_)
                                                          : "refused: " + refused_) +
                                        ", exit " + std::to_string(exit_code_));
        }
        const auto error = told.find("error");
        if (error != told.end() && error->is_string()) {
            throw Error(ErrorCode::InvalidArgument, toUtf8(error->get<std::string>()));
        }
        return told;
    }

private:
    mutable Mutex mutex_;
    std::string text_ HEARTH_GUARDED_BY(mutex_);
    std::optional<agent::ExecutionStatus> status_ HEARTH_GUARDED_BY(mutex_);  // none: still running
    std::string refused_ HEARTH_GUARDED_BY(mutex_);  // the code of a refusal
    int exit_code_ HEARTH_GUARDED_BY(mutex_) = 0;
};

}  // namespace

/// The sandbox of one build, from its creation to its end.
class SandboxLayerBuilder::Bench {
public:
    Bench(SandboxLayerBuilder& builder, const LayerOrder& order)
        : builder_(builder), id_(newId("sb_")) {
        const MutexLock lock(builder_.mutex_);
        builder_.bench_ = id_;
        spec_.image = order.image;
        spec_.image_digest = order.image_digest;
        spec_.limits = limits();
        spec_.labels = {{kLabel, "1"}, {"pool", order.pool}};
    }
    ~Bench() {
        agent_.reset();
        builder_.gateway_.close(id_);
        try {
            builder_.runtime_.destroy(id_);
        } catch (const std::exception& e) {
            // The sandbox is no longer owned and so an orphan, which is swept repeatedly.
            builder_.log_.warn("layer.builder_left", {{"sandbox", id_}, {"error", e.what()}});
        }
        const MutexLock lock(builder_.mutex_);
        builder_.bench_.clear();
    }
    Bench(const Bench&) = delete;
    Bench& operator=(const Bench&) = delete;

    void open(const std::string& pool) {
        const TimePoint until = builder_.clock_.now() + kStart;
        if (builder_.runtime_.create(id_, spec_) == pool::SandboxRuntime::Started::Accepted) {
            awaitListening(until);
        }
        builder_.check();
        agent_ = std::make_unique<agent::AgentClient>(
            builder_.poller_, builder_.runtime_.dialer(id_), builder_.epoch_.get(), kAnswer,
            [](const agent::AgentLost&) {}, &builder_.clock_);
        agent::BindRequest bind;
        bind.epoch = builder_.epoch_.get();
        bind.claim_id = "layer-" + id_;
        bind.tenant = "hearth";
        bind.workspace_id = "layer";
        bind.fingerprint = "layer";
        bind.env = builder_.gateway_.environment(egress::NetworkMode::Mirror);
        bind.deadlines.expires_at = builder_.clock_.now() + kWhole;
        agent_->bind(bind, kAnswer);
        egress::NetworkPolicy mirror;
        mirror.mode = egress::NetworkMode::Mirror;
        builder_.gateway_.open(id_, {"layer", "hearth", pool}, mirror, nullptr, *agent_);
    }

    /// Runs one step of the program; returns its outcome.
    Json run(const char* step, const Json& task, milliseconds limit) {
        agent::ExecRequest request;
        request.id = newId("ex_");
        request.fingerprint = step;
        request.argv = {"python3", kProgram, step};
        request.stdin_open = true;
        request.timeout = limit;
        request.output_limit = kMostBuildOutput;
        const auto told = std::make_shared<Told>();
        const auto handle = agent_->exec(request, told);
        handle->writeStdin(dumpJson(task), kAnswer);
        handle->closeStdin();
        const TimePoint until = builder_.clock_.now() + limit + kAnswer;
        while (!told->ended()) {
            builder_.check();
            if (builder_.clock_.now() > until) {
                throw Error(ErrorCode::Deadline, "the sandbox that installs them does not answer");
            }
            agent_->drive([&] { return told->ended(); }, kSlice);
        }
        return told->outcome();
    }

    Fd takeTree() {
        Fd file = nameless();
        std::uint64_t bytes = 0;
        agent_->readArchive(kFolder, [&](std::string_view piece) {
            builder_.check();
            bytes += piece.size();
            if (bytes > kMostArchive) {
                throw Error(ErrorCode::InvalidArgument, "the packages are too large for a layer");
            }
            write(file.get(), piece);
            return true;
        });
        return file;
    }

private:
    void awaitListening(TimePoint until) const {
        for (;;) {
            builder_.check();
            const auto info = builder_.runtime_.find(id_);
            if (!info || !info->alive || builder_.clock_.now() > until) {
                throw std::runtime_error("the sandbox did not start");
            }
            if (info->listening) return;
            builder_.awaitNews(pool::kLookAgain);
        }
    }

    /// If a crash comes before unlink(), LayerLocks removes the file.
    Fd nameless() const {
        std::string path = builder_.directory_ + "/XXXXXX" + kUnfinishedLock;
        Fd file(
            ::mkostemps(path.data(), static_cast<int>(std::strlen(kUnfinishedLock)), O_CLOEXEC));
        if (!file || ::unlink(path.c_str()) != 0) throwErrno("make", path);
        return file;
    }

    static void write(int fd, std::string_view piece) {
        while (!piece.empty()) {
            const ssize_t n = ::write(fd, piece.data(), piece.size());
            if (n < 0 && errno == ENOSPC) {
                throw Error(ErrorCode::DiskFull, "the disk of the data directory is full");
            }
            if (n < 0 && errno != EINTR) throwErrno("write", "the archive of a layer");
            if (n > 0) piece.remove_prefix(static_cast<std::size_t>(n));
        }
    }

    SandboxLayerBuilder& builder_;
    const pool::SandboxId id_;
    pool::SandboxSpec spec_;
    std::unique_ptr<agent::AgentClient> agent_;
};

SandboxLayerBuilder::SandboxLayerBuilder(pool::ContainerRuntime& runtime, agent::Poller& poller,
                                         egress::EgressGateway& gateway, const Epoch& epoch,
                                         std::string directory, metrics::Log& log,
                                         const Clock& clock)
    : runtime_(runtime),
      poller_(poller),
      gateway_(gateway),
      epoch_(epoch),
      directory_(std::move(directory)),
      log_(log),
      clock_(clock) {}

void SandboxLayerBuilder::check() const {
    if (stopped_) throw Error(ErrorCode::Unavailable, "the server is shutting down");
}

BuiltLayer SandboxLayerBuilder::build(const LayerOrder& order) {
    check();
    const std::vector<egress::IndexKind> mirrored = gateway_.mirrored();
    if (std::find(mirrored.begin(), mirrored.end(), egress::IndexKind::Pypi) == mirrored.end()) {
        throw Error(ErrorCode::Unsupported, notMirrored(egress::IndexKind::Pypi));
    }
    Bench bench(*this, order);
    bench.open(order.pool);
    std::string text = order.lock;
    if (text.empty()) {
        const Json told = bench.run("resolve", {{"specs", order.specs}}, kResolve);
        const auto lock = told.find("lock");
        if (lock != told.end() && lock->is_string()) text = lock->get<std::string>();
    }
    BuiltLayer built{parseLayerLock(text), {}};
    bench.run("install", {{"lock", built.lock.text}}, kInstall);
    built.tar = bench.takeTree();
    return built;
}

void SandboxLayerBuilder::stop() {
    stopped_ = true;
    notice();
}

void SandboxLayerBuilder::notice() {
    const MutexLock lock(mutex_);
    ++news_;
    changed_.notifyAll();
}

void SandboxLayerBuilder::awaitNews(std::chrono::milliseconds most) {
    const MutexLock lock(mutex_);
    changed_.waitFor(mutex_, most,
                     [&]() HEARTH_REQUIRES(mutex_) { return stopped_ || news_ > seen_; });
    seen_ = news_;
}

bool SandboxLayerBuilder::owns(const pool::SandboxId& id) const {
    const MutexLock lock(mutex_);
    return id == bench_;
}

bool SandboxLayerBuilder::isBuilder(const std::map<std::string, std::string>& labels) {
    return labels.contains(kLabel);
}

}  // namespace hearth::controller
