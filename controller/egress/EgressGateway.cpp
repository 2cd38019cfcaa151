#include "controller/egress/EgressGateway.h"

#include <sys/socket.h>

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "base/Error.h"
#include "controller/egress/ProxyConnection.h"
#include "controller/egress/policy/NetworkPolicy.h"

namespace hearth::egress {
namespace {

constexpr int kMostConnections = 512;
constexpr int kMostConnectionsOfTenant = 128;
constexpr int kMostFetches = 32;
/// Less than kMostFetches: only then TenantPlaces leaves places for the next tenant.
constexpr int kMostFetchesOfTenant = kMostFetches * 3 / 4;

/// Every name of a sandbox for itself: a program that asks its own server needs no way out.
constexpr const char* kOwnNames = "localhost,127.0.0.1,127.0.0.0/8,::1,0.0.0.0,sandbox";

std::vector<std::string> indexesOf(const MirrorSources& sources) {
    std::vector<std::string> urls;
    if (!sources.pypi.empty()) urls.push_back(sources.pypi);
    if (!sources.npm.empty()) urls.push_back(sources.npm);
    return urls;
}

std::vector<std::string> trustedOf(const MirrorSources& sources) {
    std::vector<std::string> out;
    for (const std::string& url : indexesOf(sources)) {
        const std::optional<std::string> host = hostAndPort(url);
        if (!host) throw Error(ErrorCode::InvalidArgument, "mirrors: \"" + url + "\" is no URL");
        out.push_back(*host);
    }
    for (const std::string& host : sources.hosts) {
        if (const auto known = Destination::parse(host, kHttpsPort)) out.push_back(known->text());
    }
    return out;
}

std::string gatewayUrl() {
    return "http://127.0.0.1:" + std::to_string(kEgressPort);
}

}  // namespace

/// One workspace's way out: its connections count against the limit granted to its agent.
class EgressGateway::Session final : public agent::EgressSink,
                                     public std::enable_shared_from_this<Session> {
public:
    Session(EgressGateway& gateway, const WorkspaceEgress::Facts& facts,
            const NetworkPolicy& policy, std::shared_ptr<const Keyring> keyring)
        : gateway_(gateway),
          keyring_(std::move(keyring)),
          egress_(facts, policy, gateway.options_.limits, gateway.log_, gateway.metrics_,
                  gateway.clock_, gateway.tracer_),
          proxy_{.egress = egress_,
                 .dialer = gateway.dialer_,
                 .mirror = gateway.mirror_ ? &*gateway.mirror_ : nullptr,
                 .keyring = keyring_.get(),
                 .ca_file = gateway.options_.ca_file,
                 .clock = gateway.clock_} {}

    void begin(const std::shared_ptr<agent::EgressHandle>& handle) {
        std::uint32_t free = egress_.limits().connections;
        std::shared_ptr<agent::EgressHandle> before = handle;  // the streams it carried end with it
        {
            const MutexLock lock(mutex_);
            before.swap(handle_);
            free -= std::min(free, places_);
        }
        if (free > 0) handle->grant(free);
    }

    void connected(Fd connection) override {
        const std::shared_ptr<Place> place = Place::take(*this);
        if (!place) return;
        // Moved, so it is destroyed in the other thread, before its place is freed.
        start([self = shared_from_this(), place,
               open = std::make_shared<Open>(*this, std::move(connection))] {
            const int fd = open->fd();
            self->serve(fd, [fd] { resetAtClose(fd); });
        });
    }

    void announced(std::int64_t connection) override {
        const std::shared_ptr<Place> place = Place::take(*this);
        if (!place) return;
        start([self = shared_from_this(), place, connection] { self->take(connection, place); });
    }

    void refused(const std::string& why) override {
        gateway_.log_.warn("egress.refused",
                           {{"workspace", egress_.facts().workspace}, {"why", why}});
    }

    void end() {
        std::shared_ptr<agent::EgressHandle> last;  // destroyed after unlock: places lock the mutex
        const MutexLock lock(mutex_);
        ended_ = true;
        last.swap(handle_);
        for (const int fd : open_) ::shutdown(fd, SHUT_RDWR);
    }

    EgressReport report() const { return egress_.report(); }

private:
    /// One of the connections that the workspace may have. When the place is free again, the agent
    /// may hand over another connection.
    class Place {
    public:
        /// Null once the session has ended.
        static std::shared_ptr<Place> take(Session& session) {
            const MutexLock lock(session.mutex_);
            if (session.ended_) return nullptr;
            ++session.places_;
            return std::make_shared<Place>(session.shared_from_this());
        }
        explicit Place(std::shared_ptr<Session> session) : session_(std::move(session)) {}
        Place(const Place&) = delete;
        Place& operator=(const Place&) = delete;
        ~Place() {
            std::shared_ptr<agent::EgressHandle> handle;
            {
                const MutexLock lock(session_->mutex_);
                --session_->places_;
                handle = session_->handle_;
            }
            if (handle) handle->grant(1);
        }

    private:
        const std::shared_ptr<Session> session_;
    };

    /// A connection while it is open here, so that the session's end can shut it down.
    class Open {
    public:
        Open(Session& session, Fd fd) : session_(session), fd_(std::move(fd)) {
            const MutexLock lock(session_.mutex_);
            session_.open_.insert(fd_.get());
            if (session_.ended_) ::shutdown(fd_.get(), SHUT_RDWR);
        }
        Open(const Open&) = delete;
        Open& operator=(const Open&) = delete;
        ~Open() {
            const MutexLock lock(session_.mutex_);
            session_.open_.erase(fd_.get());
            fd_.reset();  // inside the lock: its number may soon belong to another file
        }
        int fd() const { return fd_.get(); }

    private:
        Session& session_;
        Fd fd_;
    };

    void start(std::function<void()> work) {
        gateway_.threads_.start(egress_.facts().tenant, std::move(work));
    }

    void take(std::int64_t connection, const std::shared_ptr<Place>& place) {
        std::shared_ptr<agent::EgressHandle> handle;
        {
            const MutexLock lock(mutex_);
            handle = handle_;
        }
        if (!handle) return;
        agent::TakenConnection taken;
        try {
            taken = handle->take(connection, place);
        } catch (const agent::AgentLost&) {
            return;  // the workspace gets the same error
        } catch (const std::runtime_error& e) {
            return refused(e.what());
        }
        handle = nullptr;
        const Open open(*this, std::move(taken.socket));
        serve(open.fd(), std::move(taken.reset));
    }

    void serve(int fd, std::function<void()> reset) {
        ProxyConnection(fd, proxy_, std::move(reset)).run();
        if (gateway_.cache_) {
            gateway_.metrics_.mirrorCacheBytes(static_cast<double>(gateway_.cache_->bytes()));
        }
    }

    EgressGateway& gateway_;
    const std::shared_ptr<const Keyring> keyring_;
    WorkspaceEgress egress_;
    const ProxyFacts proxy_;
    Mutex mutex_;
    std::shared_ptr<agent::EgressHandle> handle_ HEARTH_GUARDED_BY(mutex_);
    std::set<int> open_ HEARTH_GUARDED_BY(mutex_);
    std::uint32_t places_ HEARTH_GUARDED_BY(mutex_) = 0;
    bool ended_ HEARTH_GUARDED_BY(mutex_) = false;
};

EgressGateway::EgressGateway(EgressOptions options, metrics::Log& log, metrics::Metrics& metrics,
                             const Clock& clock, const metrics::Tracer& tracer)
    : options_(std::move(options)),
      log_(log),
      metrics_(metrics),
      clock_(clock),
      tracer_(tracer),
      keyrings_(options_.secrets_directory),
      claim_seal_(options_.seal_key),
      dialer_(options_.deny),
      threads_(kMostConnections, kMostConnectionsOfTenant, log),
      fetches_(kMostFetches, kMostFetchesOfTenant, log) {
    if (!options_.mirrors.any()) return;
    fetcher_.emplace(options_.deny, trustedOf(options_.mirrors), indexesOf(options_.mirrors),
                     clock_);
    cache_.emplace(options_.cache_directory, options_.cache_bytes,
                   [this](const std::string& tenant, std::function<void()> task) {
                       return fetches_.start(tenant, std::move(task));
                   });
    mirror_.emplace(options_.mirrors, gatewayUrl(), *fetcher_, *cache_, clock_);
}

EgressGateway::~EgressGateway() {
    std::map<std::string, std::shared_ptr<Session>> left;
    {
        const MutexLock lock(mutex_);
        left.swap(sessions_);
    }
    if (fetcher_) fetcher_->stop();
    for (const auto& [id, session] : left) session->end();
    // Fetches end first, because connections wait for them.
    fetches_.stop();
    threads_.stop();
}

std::map<std::string, std::string> EgressGateway::environment(NetworkMode mode) const {
    if (mode == NetworkMode::None) return {};
    std::map<std::string, std::string> env;
    if (mirror_) env = mirror_->environment();
    // Set also in pools that allow only packages: a refusal with a reason is better than an unknown
    // name.
    for (const char* name : {"HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"}) {
        env[name] = gatewayUrl();
    }
    for (const char* name : {"NO_PROXY", "no_proxy"}) env[name] = kOwnNames;
    return env;
}

std::vector<IndexKind> EgressGateway::mirrored() const {
    std::vector<IndexKind> out;
    if (!options_.mirrors.pypi.empty()) out.push_back(IndexKind::Pypi);
    if (!options_.mirrors.npm.empty()) out.push_back(IndexKind::Npm);
    return out;
}

std::map<IndexKind, std::string> EgressGateway::failingMirrors() const {
    std::map<IndexKind, std::string> out;
    if (!fetcher_) return out;
    const auto ask = [&](IndexKind kind, const std::string& url) {
        std::string why = url.empty() ? std::string() : fetcher_->failureOf(url);
        if (!why.empty()) out.emplace(kind, std::move(why));
    };
    ask(IndexKind::Pypi, options_.mirrors.pypi);
    ask(IndexKind::Npm, options_.mirrors.npm);
    return out;
}

void EgressGateway::open(const std::string& sandbox, const WorkspaceEgress::Facts& facts,
                         const NetworkPolicy& policy, std::shared_ptr<const Keyring> keyring,
                         agent::AgentClient& agent) {
    if (policy.mode == NetworkMode::None) return;
    const auto session = std::make_shared<Session>(*this, facts, policy, std::move(keyring));
    {
        const MutexLock lock(mutex_);
        sessions_[sandbox] = session;
    }
    try {
        session->begin(agent.broker(kEgressPort, session));
    } catch (const agent::AgentLost&) {
        close(sandbox);
        throw;
    }
}

void EgressGateway::resume(const std::string& sandbox, const WorkspaceEgress::Facts& facts,
                           const NetworkPolicy& policy, std::shared_ptr<const Keyring> keyring,
                           agent::AgentClient& agent) {
    std::shared_ptr<Session> session;
    {
        const MutexLock lock(mutex_);
        const auto found = sessions_.find(sandbox);
        if (found != sessions_.end()) session = found->second;
    }
    if (!session) return open(sandbox, facts, policy, std::move(keyring), agent);
    session->begin(agent.broker(kEgressPort, session));
}

void EgressGateway::close(const std::string& sandbox) {
    std::shared_ptr<Session> session;
    {
        const MutexLock lock(mutex_);
        const auto found = sessions_.find(sandbox);
        if (found == sessions_.end()) return;
        session = std::move(found->second);
        sessions_.erase(found);
    }
    session->end();
}

EgressReport EgressGateway::report(const std::string& sandbox) const {
    std::shared_ptr<Session> session;
    {
        const MutexLock lock(mutex_);
        const auto found = sessions_.find(sandbox);
        if (found == sessions_.end()) return {};
        session = found->second;
    }
    return session->report();
}

}  // namespace hearth::egress
