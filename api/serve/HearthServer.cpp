#include "api/serve/HearthServer.h"

#include <malloc.h>
#include <sys/stat.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>

#include "api/kubernetes/WorkspaceObjects.h"
#include "api/serve/ApiServer.h"
#include "api/serve/Greeting.h"
#include "api/serve/PartOptions.h"
#include "api/serve/PoolSetup.h"
#include "api/serve/PrivilegedSetup.h"
#include "api/serve/SandboxHost.h"
#include "api/serve/ServerState.h"
#include "api/serve/TokenFile.h"
#include "api/serve/TraceSetup.h"
#include "api/serve/process/SignalThread.h"
#include "api/serve/process/Terminal.h"
#include "api/serve/runtimes/Runtimes.h"
#include "api/serve/standby/LeaseWatch.h"
#include "api/serve/standby/Standby.h"
#include "base/Error.h"
#include "controller/ControlPlane.h"
#include "controller/journal/SharedHistory.h"
#include "controller/store/StateFiles.h"
#include "metrics/LogTail.h"
#include "metrics/LogWriter.h"
#include "pool/sys/NotifySocket.h"

namespace hearth::program {
namespace {

constexpr auto kShutdownWait = std::chrono::seconds(15);
constexpr int kLauncherDied = 70;
constexpr int kDeposed = 75;

/// Ends the sandboxes that nobody has claimed.
void endWarm(controller::ControlPlane& plane) {
    const Clock& clock = plane.foundation.clock;
    const auto warm = [](const pool::Member& member) {
        return member.phase != pool::Phase::Claimed;
    };
    for (const pool::Member& member : plane.warm.all()) {
        if (warm(member)) plane.terminator.retire(member, EndReason::Shutdown);
    }
    const TimePoint until = clock.now() + kShutdownWait;
    for (TimePoint now = clock.now(); now < until; now = clock.now()) {
        const std::uint64_t seen = plane.warm.removals();
        const std::vector<pool::Member> left = plane.warm.all();
        if (std::none_of(left.begin(), left.end(), warm)) return;
        plane.warm.awaitRemoval(seen, std::chrono::ceil<std::chrono::milliseconds>(until - now));
    }
}

/// The parts of a server, and the order in which they start and stop. A member is declared after
/// the members it needs, so members are destroyed in the reverse order.
class HearthServer {
public:
    HearthServer(const cli::ServeConfig& config, PrivilegedSetup setup, const Replica& replica,
                 const Reports& reports, SignalThread& signals, const Terminal& terminal,
                 const sys::NotifySocket& manager)
        : config_(config),
          signals_(signals),
          terminal_(terminal),
          manager_(manager),
          setup_(std::move(setup)),
          replica_(replica),
          log_(reports.log),
          state_(config, setup_, replica, reports),
          host_(config, setup_, reports, [this] { signals_.end(); }),
          plane_({host_.runtime(), poller_, state_.journal, reports.metrics, log_, reports.clock,
                  host_.gpus(), reports.tracer},
                 optionsOfPlane()),
          api_(config, setup_, state_, host_, plane_, signals, reports),
          pools_(config, plane_, api_.gate, terminal, signals.ended()) {
        noteUse(setup_);
    }

    /// Serves until a signal or a failure. Both lead to the same shutdown, so that no sandbox is
    /// left without a server.
    int run() {
        const std::stop_callback no_images(signals_.ended(),
                                           [this] { host_.runtime().stopFetching(); });
        try {
            start();
            while (signals_.wait() == SignalThread::News::HangUp) {
                api_.audit.reopen();
                api_.access.reopen();
                if (token_file_) token_file_->hurry();
            }
        } catch (...) {
            stop();
            throw;
        }
        return stop();
    }

private:
    controller::PlaneOptions optionsOfPlane() {
        controller::PlaneOptions options =
            planeOptions(config_, setup_.instance, state_.secret_key);
        options.disk = host_.workspaceDisk();
        options.reserve = &state_.reserve;
        options.measure = [this] { host_.measure(); };
        options.term = replica_.term();
        return options;
    }

