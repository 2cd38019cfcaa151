#include "pool/agent/program/interpreters/ParkedShells.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <csignal>
#include <utility>

#include "pool/agent/program/interpreters/ShellScript.h"

namespace hearth::agent {

namespace {

constexpr std::int64_t kMs = 1'000'000;
constexpr std::int64_t kReadyWithinNs = 5'000 * kMs;
/// Starting a shell takes processor time from the work: it waits for the answer to go out, but a
/// long run does not delay the next shell.
constexpr std::int64_t kAfterAnswerNs = kMs / 5;
constexpr std::int64_t kAnywayNs = 50 * kMs;
constexpr std::int64_t kDiedNs = 100 * kMs;
constexpr std::int64_t kBurstNs = 10'000 * kMs;
constexpr int kMaxFailures = 5;

/// Makes the pipe of a script. The shell opens its end by its path, as the tenant, so the tenant
/// must own it. With O_DIRECT a read takes one write: pipe(2).
bool makeScriptPipe(const Settings& settings, Fd& theirs, HandedScript& ours) {
    const TenantFiles as_tenant(settings);
    int fds[2];
    if (pipe2(fds, O_CLOEXEC | O_DIRECT | O_NONBLOCK) != 0) return false;
    theirs = Fd(fds[0]);
    Fd write_end(fds[1]);
    // Not a copy of `theirs`: the tenant can make that one block.
    const std::string path = "/proc/self/fd/" + std::to_string(theirs.get());
    Fd unread(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
    if (!unread) return false;
    ours = HandedScript(std::move(write_end), std::move(unread));
    return true;
}

}  // namespace

bool HandedScript::send(std::string_view text) {
    ssize_t n = 0;
    do {
        n = write(write_end_.get(), text.data(), text.size());
    } while (n < 0 && errno == EINTR);
    return n == static_cast<ssize_t>(text.size());
}

bool HandedScript::finish(std::string_view text) {
    // The last byte is read separately: a shell that is killed or stopped while it waits in read()
    // loses the bytes that came meanwhile, and never runs them.
    const std::size_t most = text.size() - 1;
    const bool whole = send(text.substr(0, most)) && send(text.substr(most));
    write_end_.reset();
    return whole;
}

bool HandedScript::takeBack() {
    char sink[4'096];
    bool some = false;
    // Reads at most a pipe's content: other processes of the tenant's user could keep it full.
    for (int i = 0; i < 64 && unread_; ++i) {
        const ssize_t n = read(unread_.get(), sink, sizeof(sink));
        if (n <= 0) break;
        some = true;
    }
    drop();
    return some;
}

/// A shell that is parked or starting; watches for its report that it is ready.
class ParkedShells::Waiting final : public Source {
public:
    Waiting(ParkedShells& shells, std::int64_t now_ns)
        : shell(std::make_unique<ParkedShell>()),
          late_at_ns(now_ns + kReadyWithinNs),
          shells_(shells),
          loop_(shells.loop_) {}
    ~Waiting() override { unwatch(); }

    void watch() { watched_ = loop_.add(shell->pipes.output.get(), EPOLLIN, *this); }
    void unwatch() {
        if (std::exchange(watched_, false)) loop_.remove(shell->pipes.output.get());
    }
    void ready(std::uint32_t) override { shells_.spoke(*this); }
    bool isReady() const noexcept { return ready_; }
    void setReady() {
        unwatch();
        ready_ = true;
    }

    std::unique_ptr<ParkedShell> shell;
    std::string said;
    bool proving = false;
    const std::int64_t late_at_ns;  ///< it should be ready by then

private:
    ParkedShells& shells_;
    EventLoop& loop_;
    bool watched_ = false;
    bool ready_ = false;
};

ParkedShells::ParkedShells(EventLoop& loop, const Settings& settings,
                           const Environment& environment, Owner owner)
    : loop_(loop), settings_(settings), environment_(environment), owner_(std::move(owner)) {}

ParkedShells::~ParkedShells() {
    killAll();
}

void ParkedShells::killAll() {
    for (const auto& waiting : parked_) kill(waiting->shell->pid, SIGKILL);
}

void ParkedShells::start() {
    if (asked_) return;
    asked_ = true;
    if (!shell::isKnown()) {
        complaints_ = "shells are kept ready only where /bin/sh is dash";
        return;
    }
    refill_at_ns_ = nowNs();
}

bool ParkedShells::hasReady() const noexcept {
    return std::any_of(parked_.begin(), parked_.end(), [](const auto& w) { return w->isReady(); });
}

bool ParkedShells::hopeless() const noexcept {
    return !complaints_.empty() || (!served_ && failures_ > kMaxFailures);
}

std::size_t ParkedShells::wanted(std::int64_t now_ns) const noexcept {
    if (!asked_ || hopeless()) return 0;
    if (!proven_) return 1;
    return short_ns_ > 0 && now_ns - short_ns_ < kBurstNs ? kParkedInBursts : kParked;
}

std::unique_ptr<ParkedShell> ParkedShells::take(const std::vector<std::string>& env,
                                                std::string_view command, std::string& script) {
    if (!asked_ || hopeless()) return nullptr;
    const std::int64_t now = nowNs();
    if (!hasReady()) short_ns_ = now;
    const auto fits = [&](const auto& waiting) {
        return waiting->isReady() && shell::script(waiting->shell->env, env, command, script);
    };
    const auto found = std::find_if(parked_.begin(), parked_.end(), fits);
    if (found == parked_.end()) {
        retireStale();
        return nullptr;
    }
    if (refill_at_ns_ == 0) refill_at_ns_ = now + kAnywayNs;
    std::unique_ptr<ParkedShell> shell = std::move((*found)->shell);
    loop_.bury(std::move(*found));
    parked_.erase(found);
    return shell;
}

void ParkedShells::retireStale() {
    const std::vector<std::string> env = startEnv();
    for (std::size_t i = 0; i < parked_.size();) {
        if (parked_[i]->shell->env == env) {
            ++i;
            continue;
        }
        kill(parked_[i]->shell->pid, SIGKILL);
        remove(*parked_[i]);
    }
    const std::int64_t now = nowNs();
    if (refill_at_ns_ == 0 && parked_.size() < wanted(now)) refill_at_ns_ = now + kAnywayNs;
}

std::vector<std::string> ParkedShells::startEnv() const {
    std::vector<std::string> env = environment_.plain();
    // The shell forgets both at its start; if they are wanted, they are then always exported.
    env.erase(std::remove_if(env.begin(), env.end(),
                             [](const std::string& entry) {
                                 return entry.rfind("ENV=", 0) == 0 || entry.rfind("_=", 0) == 0;
                             }),
              env.end());
    return env;
}

void ParkedShells::answered() {
    if (refill_at_ns_ > 0) refill_at_ns_ = std::min(refill_at_ns_, nowNs() + kAfterAnswerNs);
}

bool ParkedShells::park() {
    auto waiting = std::make_unique<Waiting>(*this, nowNs());
    ParkedShell& shell = *waiting->shell;
    Fd script;
    if (!makeScriptPipe(settings_, script, shell.script)) return false;
    shell.env = startEnv();
    SpawnRequest request;
    request.argv = shell::parkedCommand();
    request.env = shell.env;
    request.env.push_back(shell::parkedEnv());
    request.cwd = settings_.root;
    request.channel = script.get();
    request.label = owner_.label();
    Spawned spawned;
    if (spawn(settings_, request, spawned) != nullptr) return false;
    shell.pid = spawned.pid;
    shell.label = request.label;
    shell.pipes = std::move(spawned);
    shell.script.send(shell::opening());  // a shell that does not get it is late
    waiting->watch();
    parked_.push_back(std::move(waiting));
    return true;
}

void ParkedShells::spoke(Waiting& waiting) {
    char text[64];
    const ssize_t n = read(waiting.shell->pipes.output.get(), text, sizeof(text));
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (n > 0) waiting.said.append(text, static_cast<std::size_t>(n));
    const std::string_view expected = waiting.proving ? shell::proven() : shell::ready();
    if (waiting.said == expected) {
        if (waiting.proving) {
            proven_ = true;
            remove(waiting);
            refill_at_ns_ = nowNs();
        } else if (proven_) {
            waiting.setReady();
            failures_ = 0;
            served_ = true;
            owner_.changed();
        } else if (!startProof(waiting)) {
            drop(waiting);
        }
    } else if (n <= 0 || expected.substr(0, waiting.said.size()) != waiting.said) {
        if (waiting.proving && n > 0) complaints_ = "this dash does not run commands as sh -c does";
        drop(waiting);
    }
}

bool ParkedShells::startProof(Waiting& waiting) {
    std::string script;
    waiting.said.clear();
    waiting.proving = true;
    return shell::script(waiting.shell->env, waiting.shell->env, shell::proof(), script) &&
           waiting.shell->script.finish(script);
}

void ParkedShells::drop(Waiting& waiting) {
    kill(waiting.shell->pid, SIGKILL);
    remove(waiting);
    failed(nowNs());
}

void ParkedShells::remove(Waiting& waiting) {
    const auto found = std::find_if(parked_.begin(), parked_.end(),
                                    [&](const auto& w) { return w.get() == &waiting; });
    (*found)->unwatch();
    loop_.bury(std::move(*found));
    parked_.erase(found);
}

void ParkedShells::failed(std::int64_t now_ns) {
    ++failures_;
    refill_at_ns_ = hopeless() ? 0 : now_ns + (kDiedNs << std::min(failures_, kMaxFailures));
    owner_.changed();
}

bool ParkedShells::reaped(pid_t pid) {
    const auto found = std::find_if(parked_.begin(), parked_.end(),
                                    [pid](const auto& w) { return w->shell->pid == pid; });
    if (found == parked_.end()) return false;
    const bool was_ready = (*found)->isReady();
    remove(**found);
    if (was_ready) {
        if (refill_at_ns_ == 0) refill_at_ns_ = nowNs() + kDiedNs;
    } else {
        failed(nowNs());
    }
    return true;
}

std::int64_t ParkedShells::nextTickNs() const noexcept {
    std::int64_t next = refill_at_ns_ > 0 ? refill_at_ns_ : INT64_MAX;
    for (const auto& waiting : parked_) {
        if (!waiting->isReady()) next = std::min(next, waiting->late_at_ns);
    }
    return next;
}

void ParkedShells::tick(std::int64_t now_ns) {
    for (std::size_t i = 0; i < parked_.size();) {
        Waiting& waiting = *parked_[i];
        if (waiting.isReady() || now_ns < waiting.late_at_ns) {
            ++i;
            continue;
        }
        drop(waiting);
    }
    if (refill_at_ns_ == 0 || now_ns < refill_at_ns_) return;
    refill_at_ns_ = 0;
    if (parked_.size() >= wanted(now_ns)) return;
    // One per turn: a fork holds the loop up, and work may have come.
    if (!park()) {
        failed(now_ns);
    } else if (parked_.size() < wanted(now_ns)) {
        refill_at_ns_ = now_ns + kAfterAnswerNs;
    }
}

}  // namespace hearth::agent
