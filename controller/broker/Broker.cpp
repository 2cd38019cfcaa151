#include "controller/broker/Broker.h"

#include <Poco/Exception.h>
#include <Poco/Runnable.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <set>
#include <utility>
#include <vector>

#include "base/Error.h"
#include "controller/broker/ProxyConnection.h"

namespace hearth::broker {
namespace {

constexpr int kFewestThreads = 2;
constexpr int kMostThreads = 512;
constexpr int kIdleSeconds = 30;
constexpr int kStack = 512 << 10;
constexpr int kNice = 5;

std::vector<std::string> trustedOf(const MirrorSources& sources) {
    std::vector<std::string> out;
    for (const std::string& url : {sources.pypi, sources.npm}) {
        if (url.empty()) continue;
        const std::optional<std::string> host = hostAndPort(url);
        if (!host) throw Error(ErrorCode::InvalidArgument, "mirrors: \"" + url + "\" is no URL");
        out.push_back(*host);
    }
    constexpr std::uint16_t kHttps = 443;
    for (const std::string& host : sources.hosts) {
        if (const auto known = Destination::parse(host, kHttps)) out.push_back(known->text());
    }
    return out;
}

std::string brokerUrl() {
    return "http://127.0.0.1:" + std::to_string(kBrokerPort);
}

/// One task of the pool, which frees itself: Poco's pool does not own what it runs.
class Task final : public Poco::Runnable {
public:
    Task(std::function<void()> work, metrics::Log& log) : work_(std::move(work)), log_(log) {}
    void run() override {
        const std::unique_ptr<Task> self(this);
        ::setpriority(PRIO_PROCESS, 0, kNice);  // on Linux, of this thread
        try {
            work_();
        } catch (const std::exception& e) {  // the thread's top
            log_.error("broker.failed", {{"error", e.what()}});
        }
    }

private:
    std::function<void()> work_;
    metrics::Log& log_;
};

}  // namespace

/// One workspace's way out: its connections, each counted against what its agent may hand over.
class Broker::Session final : public agent::BrokerSink,
                              public std::enable_shared_from_this<Session> {
public:
    Session(Broker& broker, const WorkspaceEgress::Facts& facts, const NetworkPolicy& policy)
        : broker_(broker),
          egress_(facts, policy, broker.options_.limits, broker.log_, broker.metrics_,
                  broker.clock_) {}

    void begin(std::shared_ptr<agent::BrokerHandle> handle) {
        {
            const std::lock_guard lock(mutex_);
            handle_ = handle;
        }
        handle->grant(egress_.limits().connections);
    }

    void connected(Fd connection) override {
        const auto fd = std::make_shared<Fd>(std::move(connection));
        {
            const std::lock_guard lock(mutex_);
            if (ended_) return;
            open_.insert(fd->get());
        }
        const bool runs = broker_.start([self = shared_from_this(), fd] { self->serve(*fd); });
        if (runs) return;
        broker_.log_.warn("broker.busy", {{"workspace", egress_.facts().workspace}});
        const std::lock_guard lock(mutex_);
        open_.erase(fd->get());
        ++owed_;  // this thread must not ask the agent: the next that ends does
    }

    void refused(const std::string& why) override {
        broker_.log_.warn("broker.refused",
                          {{"workspace", egress_.facts().workspace}, {"why", why}});
    }

    void end() {
        const std::lock_guard lock(mutex_);
        ended_ = true;
        handle_ = nullptr;
        for (const int fd : open_) ::shutdown(fd, SHUT_RDWR);
    }

    EgressReport report() const { return egress_.report(); }

private:
    void serve(Fd& fd) {
        ProxyConnection(fd.get(), egress_, broker_.dialer_,
                        broker_.mirror_ ? &*broker_.mirror_ : nullptr, broker_.clock_)
            .run();
        if (broker_.cache_) {
            broker_.metrics_.mirrorCacheBytes(static_cast<double>(broker_.cache_->bytes()));
        }
        std::shared_ptr<agent::BrokerHandle> handle;
        std::uint32_t again = 1;
        {
            const std::lock_guard lock(mutex_);
            open_.erase(fd.get());
            fd.reset();  // before its number may belong to another
            handle = handle_;
            again += std::exchange(owed_, 0);
        }
        if (handle) handle->grant(again);
    }

    Broker& broker_;
    WorkspaceEgress egress_;
    std::mutex mutex_;
    std::shared_ptr<agent::BrokerHandle> handle_;  // guarded by mutex_
    std::set<int> open_;                           // guarded by mutex_
    std::uint32_t owed_ = 0;                       // guarded by mutex_
    bool ended_ = false;                           // guarded by mutex_
};

Broker::Broker(BrokerOptions options, metrics::Log& log, metrics::Metrics& metrics,
               const Clock& clock)
    : options_(std::move(options)),
      log_(log),
      metrics_(metrics),
      clock_(clock),
      dialer_(options_.deny),
      threads_(kFewestThreads, kMostThreads, kIdleSeconds, kStack) {
    if (!options_.mirrors.any()) return;
    fetcher_.emplace(options_.deny, trustedOf(options_.mirrors));
    cache_.emplace(options_.cache_directory, options_.cache_bytes,
                   [this](std::function<void()> task) { return start(std::move(task)); });
    mirror_.emplace(options_.mirrors, brokerUrl(), *fetcher_, *cache_, clock_);
}

Broker::~Broker() {
    std::map<std::string, std::shared_ptr<Session>> left;
    {
        const std::lock_guard lock(mutex_);
        left.swap(sessions_);
    }
    if (fetcher_) fetcher_->stop();
    for (const auto& [id, session] : left) session->end();
    threads_.joinAll();
}

bool Broker::start(std::function<void()> task) {
    auto owned = std::make_unique<Task>(std::move(task), log_);
    try {
        threads_.start(*owned);
    } catch (const Poco::NoThreadAvailableException&) {
        return false;
    }
    owned.release();  // it frees itself
    return true;
}

std::map<std::string, std::string> Broker::environment(NetworkMode mode) const {
    if (mode == NetworkMode::None) return {};
    std::map<std::string, std::string> env;
    if (mirror_) env = mirror_->environment();
    // Also where only packages are to be had: a refusal that says why beats a name that is unknown.
    for (const char* name : {"HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"}) {
        env[name] = brokerUrl();
    }
    for (const char* name : {"NO_PROXY", "no_proxy"}) env[name] = "localhost,127.0.0.1,::1";
    return env;
}

std::vector<std::string> Broker::mirrored() const {
    std::vector<std::string> out;
    if (!options_.mirrors.pypi.empty()) out.emplace_back("pypi");
    if (!options_.mirrors.npm.empty()) out.emplace_back("npm");
    return out;
}

void Broker::open(const std::string& sandbox, const WorkspaceEgress::Facts& facts,
                  const NetworkPolicy& policy, agent::AgentClient& agent) {
    if (policy.mode == NetworkMode::None) return;
    const auto session = std::make_shared<Session>(*this, facts, policy);
    {
        const std::lock_guard lock(mutex_);
        sessions_[sandbox] = session;
    }
    try {
        session->begin(agent.broker(kBrokerPort, session));
    } catch (const agent::AgentLost&) {
        close(sandbox);
        throw;
    }
}

void Broker::close(const std::string& sandbox) {
    std::shared_ptr<Session> session;
    {
        const std::lock_guard lock(mutex_);
        const auto found = sessions_.find(sandbox);
        if (found == sessions_.end()) return;
        session = std::move(found->second);
        sessions_.erase(found);
    }
    session->end();
}

EgressReport Broker::report(const std::string& sandbox) const {
    std::shared_ptr<Session> session;
    {
        const std::lock_guard lock(mutex_);
        const auto found = sessions_.find(sandbox);
        if (found == sessions_.end()) return {};
        session = found->second;
    }
    return session->report();
}

}  // namespace hearth::broker