    /// Starts all parts. The addresses come first: if they are taken, nothing has been made yet.
    void start() {
        cli::checkExposure(config_, closed());
        if (!config_.file.empty()) {
            token_file_ = std::make_unique<TokenFile>(config_.file, *config_.tokens, state_.tokens,
                                                      plane_.foundation.metrics, log_);
            token_file_->begin();
        }
        tellAccess();
        plane_.quota_service.declare(setup_.quotas);
        api_.operations.start();
        api_.front.start();
        pools_.declareFiles(setup_);
        pools_.followObjects();
        if (ending()) return;
        pools_.warnOfMissingDefault();
        api_.gate.say("asking the sandboxes of the previous run for their state");
        plane_.recover();
        plane_.begin();
        plane_.loop.start();
        looping_ = true;
        plane_.reclaimer.start();
        if (replica_.leadership != nullptr) {
            lease_watch_ = std::make_unique<LeaseWatch>(
                *replica_.leadership, [this](std::optional<Error> why) {
                    plane_.line.setGate(controller::ClaimQueue::Gate::ReadyOnly, std::move(why));
                });
        }
        if (*config_.custom_resources) claimForObjects();
        api_.gate.say("looking for the images of the pools");
        api_.gate.open();  // earlier workspaces do not wait for images
        pools_.prepareImages();
        if (ending()) return;
        api_.readiness.begin();
        manager_.ready();
        greet();
    }

    bool ending() const { return signals_.ended().stop_requested(); }
    /// True if callers need a token.
    bool closed() const { return state_.tokens.configured() || api_.issuers.any(); }
    std::string scheme() const { return (*config_.tls_cert).empty() ? "http://" : "https://"; }

    /// Logs why no caller is served, or why callers without a token are.
    void tellAccess() {
        if (closed() || !state_.token_history.had()) return;
        if (state_.tokens.open()) {
            log_.warn("auth.opened", {{"by", config_.open_loopback.origin},
                                      {"hint", "loopback callers are admin without a token"}});
        } else {
            log_.error("auth.closed", {{"error", "this instance had tokens and has none now"},
                                       {"hint", kOpenAgain}});
        }
    }

    void claimForObjects() {
        const std::string& told =
            (*config_.advertise).empty() ? *config_.listen : *config_.advertise;
        workspace_objects_ = std::make_unique<kubernetes::WorkspaceObjects>(
            clusterOf(config_), plane_.workspaces, state_.secret_key,
            (*config_.public_url).empty() ? scheme() + told : *config_.public_url,
            plane_.foundation.clock, log_);
        workspace_objects_->begin();
    }

    void greet() const {
        const api::Front& front = api_.front;
        const api::OperationsServer& operations = api_.operations;
        const Greeting greeting{
            .url = scheme() + front.address() + ":" + std::to_string(front.port()),
            .operations = operations.address() + ":" + std::to_string(operations.port()),
            .seed = *config_.compat,
            .access = closed()               ? Greeting::Access::WithToken
                      : state_.tokens.open() ? Greeting::Access::Open
                                             : Greeting::Access::Nobody,
            .missing_pool = pools_.missingDefault(),
            .any_pool = pools_.anyDeclared()};
        terminal_.say(greeting.text());
    }

