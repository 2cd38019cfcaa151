#include "pool/agent/program/Agent.h"

#include <poll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <csignal>
#include <map>
#include <string_view>
#include <utility>

#include "base/Version.h"
#include "pool/agent/program/TcpListener.h"
#include "pool/agent/program/core/GroupUse.h"
#include "pool/agent/program/egress/TrustFile.h"

namespace hearth::agent {

namespace {

constexpr std::int64_t kMs = 1'000'000;
constexpr std::int64_t kHelloWithinNs = 10'000 * kMs;
constexpr std::size_t kMaxNew = 16;
/// The most peers over TCP that have not proved themselves yet.
constexpr std::size_t kMaxUnproven = 64;
/// The connections accepted in one turn, before a flood by a tenant gives way to the others.
constexpr int kAcceptedAtOnce = 32;
constexpr std::size_t kMaxText = 4'096;

std::uint64_t epochOf(const JsonValue& body) {
    return static_cast<std::uint64_t>(std::max<std::int64_t>(body["epoch"].integer(), 0));
}

/// Returns the text of a value that goes back to the server later; it must fit into a hello.
std::string keptJson(const JsonValue& value) {
    return value.isObject() ? value.dump() : std::string("{}");
}

}  // namespace

/// Calls a member when one of the agent's descriptors is readable.
class Agent::Watch final : public Source {
public:
    Watch(Agent& agent, void (Agent::*call)()) : agent_(agent), call_(call) {}
    void ready(std::uint32_t) override { (agent_.*call_)(); }

private:
    Agent& agent_;
    void (Agent::*call_)();
};

struct Agent::Operation {
    std::string_view name;
    void (Agent::*call)(Connection&, std::uint32_t, const JsonValue&);
    bool on_data;     ///< allowed on data connections
    bool when_bound;  ///< refused before bind
};

Agent::Agent(const Settings& settings, std::optional<secure::AgentIdentity> identity, Fd listener,
             Fd signals)
    : settings_(settings),
      identity_(std::move(identity)),
      executions_(loop_, settings, deadlines_),
      egress_port_(loop_),
      oom_watch_(settings),
      listener_(std::move(listener)),
      signals_(std::move(signals)),
      accepting_(std::make_unique<Watch>(*this, &Agent::accept)),
      signalling_(std::make_unique<Watch>(*this, &Agent::signalled)),
      alone_since_ns_(nowNs()) {
    loop_.add(listener_.get(), EPOLLIN, *accepting_);
    loop_.add(signals_.get(), EPOLLIN, *signalling_);
    deadlines_.touch(alone_since_ns_);
}

Agent::~Agent() = default;

int Agent::run() {
    while (!ending_) {
        loop_.turn(reap_again_ ? 0 : timeoutNs(nowNs()));
        if (reap_again_) reap();
        tick(nowNs());
    }
    killEverything();
    // Over TCP this tells the server that this is the end, and not a cut.
    for (std::size_t left = connections_.size(); settings_.server && left > 0; --left) {
        connections_.front()->close();
    }
    return 0;
}

/// Returns when a silent connection is closed; INT64_MAX for one that has said hello.
std::int64_t Agent::silentUntilNs(const Connection& c) const {
    if (c.kind != Connection::Kind::New) return INT64_MAX;
    return c.opened_ns + (c.proven() ? kHelloWithinNs : settings_.proof_ms * kMs);
}

std::int64_t Agent::timeoutNs(std::int64_t now_ns) const {
    std::int64_t next =
        std::min({executions_.nextTickNs(), oom_watch_.nextTickNs(lock_.holder().has_value()),
                  egress_port_.nextTickNs()});
    if (lock_.holder()) {
        if (const std::int64_t ends = deadlines_.endsAtNs(); ends > 0) next = std::min(next, ends);
    } else if (alone_since_ns_ > 0) {
        next = std::min(next, alone_since_ns_ + settings_.orphan_ms * kMs);
    }
    for (const auto& c : connections_) {
        next = std::min(next, silentUntilNs(*c));
        next = std::min(next, c->heldUntilNs());
    }
    if (next == INT64_MAX) return -1;
    return std::clamp<std::int64_t>(next - now_ns, 0, 3'600'000 * kMs);
}

void Agent::tick(std::int64_t now_ns) {
    executions_.tick(now_ns);
    oom_watch_.tick(now_ns, lock_.holder().has_value());
    egress_port_.tick(now_ns);
    std::vector<Connection*> silent;
    std::vector<Connection*> held;
    for (const auto& c : connections_) {
        if (now_ns >= c->heldUntilNs()) held.push_back(c.get());
        if (now_ns >= silentUntilNs(*c)) silent.push_back(c.get());
    }
    for (Connection* c : held) c->flush();
    for (Connection* c : silent) c->close();
    if (lock_.holder()) {
        deadlines_.awake(now_ns);
        const std::int64_t ends = deadlines_.endsAtNs();
        if (ends > 0 && now_ns >= ends) end();
    } else if (alone_since_ns_ > 0 && now_ns >= alone_since_ns_ + settings_.orphan_ms * kMs) {
        end();
    }
}

void Agent::accept() {
    for (int i = 0; i < kAcceptedAtOnce; ++i) {
        sockaddr_storage peer{};
        socklen_t size = sizeof(peer);
        Fd socket(accept4(listener_.get(), reinterpret_cast<sockaddr*>(&peer), &size,
                          SOCK_CLOEXEC | SOCK_NONBLOCK));
        if (!socket) return;
        take(std::move(socket), peer);
    }
}

void Agent::take(Fd socket, const sockaddr_storage& peer) {
    std::unique_ptr<SecureLine> line;
    std::string origin;
    if (settings_.server) {
        makePlace();
        tuneTcp(socket.get());
        line = std::make_unique<SecureLine>(*settings_.server, *identity_, settings_.pod);
        // A tenant can use all of the sandbox's own addresses, so they count as one origin.
        const std::string address = addressText(peer);
        if (address == settings_.outside || !isOwnAddress(peer)) origin = address;
    } else if (count(Connection::Kind::New) >= kMaxNew) {
        return;
    }
    ConnectionOwner& self = *this;
    auto made = std::make_unique<Connection>(loop_, self, std::move(socket), std::move(line));
    if (!made->isOpen()) return;
    made->origin = std::move(origin);
    Connection& connection = *made;
    connections_.push_back(std::move(made));
    connection.flush();  // over TCP the agent speaks first
}

/// If peers that have proved nothing take all places, closes the oldest from the address that has
/// most. So a flood of the port competes with itself, and not with the server.
void Agent::makePlace() {
    struct Share {
        std::size_t count = 0;
        Connection* oldest = nullptr;
    };
    std::map<std::string_view, Share> shares;
    std::size_t all = 0;
    for (const auto& c : connections_) {
        if (c->proven()) continue;
        Share& share = shares[c->origin];
        if (share.count++ == 0) share.oldest = c.get();
        ++all;
    }
    if (all < kMaxUnproven) return;
    const auto most = std::max_element(
        shares.begin(), shares.end(),
        [](const auto& a, const auto& b) { return a.second.count < b.second.count; });
    most->second.oldest->close();
}

void Agent::closed(Connection& connection) {
    if (connection.kind == Connection::Kind::Control && count(Connection::Kind::Control) == 1) {
        alone_since_ns_ = nowNs();
    }
    for (const auto& worker : workers_) {
        if (worker->serves(connection)) worker->retire();
    }
    const auto found = std::find_if(connections_.begin(), connections_.end(),
                                    [&](const auto& c) { return c.get() == &connection; });
    if (found == connections_.end()) return;
    loop_.bury(std::move(*found));
    connections_.erase(found);
}

void Agent::ended(FileWorker& worker) {
    const auto found = std::find_if(workers_.begin(), workers_.end(),
                                    [&](const auto& w) { return w.get() == &worker; });
    loop_.bury(std::move(*found));
    workers_.erase(found);
}

std::size_t Agent::count(Connection::Kind kind) const {
    return static_cast<std::size_t>(
        std::count_if(connections_.begin(), connections_.end(),
                      [kind](const auto& c) { return c->kind == kind; }));
}

void Agent::signalled() {
    signalfd_siginfo info{};
    bool stop = false;
    // Bounded, as all loops over things that tenants can make: a fork bomb never ends this one.
    for (int i = 0; i < 4 && read(signals_.get(), &info, sizeof(info)) == sizeof(info); ++i) {
        // As PID 1, the agent stops only for a signal from outside, which carries no sender's pid.
        // A tenant that shares its uid (docker, kubernetes) may send signals, but they are ignored;
        // a queued signal carries whatever its sender wrote.
        const bool outside = info.ssi_code == SI_USER && info.ssi_pid == 0;
        if (info.ssi_signo != SIGCHLD && (!settings_.init || outside)) stop = true;
    }
    reap();
    if (stop) end();
}

void Agent::reap() {
    int status = 0;
    rusage usage{};
    pid_t pid = 0;
    reap_again_ = true;
    for (int i = 0; i < 64; ++i) {
        if ((pid = wait4(-1, &status, WNOHANG, &usage)) <= 0) {
            reap_again_ = false;
            return;
        }
        executions_.reaped(pid, status, usage);
    }
}

void Agent::end() {
    ending_ = true;
}

void Agent::killEverything() {
    // Answers that are on their way (drain's own) go first.
    for (const auto& c : connections_) {
        if (c->isOpen()) c->flush();
        if (!c->isOpen()) break;  // the list has changed
    }
    if (!settings_.init) return executions_.killAll();
    kill(-1, SIGKILL);
    // The namespace ends with this process in any case; waiting shows that the others are gone.
    constexpr int kStuckMs = 200;
    pollfd ends{signals_.get(), POLLIN, 0};
    for (pid_t pid = 1; pid > 0 || (pid == 0 && poll(&ends, 1, kStuckMs) > 0);) {
        signalfd_siginfo seen{};
        while (read(signals_.get(), &seen, sizeof(seen)) > 0) {
        }
        pid = wait4(-1, nullptr, WNOHANG, nullptr);
    }
}

void Agent::request(Connection& connection, std::uint32_t stream, const JsonValue& body) {
    static constexpr Operation kOperations[] = {
        {"bind", &Agent::bind, false, false},
        {"deadlines", &Agent::setDeadlines, false, true},
        {"touch", &Agent::touch, false, true},
        {"exec", &Agent::exec, false, false},
        {"attach", &Agent::attach, true, false},
        {"signal", &Agent::signal, false, false},
        {"resize", &Agent::resize, false, false},
        {"forget", &Agent::forget, false, false},
        {"usage", &Agent::usage, true, false},
        {"drain", &Agent::drain, false, false},
        {"prewarm", &Agent::prewarm, false, false},
        {"context", &Agent::context, false, true},
        {"contextEnd", &Agent::contextEnd, false, true},
        {"contextRestart", &Agent::contextRestart, false, true},
        {"interrupt", &Agent::interrupt, false, true},
        {"broker", &Agent::broker, false, true},
        {"carry", &Agent::carry, true, true},
    };
    const std::string_view op = body["op"].text();
    const bool greeted = connection.kind != Connection::Kind::New;
    if (greeted == (op == "hello")) {
        connection.fail(stream, "BAD_REQUEST", "a connection begins with one hello");
        connection.closeAfterFlush();
        return;
    }
    if (!greeted) return hello(connection, stream, body);
    if (ending_) return connection.fail(stream, "NOT_BOUND", "the sandbox is ending");
    const bool data = connection.kind == Connection::Kind::Data;
    for (const Operation& known : kOperations) {
        if (known.name != op) continue;
        if (data && !known.on_data)
            return connection.fail(stream, "BAD_REQUEST", "asked on a data connection");
        if (known.when_bound && !lock_.holder())
            return connection.fail(stream, "NOT_BOUND", "nothing is bound");
        return (this->*known.call)(connection, stream, body);
    }
    if (FileOperation::isFileOperation(op)) return file(connection, stream, op, body);
    connection.fail(stream, "UNSUPPORTED", "no such operation");
}

bool Agent::admit(Connection& connection, std::uint32_t stream, const JsonValue& body) {
    if (lock_.admit(epochOf(body))) return true;
    JsonValue details = JsonValue::object();
    details.set("highestEpoch", lock_.highestEpoch());
    connection.fail(stream, "STALE_EPOCH", "a newer server has been here", details);
    return false;
}

JsonValue Agent::holder() const {
    JsonValue v = JsonValue::object();
    const Binding& b = *lock_.holder();
    v.set("claimId", b.claim_id).set("attempt", b.attempt).set("workspaceId", b.workspace_id);
    return v;
}

JsonValue Agent::deadlines() const {
    JsonValue v = JsonValue::object();
    v.set("expiresAtNs", deadlines_.expiresAtNs());
    v.set("idleTimeoutMs", deadlines_.idleTimeoutMs()).set("idleAtNs", deadlines_.idleAtNs());
    return v;
}

void Agent::hello(Connection& connection, std::uint32_t stream, const JsonValue& body) {
    const std::string_view kind = body["kind"].text();
    const auto refuse = [&](const char* code, const char* message, const JsonValue& details) {
        connection.fail(stream, code, message, details);
        connection.closeAfterFlush();
    };
    if (body["protocol"].integer() != kProtocolVersion) {
        JsonValue details = JsonValue::object();
        details.set("protocol", kProtocolVersion);
        return refuse("UNSUPPORTED", "this agent speaks another version", details);
    }
    if ((kind == "data" || kind == "control") &&
        !connection.meantFor(kind == "data" ? Connection::Kind::Data : Connection::Kind::Control)) {
        return refuse("BAD_REQUEST", "the connection was opened for the other kind",
                      JsonValue::object());
    }
    if (kind == "data") {
        if (!lock_.holder()) return refuse("NOT_BOUND", "nothing is bound", JsonValue::object());
        if (lock_.holder()->claim_id != body["claimId"].text()) {
            return refuse("BOUND_ELSEWHERE", "another claim holds the sandbox",
                          JsonValue::object());
        }
        if (count(Connection::Kind::Data) >= kMaxData) {
            return refuse("TOO_MANY", "too many data connections", JsonValue::object());
        }
        connection.kind = Connection::Kind::Data;
    } else if (kind == "control") {
        if (!admit(connection, stream, body)) return connection.closeAfterFlush();
        std::vector<Connection*> older;
        for (const auto& c : connections_) {
            if (c->kind == Connection::Kind::Control) older.push_back(c.get());
        }
        connection.kind = Connection::Kind::Control;
        for (Connection* c : older) c->close();
        alone_since_ns_ = 0;
    } else {
        return refuse("BAD_REQUEST", "kind is control or data", JsonValue::object());
    }

    JsonValue reply = JsonValue::object();
    reply.set("protocol", kProtocolVersion).set("agent", kHearthVersion);
    reply.set("sandbox", settings_.sandbox).set("languages", executions_.languages().table());
    reply.set("nowNs", nowNs()).set("highestEpoch", lock_.highestEpoch());
    if (const auto& b = lock_.holder()) {
        JsonValue bound = JsonValue::object();
        JsonValue labels;
        JsonValue note;
        JsonValue::parse(b->labels, labels);
        JsonValue::parse(b->note, note);
        bound.set("claimId", b->claim_id).set("attempt", b->attempt).set("epoch", b->epoch);
        bound.set("tenant", b->tenant).set("workspaceId", b->workspace_id);
        bound.set("fingerprint", b->fingerprint).set("labels", std::move(labels));
        bound.set("note", std::move(note)).set("boundAtNs", b->bound_at_ns);
        reply.set("bound", std::move(bound));
    } else {
        reply.set("bound", JsonValue());
    }
    reply.set("deadlines", deadlines()).set("lastActivityNs", deadlines_.lastActivityNs());
    reply.set("running", executions_.running()).set("executions", executions_.list());
    reply.set("contexts", executions_.listContexts());
    connection.reply(stream, reply);
}

void Agent::bind(Connection& connection, std::uint32_t stream, const JsonValue& body) {
    Binding wanted;
    wanted.claim_id = body["claimId"].text();
    wanted.attempt = body["attempt"].integer();
    wanted.epoch = epochOf(body);
    wanted.tenant = body["tenant"].text();
    wanted.workspace_id = body["workspaceId"].text();
    wanted.fingerprint = body["fingerprint"].text();
    wanted.labels = keptJson(body["labels"]);
    wanted.note = keptJson(body["note"]);
    std::map<std::string, std::string> env;
    const bool sound =
        Environment::read(body["env"], env) && Environment::read(body["secrets"], env);
    if (body["protocol"].integer() != kProtocolVersion || wanted.claim_id.empty() || !sound ||
        wanted.claim_id.size() + wanted.tenant.size() + wanted.workspace_id.size() +
                wanted.fingerprint.size() >
            kMaxText ||
        wanted.labels.size() + wanted.note.size() > 16 * kMaxText) {
        return connection.fail(stream, "BAD_REQUEST",
                               "bind is incomplete, too large, or env is bad");
    }
    if (const std::string_view trust = body["trust"].text();
        !trust.empty() && !lock_.holder() && !makeTrusted(settings_, trust, env)) {
        return connection.fail(stream, "UNAVAILABLE",
                               "the certificates to trust cannot be written");
    }
    const std::int64_t now = nowNs();
    const BindOutcome outcome = lock_.bind(std::move(wanted), now);
    JsonValue details = JsonValue::object();
    switch (outcome) {
        case BindOutcome::StaleEpoch:
            details.set("highestEpoch", lock_.highestEpoch());
            return connection.fail(stream, "STALE_EPOCH", "a newer server has been here", details);
        case BindOutcome::Held:
            details.set("holder", holder());
            return connection.fail(stream, "BOUND_ELSEWHERE", "another claim holds the sandbox",
                                   details);
        case BindOutcome::FingerprintMismatch:
            details.set("holder", holder());
            return connection.fail(stream, "FINGERPRINT_MISMATCH",
                                   "the claim was bound with another body", details);
        case BindOutcome::Bound:
            executions_.environment().bind(std::move(env));
            executions_.environment().narrowTo(body["cpus"].integer());
            deadlines_.setExpiresAt(body["deadlines"]["expiresAtNs"].integer());
            deadlines_.setIdleTimeout(body["deadlines"]["idleTimeoutMs"].integer());
            if (body["deadlines"]["idleEnds"].kind() == JsonValue::Kind::Bool) {
                deadlines_.setIdleEnds(body["deadlines"]["idleEnds"].boolean());
            }
            deadlines_.touch(now);
            break;
        case BindOutcome::Repeated:
            break;
    }
    const Binding& b = *lock_.holder();
    JsonValue reply = JsonValue::object();
    reply.set("repeated", outcome == BindOutcome::Repeated).set("claimId", b.claim_id);
    reply.set("attempt", b.attempt).set("workspaceId", b.workspace_id);
    reply.set("boundAtNs", b.bound_at_ns);
    connection.reply(stream, reply);
}

void Agent::setDeadlines(Connection& connection, std::uint32_t stream, const JsonValue& body) {
    if (!admit(connection, stream, body)) return;
    if (body["expiresAtNs"].kind() == JsonValue::Kind::Int) {
        deadlines_.setExpiresAt(body["expiresAtNs"].integer());
    }
    if (body["idleTimeoutMs"].kind() == JsonValue::Kind::Int) {
        deadlines_.setIdleTimeout(body["idleTimeoutMs"].integer());
    }
    connection.reply(stream, deadlines());
}

void Agent::touch(Connection& connection, std::uint32_t stream, const JsonValue&) {
    deadlines_.touch(nowNs());
    JsonValue reply = JsonValue::object();
    reply.set("lastActivityNs", deadlines_.lastActivityNs());
    reply.set("idleAtNs", deadlines_.idleAtNs());
    connection.reply(stream, reply);
}

void Agent::usage(Connection& connection, std::uint32_t stream, const JsonValue&) {
    struct statvfs fs {};
    statvfs(settings_.root.c_str(), &fs);
    const std::uint64_t total = fs.f_blocks * fs.f_frsize;
    JsonValue reply = JsonValue::object();
    reply.set("diskTotal", total).set("diskUsed", total - fs.f_bfree * fs.f_frsize);
    reply.set("processes", countTenantProcesses(settings_));
    JsonValue group = groupUse(settings_.group);
    if (group.isObject()) reply.set("group", std::move(group));
    connection.reply(stream, reply);
}

void Agent::drain(Connection& connection, std::uint32_t stream, const JsonValue& body) {
    if (!admit(connection, stream, body)) return;
    connection.reply(stream, JsonValue::object());
    end();
}

void Agent::exec(Connection& connection, std::uint32_t stream, const JsonValue& body) {
    if (!lock_.holder() && !body["prewarm"].boolean()) {
        return connection.fail(stream, "NOT_BOUND", "nothing is bound");
    }
    if (lock_.holder() && body["prewarm"].boolean()) {
        return connection.fail(stream, "BAD_REQUEST", "prewarm is over: the sandbox is bound");
    }
    executions_.exec(connection, stream, body);
}

void Agent::attach(Connection& connection, std::uint32_t stream, const JsonValue& body) {
    executions_.attach(connection, stream, body);
}
void Agent::signal(Connection& connection, std::uint32_t stream, const JsonValue& body) {
    executions_.signal(connection, stream, body);
}
void Agent::resize(Connection& connection, std::uint32_t stream, const JsonValue& body) {
    executions_.resize(connection, stream, body);
}
void Agent::forget(Connection& connection, std::uint32_t stream, const JsonValue& body) {
    executions_.forget(connection, stream, body);
}

void Agent::context(Connection& connection, std::uint32_t stream, const JsonValue& body) {
    executions_.context(connection, stream, body);
}
void Agent::contextEnd(Connection& connection, std::uint32_t stream, const JsonValue& body) {
    executions_.contextEnd(connection, stream, body);
}
void Agent::contextRestart(Connection& connection, std::uint32_t stream, const JsonValue& body) {
    executions_.contextRestart(connection, stream, body);
}
void Agent::interrupt(Connection& connection, std::uint32_t stream, const JsonValue& body) {
    executions_.interrupt(connection, stream, body);
}

void Agent::prewarm(Connection& connection, std::uint32_t stream, const JsonValue& body) {
    if (lock_.holder()) {
        return connection.fail(stream, "BAD_REQUEST", "prewarm is over: the sandbox is bound");
    }
    executions_.zygotes().prewarm(connection, stream, body);
}

void Agent::broker(Connection& connection, std::uint32_t stream, const JsonValue& body) {
    egress_port_.open(connection, stream, body);
}
void Agent::carry(Connection& connection, std::uint32_t stream, const JsonValue& body) {
    egress_port_.carry(connection, stream, body);
}

void Agent::file(Connection& connection, std::uint32_t stream, std::string_view op,
                 const JsonValue& body) {
    if (!lock_.holder()) return connection.fail(stream, "NOT_BOUND", "nothing is bound");
    auto worker = std::find_if(workers_.begin(), workers_.end(),
                               [&](const auto& w) { return w->serves(connection); });
    if (worker == workers_.end()) {
        if (workers_.size() >= kMaxWorkers) {
            return connection.fail(stream, "TOO_MANY", "too many file operations are stuck");
        }
        FileWorker::Owner& self = *this;
        auto started = std::make_unique<FileWorker>(loop_, settings_, self, connection);
        if (!started->start()) return connection.fail(stream, "TOO_MANY", "no thread can be made");
        worker = workers_.insert(workers_.end(), std::move(started));
    }
    (*worker)->request(stream, op, body);
}

}  // namespace hearth::agent
