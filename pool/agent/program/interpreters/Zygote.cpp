#include "pool/agent/program/interpreters/Zygote.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <csignal>
#include <cstdio>

#include "pool/agent/program/core/Pipe.h"
#include "pool/agent/program/process/Processes.h"

namespace hearth::agent {

namespace {

constexpr std::int64_t kMs = 1'000'000;
constexpr std::int64_t kStartWithinNs = 120'000 * kMs;  ///< imports may take long
constexpr std::int64_t kForkWithinNs = 5'000 * kMs;
constexpr std::int64_t kFirstBackoffNs = 100 * kMs;
/// Forking takes processor time from the work: it waits for the answer to go out, but a long run
/// does not delay the next fork.
constexpr std::int64_t kAfterAnswerNs = 1 * kMs;
constexpr std::int64_t kAnywayNs = 50 * kMs;
/// A fork takes two or three; a zygote that answers none for this long is stopped or starved.
constexpr std::int64_t kSilentNs = 100 * kMs;
constexpr std::size_t kMaxAsked = 32;
constexpr std::int64_t kBurstNs = 10'000 * kMs;
constexpr std::size_t kMaxComplaints = 2'000;

/// Interpreters run files in their user's home when they start, and the tenant owns these: the
/// zygote gets a home that does not exist, and the true one in HEARTH_HOME.
std::vector<std::string> awayFromHome(std::vector<std::string> env) {
    constexpr std::string_view kHome = "HOME=";
    for (std::string& entry : env) {
        if (entry.compare(0, kHome.size(), kHome) != 0) continue;
        std::string home = "HEARTH_" + entry;
        entry = "HOME=/nonexistent";
        env.push_back(std::move(home));
        break;
    }
    return env;
}

}  // namespace

Zygote::Zygote(EventLoop& loop, const Settings& settings, Owner owner,
               std::vector<std::string> argv, std::vector<std::string> env, std::string file)
    : loop_(loop),
      settings_(settings),
      owner_(std::move(owner)),
      argv_(std::move(argv)),
      env_(std::move(env)),
      file_(std::move(file)) {}

void Zygote::killAll() {
    if (pid_ > 0) kill(pid_, SIGKILL);
    for (const auto& parked : parked_) {
        if (parked->pid > 0) kill(parked->pid, SIGKILL);
    }
}

Zygote::~Zygote() {
    killAll();
    for (auto& parked : parked_) bury(parked->channel);
    bury(channel_);
}

void Zygote::bury(std::unique_ptr<DriverChannel>& channel) {
    if (!channel) return;
    channel->close();
    loop_.bury(std::move(channel));
}

void Zygote::start() {
    if (pid_ > 0 || start_at_ns_ > 0 || hopeless()) return;
    Fd ours;
    Fd theirs;
    if (!DriverChannel::open(ours, theirs)) return;
    SpawnRequest request;
    request.argv = argv_;
    request.argv.insert(request.argv.end(), imports_.begin(), imports_.end());
    request.env = awayFromHome(env_);
    request.cwd = "/";
    request.with_stdin = true;  // pipes for all three, which the children's streams replace
    request.channel = theirs.get();
    request.zygote = true;
    const std::int64_t now = nowNs();
    if (spawn(settings_, request, process_) != nullptr) return end(now);
    pid_ = process_.pid;
    ready_ = false;
    complaints_.clear();
    late_at_ns_ = now + kStartWithinNs;
    DriverListener& self = *this;
    channel_ = std::make_unique<DriverChannel>(loop_, self, std::move(ours));
}

void Zygote::end(std::int64_t now_ns) {
    if (pid_ > 0) kill(pid_, SIGKILL);  // reaped() or the loop's next turn removes it
    pid_ = -1;
    ready_ = false;
    late_at_ns_ = 0;
    asked_.clear();
    process_ = Spawned();
    bury(channel_);
    // Children that were requested do not come any more; the others now have only the agent as
    // their parent.
    for (auto it = parked_.begin(); it != parked_.end();) {
        if ((*it)->pid > 0) {
            ++it;
            continue;
        }
        bury((*it)->channel);
        it = parked_.erase(it);
    }
    ++failures_;
    if (!hopeless()) start_at_ns_ = now_ns + (kFirstBackoffNs << failures_);
    owner_.gone();
    owner_.changed();
}

bool Zygote::hasReady() const noexcept {
    return std::any_of(parked_.begin(), parked_.end(), [](const auto& p) { return p->waits(); });
}

std::unique_ptr<Parked> Zygote::take() {
    const auto found =
        std::find_if(parked_.begin(), parked_.end(), [](const auto& p) { return p->waits(); });
    return found == parked_.end() ? nullptr : take(found);
}

std::unique_ptr<Parked> Zygote::takeComing() {
    const std::int64_t now = nowNs();
    if (!ready_ || (!asked_.empty() && now - asked_ns_ > kSilentNs)) return nullptr;
    short_ns_ = now;
    if (parked_.empty() && (asked_.size() >= kMaxAsked || !fork(now))) return nullptr;
    return take(parked_.begin());  // the oldest comes first
}

std::unique_ptr<Parked> Zygote::take(const Queue::iterator& found) {
    std::unique_ptr<Parked> parked = std::move(*found);
    parked_.erase(found);
    refill_at_ns_ = nowNs() + kAnywayNs;
    settle();
    return parked;
}

void Zygote::refillSoon(std::int64_t now_ns) {
    if (refill_at_ns_ > 0) refill_at_ns_ = now_ns + kAfterAnswerNs;
}

bool Zygote::fork(std::int64_t now_ns) {
    Fd ours;
    Fd channel;
    if (!DriverChannel::open(ours, channel)) return false;
    auto parked = std::make_unique<Parked>();
    Fd in;
    Fd out;
    Fd errors;
    if (!makePipe(settings_, in, parked->pipes.input) ||
        !makePipe(settings_, parked->pipes.output, out) ||
        !makePipe(settings_, parked->pipes.errors, errors)) {
        return false;
    }
    setNonBlocking(parked->pipes.input);
    setNonBlocking(parked->pipes.output);
    setNonBlocking(parked->pipes.errors);
    parked->label = owner_.label();
    char line[32];
    const int size = std::snprintf(line, sizeof(line), "fork %u\n", parked->label);
    const int fds[] = {channel.get(), in.get(), out.get(), errors.get()};
    if (!channel_->writeWith({line, static_cast<std::size_t>(size)}, fds, 4)) return false;
    DriverListener& self = *this;
    parked->channel = std::make_unique<DriverChannel>(loop_, self, std::move(ours));
    parked->channel->hearOne();
    if (asked_.empty()) asked_ns_ = now_ns;
    asked_.push_back(parked->label);
    parked_.push_back(std::move(parked));
    late_at_ns_ = now_ns + kForkWithinNs;
    return true;
}

void Zygote::driverSaid(DriverChannel& channel, std::string_view kind, std::string_view payload) {
    if (&channel != channel_.get()) return childSaid(channel, kind);
    if (kind == "ready") {
        ready_ = true;
        late_at_ns_ = 0;
        refill_at_ns_ = nowNs();
    } else if (kind == "child") {
        child(payload);
    } else if (kind == "dead") {
        dead(payload);
    } else if (kind == "failed" && complaints_.size() < kMaxComplaints) {
        complaints_.append(complaints_.empty() ? "" : "; ").append(payload);
    }
}

void Zygote::child(std::string_view payload) {
    int pid = 0;
    const bool sound = std::sscanf(std::string(payload).c_str(), "%d", &pid) == 1 && pid >= 0;
    if (!sound || pid == 1 || asked_.empty()) return end(nowNs());
    const gid_t label = asked_.front();
    asked_.pop_front();
    asked_ns_ = nowNs();
    // The fork failed: the reserved channel closes, which tells its holder.
    if (pid == 0) return;
    const auto parked = std::find_if(parked_.begin(), parked_.end(),
                                     [&](const auto& p) { return p->label == label; });
    if (parked == parked_.end()) {
        owner_.forked(label, pid);
    } else {
        (*parked)->pid = pid;
        owner_.changed();
    }
    settle();
}

void Zygote::settle() {
    const bool all = std::all_of(parked_.begin(), parked_.end(),
                                 [](const auto& parked) { return parked->ready; });
    if (ready_ && all && asked_.empty()) late_at_ns_ = 0;
}

void Zygote::dead(std::string_view payload) {
    int pid = 0;
    int status = 0;
    long user = 0;
    long system = 0;
    long peak = 0;
    if (std::sscanf(std::string(payload).c_str(), "%d %d %ld %ld %ld", &pid, &status, &user,
                    &system, &peak) != 5) {
        return end(nowNs());
    }
    owner_.dead(pid, status, toldUsage(user, system, peak));
}

void Zygote::childSaid(DriverChannel& channel, std::string_view kind) {
    if (kind != "ready") return;
    for (const auto& parked : parked_) {
        if (parked->channel.get() != &channel || parked->ready) continue;
        parked->ready = true;
        parked->scratch = std::make_unique<Scratch>(settings_);
        parked->scratch->prepare(std::to_string(parked->label), file_);
    }
    failures_ = 0;
    settle();
    owner_.changed();
}

void Zygote::driverClosed(DriverChannel& channel) {
    if (&channel == channel_.get()) return end(nowNs());
    remove(channel);
    if (refill_at_ns_ == 0) refill_at_ns_ = nowNs() + kAnywayNs;
}

void Zygote::remove(const DriverChannel& channel) {
    const auto found = std::find_if(parked_.begin(), parked_.end(),
                                    [&](const auto& p) { return p->channel.get() == &channel; });
    if (found == parked_.end()) return;
    bury((*found)->channel);
    parked_.erase(found);
    settle();
}

bool Zygote::reaped(pid_t pid, std::int64_t now_ns) {
    if (pid != pid_) return false;
    pid_ = -1;
    end(now_ns);
    return true;
}

std::int64_t Zygote::nextTickNs() const noexcept {
    std::int64_t next = INT64_MAX;
    for (const std::int64_t at : {late_at_ns_, ready_ ? refill_at_ns_ : 0, start_at_ns_}) {
        if (at > 0) next = std::min(next, at);
    }
    return next;
}

void Zygote::tick(std::int64_t now_ns) {
    if (start_at_ns_ > 0 && now_ns >= start_at_ns_) {
        start_at_ns_ = 0;
        start();
    }
    if (late_at_ns_ > 0 && now_ns >= late_at_ns_) end(now_ns);
    if (!ready_ || refill_at_ns_ == 0 || now_ns < refill_at_ns_) return;
    refill_at_ns_ = 0;
    const bool burst = short_ns_ > 0 && now_ns - short_ns_ < kBurstNs;
    while (parked_.size() < (burst ? kParkedInBursts : kParked)) {
        if (!fork(now_ns)) {
            refill_at_ns_ = now_ns + kAnywayNs;  // no descriptor, or the zygote does not read
            break;
        }
    }
}

}  // namespace hearth::agent