    int stop() {
        log_.info("server.stopping");
        manager_.stopping();
        api_.readiness.stop();
        if (workspace_objects_) workspace_objects_->stop();
        pools_.stopObjects();
        plane_.line.setGate(controller::ClaimQueue::Gate::Closed,
                            Error(ErrorCode::Unavailable, "the server is shutting down")
                                .hint("try again after its restart"));
        plane_.on_demand.stop();
        plane_.layers.stop();
        api_.front.stop();
        plane_.pool_reconciler.shutDown();
        host_.runtime().finishWithin(kShutdownWait);
        // With replicas, the next leader continues with the warm sandboxes.
        if (looping_ && !host_.died() && replica_.leadership == nullptr &&
            *config_.shutdown_warm == cli::ShutdownWarm::Destroy) {
            endWarm(plane_);
        }
        host_.gpus().stop();  // stopped first, because a scrub would take minutes
        plane_.loop.stop();
        if (!host_.died()) plane_.usage.look();
        state_.journal.flush(kShutdownWait);
        api_.operations.stop();
        if (replica_.leadership != nullptr) replica_.leadership->release();
        host_.unlock();  // the launcher, which ends now, removes the folder if no sandbox is left
        log_.info("server.stopped");
        return host_.died() ? kLauncherDied : 0;
    }

    const cli::ServeConfig& config_;
    SignalThread& signals_;
    const Terminal& terminal_;
    const sys::NotifySocket& manager_;
    PrivilegedSetup setup_;
    const Replica replica_;
    metrics::Log& log_;
    bool looping_ = false;
    agent::Poller poller_;  ///< first: the journal's callbacks hold agent clients, too
    ServerState state_;
    SandboxHost host_;
    controller::ControlPlane plane_;
    ApiServer api_;
    PoolSetup pools_;
    std::unique_ptr<kubernetes::WorkspaceObjects> workspace_objects_;  ///< null: none are followed
    std::unique_ptr<LeaseWatch> lease_watch_;                          ///< null without replicas
    std::unique_ptr<TokenFile> token_file_;                            ///< null without --config
};

/// Makes the allocator return large blocks to the machine. By default it raises its threshold to
/// the largest block ever freed (16 MiB of output), and each heap may keep that much.
void keepHeapSmall() {
    constexpr int kLarge = 128 << 10;
    constexpr int kKept = 1 << 20;
    ::mallopt(M_MMAP_THRESHOLD, kLarge);
    ::mallopt(M_TRIM_THRESHOLD, kKept);
}

}  // namespace

/// Ends the process because another replica leads, which further work here would only disturb. That
/// replica owns the sandboxes now, so they are not ended.
[[noreturn]] void leave(metrics::Log& log, const std::string& why) {
    log.error("leader.deposed", {{"why", why}});
    std::_Exit(kDeposed);
}

int serve(const cli::ServeConfig& config, const Replacements& replaced) {
    keepHeapSmall();
    const std::optional<metrics::OtlpSettings> trace_settings = traceSettings();
    const Terminal terminal;
    const sys::NotifySocket manager = sys::NotifySocket::ofEnvironment();
    PrivilegedSetup setup = prepare(config, replaced);
    SignalThread signals(std::chrono::seconds(*config.shutdown_delay_seconds));
    std::signal(SIGPIPE, SIG_IGN);
    ::umask(077);
    const SystemClock clock;
    metrics::Metrics metrics;
    metrics::LogWriter writer(terminal.log, metrics, metrics::LogWriter::kMost, *config.log_format);
    metrics::LogTail tail;
    metrics::Log log(writer, *config.log_level, &tail);
    const TraceSetup traces(trace_settings, clock, log, metrics);
    const Reports reports{clock, metrics, log, traces.tracer()};
    const std::unique_ptr<Leadership> leadership = setup.runtime->leadership(clock, log);
    const std::unique_ptr<controller::SharedHistory> shared = sharedHistory(
        config, leadership.get(), controller::databasePath(setup.instance.data_dir), log);
    if (leadership) {
        const auto deposed = [&log](const std::string& why) { leave(log, why); };
        if (!standBy(config, *leadership, shared.get(), reports, signals, deposed)) return 0;
    }
    return HearthServer(config, std::move(setup), {leadership.get(), shared.get()}, reports,
                        signals, terminal, manager)
        .run();
}

}  // namespace hearth::program
