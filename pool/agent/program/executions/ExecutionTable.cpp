#include "pool/agent/program/executions/ExecutionTable.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <csignal>

#include "pool/agent/program/interpreters/DriverWork.h"

namespace hearth::agent {

namespace {

constexpr std::size_t kMaxDrains = 128;
constexpr std::size_t kMaxFollowers = 8;
constexpr std::int64_t kMaxOutput = 16LL << 20U;
constexpr std::int64_t kMinOutput = 2'048;
constexpr std::int64_t kMaxTimeoutMs = 1'000LL * 60 * 60 * 24 * 365;
constexpr gid_t kFirstLabel = 20'000;
constexpr std::uint32_t kLabels = 40'000;
constexpr std::size_t kMaxArguments = 4'096;
constexpr std::size_t kMaxNote = 65'536;

bool validId(std::string_view id) {
    if (id.empty() || id.size() > 64) return false;
    return std::all_of(id.begin(), id.end(), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               c == '_' || c == '-';
    });
}

bool hasNul(std::string_view text) {
    return text.find('\0') != std::string_view::npos;
}

unsigned short cells(const JsonValue& v, unsigned short otherwise) {
    return static_cast<unsigned short>(std::clamp<std::int64_t>(v.integer(otherwise), 1, 4'096));
}

}  // namespace

/// A pipe that nobody listens to any more.
class ExecutionTable::Drain final : public Source {
public:
    Drain(EventLoop& loop, Fd fd) : loop_(loop), fd_(std::move(fd)) {
        loop_.add(fd_.get(), EPOLLIN, *this);
    }
    ~Drain() override { stop(); }
    bool done() const noexcept { return !fd_; }
    void ready(std::uint32_t) override {
        static char sink[65'536];
        if (!fd_) return;
        const ssize_t n = read(fd_.get(), sink, sizeof(sink));
        if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) stop();
    }

private:
    void stop() {
        if (!fd_) return;
        loop_.remove(fd_.get());
        fd_.reset();
    }
    EventLoop& loop_;
    Fd fd_;
};

ExecutionTable::ExecutionTable(EventLoop& loop, const Settings& settings, Deadlines& deadlines)
    : loop_(loop),
      settings_(settings),
      deadlines_(deadlines),
      environment_(settings),
      languages_(settings.languages, environment_.image()["languages"]),
      shells_(loop, settings, environment_,
              {[this] { return nextLabel(); }, [this] { zygotes_.changed(); }}),
      zygotes_(
          loop, settings, environment_, languages_, shells_,
          {[this] { return nextLabel(); }, [this](gid_t label, pid_t pid) { forked(label, pid); },
           [this](pid_t pid, int status, const rusage& usage) {
               dead(pid, status, usage, Teller::Zygote);
           },
           [this] { zygoteGone(); }}) {
    if (!settings.init) labels_ = static_cast<std::uint32_t>(getpid()) * 64;
}

ExecutionTable::~ExecutionTable() = default;

gid_t ExecutionTable::nextLabel() {
    return kFirstLabel + labels_++ % kLabels;
}

bool ExecutionTable::readWork(Connection& connection, std::uint32_t stream, const JsonValue& body,
                              Execution::Request& request) {
    const auto refuse = [&](const char* why) {
        connection.fail(stream, "BAD_REQUEST", why);
        return false;
    };
    SpawnRequest& spawn = request.spawn;
    for (const JsonValue& word : body["argv"].items()) {
        if (!word.isString() || hasNul(word.text())) return refuse("argv holds no plain strings");
        spawn.argv.emplace_back(word.text());
    }
    if (body["command"].isString() && spawn.argv.empty()) {
        if (hasNul(body["command"].text())) return refuse("command holds a NUL");
        request.command = true;
        spawn.argv = {"/bin/sh", "-c", std::string(body["command"].text())};
    } else if (body["code"].isString() && spawn.argv.empty()) {
        request.language = body["language"].text();
        request.code = body["code"].text();
    } else if (spawn.argv.empty() || spawn.argv[0].empty() || spawn.argv.size() > kMaxArguments) {
        return refuse("one of argv, command, language with code is needed");
    }
    spawn.cwd = workingDirectory(settings_, body["cwd"].text());
    if (hasNul(spawn.cwd)) return refuse("cwd holds a NUL");
    spawn.with_stdin = body["stdin"].boolean();
    spawn.pty = body["pty"].isObject();
    spawn.cols = cells(body["pty"]["cols"], 80);
    spawn.rows = cells(body["pty"]["rows"], 24);
    request.timeout_ms = std::clamp<std::int64_t>(body["timeoutMs"].integer(), 0, kMaxTimeoutMs);
    request.output_limit = static_cast<std::size_t>(
        std::clamp(body["outputLimit"].integer(1 << 20), kMinOutput, kMaxOutput));
    request.background = body["background"].boolean();
    request.paced = body["paced"].boolean();
    if (body["note"].isObject()) request.note = body["note"].dump();
    if (request.note.size() > kMaxNote) return refuse("note is too large");
    if (!PrepareRequest::read(body["prepare"], request.prepare)) {
        return refuse("prepare holds no plain argv");
    }
    if (!environment_.with(body["env"], spawn.pty, spawn.env)) {
        return refuse("env holds a bad name or value");
    }
    return true;
}

void ExecutionTable::exec(Connection& connection, std::uint32_t stream, const JsonValue& body) {
    Execution::Request request;
    request.id = body["id"].text();
    request.fingerprint = body["fingerprint"].text();
    if (!validId(request.id))
        return connection.fail(stream, "BAD_REQUEST",
                               "id is missing or not of [A-Za-z0-9_-]{1,64}");
    if (const auto known = all_.find(request.id); known != all_.end()) {
        if (known->second->fingerprint() != request.fingerprint) {
            return connection.fail(stream, "FINGERPRINT_MISMATCH",
                                   "the execution exists with another body");
        }
        return follow(connection, stream, *known->second, 0, 0, true);
    }
    if (!readWork(connection, stream, body, request)) return;
    if (running() >= kMaxRunning)
        return connection.fail(stream, "TOO_MANY", "too many executions are running");
    if (!makeRoom()) return connection.fail(stream, "TOO_MANY", "too many executions are kept");
    if (body["context"].isString()) {
        return execInContext(connection, stream, body, std::move(request));
    }
    const bool code = request.spawn.argv.empty();
    if (code && !languages_.has(request.language))
        return connection.fail(stream, "UNSUPPORTED", "the image has no such language");
    ExecutionOwner& self = *this;
    auto execution = std::make_unique<Execution>(loop_, settings_, self, std::move(request));
    if (const Refusal refusal = start(*execution))
        return connection.fail(stream, refusal.code, refusal.text);
    follow(connection, stream, keep(std::move(execution)), 0, 0, false);
}

Refusal ExecutionTable::start(Execution& execution) {
    if (execution.request().prepare.argv.empty()) return begin(execution);
    return {execution.prepare(nextLabel())};
}

Refusal ExecutionTable::begin(Execution& execution) {
    if (!execution.request().context.empty()) return runInContext(execution);
    const bool code = !execution.request().language.empty();
    return (code ? startFresh(execution) : startInShell(execution)) ? Refusal{}
                                                                    : startCold(execution);
}

Execution& ExecutionTable::keep(std::unique_ptr<Execution> execution) {
    deadlines_.started(execution->startedAtNs());
    Execution& started = *execution;
    all_[started.id()] = std::move(execution);
    return started;
}

bool ExecutionTable::startInShell(Execution& execution) {
    const Execution::Request& request = execution.request();
    const SpawnRequest& spawn = request.spawn;
    if (!request.command || spawn.pty || spawn.with_stdin || spawn.cwd != settings_.root) {
        return false;
    }
    std::string script;
    std::unique_ptr<ParkedShell> shell = shells_.take(spawn.env, spawn.argv.back(), script);
    return shell && execution.startInShell(std::move(shell), script);
}

bool ExecutionTable::startFresh(Execution& execution) {
    const Execution::Request& request = execution.request();
    if (request.spawn.pty || hasNul(request.code)) return false;
    std::unique_ptr<Parked> parked = zygotes_.takeSoon(request.language, request.spawn.env);
    if (!parked) return false;
    const std::string name = languages_.file(request.language);
    // The program's __file__, which tracebacks, inspect and the children of multiprocessing read.
    std::unique_ptr<Scratch> scratch = std::move(parked->scratch);
    if (!scratch || scratch->write(request.code) != 0) {
        scratch = std::make_unique<Scratch>(settings_);
        // startCold() then fails as well, and says why.
        if (scratch->create(request.id, name, request.code) != 0) return false;
    }
    const std::string work = encodeWork("run", request.spawn.cwd, name, scratch->file(),
                                        request.spawn.env, request.code);
    execution.startParked(std::move(parked), work, std::move(scratch));
    return true;
}

Refusal ExecutionTable::startCold(Execution& execution) {
    Execution::Request& request = execution.request();
    SpawnRequest& spawn = request.spawn;
    std::unique_ptr<Scratch> scratch;
    const bool speaks = !request.language.empty() && languages_.speaks(request.language);
    if (!request.language.empty()) {
        scratch = std::make_unique<Scratch>(settings_);
        const std::string name = languages_.file(request.language);
        if (const int error = scratch->create(request.id, name, request.code)) {
            return unwritten(error);
        }
        spawn.argv = languages_.command(request.language, scratch->file());
    }
    if (speaks) {
        // The driver reads the first entry of the name, and the request may have brought one.
        const std::string channel = "HEARTH_CHANNEL=";
        spawn.env.erase(std::remove_if(spawn.env.begin(), spawn.env.end(),
                                       [&channel](const std::string& entry) {
                                           return entry.compare(0, channel.size(), channel) == 0;
                                       }),
                        spawn.env.end());
        spawn.env.push_back(channel + std::to_string(kChannelFd));
    }
    spawn.label = nextLabel();
    return {execution.startCold(std::move(scratch), speaks)};
}

void ExecutionTable::follow(Connection& connection, std::uint32_t stream, Execution& execution,
                            std::uint64_t from, std::uint64_t results_from, bool repeated) {
    if (execution.streams() >= kMaxFollowers) {
        return connection.fail(stream, "TOO_MANY", "too many streams follow this execution");
    }
    connection.noteSoon(stream, execution.startedNote(repeated));
    auto output = std::make_unique<OutputStream>(connection, stream, execution, from, results_from);
    OutputStream& opened = *output;
    connection.open(stream, std::move(output));
    opened.pump();
}

Execution* ExecutionTable::find(Connection& connection, std::uint32_t stream,
                                const JsonValue& body) {
    const auto found = all_.find(std::string(body["id"].text()));
    if (found != all_.end() && !found->second->forgotten) return found->second.get();
    connection.fail(stream, "NOT_FOUND", "no such execution");
    return nullptr;
}

void ExecutionTable::attach(Connection& connection, std::uint32_t stream, const JsonValue& body) {
    Execution* execution = find(connection, stream, body);
    if (execution == nullptr) return;
    const std::int64_t offset = body["offset"].integer();
    const std::int64_t results = body["results"].integer();
    if (offset < 0 || results < 0)
        return connection.fail(stream, "BAD_REQUEST", "offset is negative");
    deadlines_.touch(nowNs());
    follow(connection, stream, *execution, static_cast<std::uint64_t>(offset),
           static_cast<std::uint64_t>(results), true);
}

void ExecutionTable::signal(Connection& connection, std::uint32_t stream, const JsonValue& body) {
    Execution* execution = find(connection, stream, body);
    if (execution == nullptr) return;
    static constexpr struct {
        const char* name;
        int number;
    } kNames[] = {{"KILL", SIGKILL}, {"TERM", SIGTERM},   {"INT", SIGINT},   {"HUP", SIGHUP},
                  {"QUIT", SIGQUIT}, {"USR1", SIGUSR1},   {"USR2", SIGUSR2}, {"STOP", SIGSTOP},
                  {"CONT", SIGCONT}, {"WINCH", SIGWINCH}, {"TSTP", SIGTSTP}};
    auto number = static_cast<int>(std::clamp<std::int64_t>(body["signal"].integer(), 0, 64));
    std::string_view name = body["signal"].text();
    if (name.substr(0, 3) == "SIG") name.remove_prefix(3);
    for (const auto& known : kNames) {
        if (name == known.name) number = known.number;
    }
    if (number < 1 || number > 64) return connection.fail(stream, "BAD_REQUEST", "no such signal");
    deadlines_.touch(nowNs());
    if (!execution->signal(number)) return connection.fail(stream, "NOT_FOUND", "it has ended");
    connection.reply(stream, JsonValue::object());
}

void ExecutionTable::resize(Connection& connection, std::uint32_t stream, const JsonValue& body) {
    Execution* execution = find(connection, stream, body);
    if (execution == nullptr) return;
    execution->resize(cells(body["cols"], 80), cells(body["rows"], 24));
    connection.reply(stream, JsonValue::object());
}

void ExecutionTable::forget(Connection& connection, std::uint32_t stream, const JsonValue& body) {
    Execution* execution = find(connection, stream, body);
    if (execution == nullptr) return;
    execution->forgotten = true;  // tick() removes it
    connection.reply(stream, JsonValue::object());
}

bool ExecutionTable::makeRoom() {
    if (all_.size() < kMaxKept) return true;
    auto oldest = all_.end();
    const auto rank = [](const Execution& e) {
        return std::pair<int, std::int64_t>(e.forgotten ? 0 : e.watched() ? 2 : 1, e.startedAtNs());
    };
    for (auto it = all_.begin(); it != all_.end(); ++it) {
        if (!it->second->finished()) continue;
        if (oldest == all_.end() || rank(*it->second) < rank(*oldest->second)) oldest = it;
    }
    if (oldest == all_.end()) return false;
    all_.erase(oldest);
    return true;
}

JsonValue ExecutionTable::list() const {
    JsonValue out = JsonValue::array();
    for (const auto& [id, e] : all_) {
        if (e->forgotten) continue;
        JsonValue item = JsonValue::object();
        item.set("id", id).set("fingerprint", e->fingerprint());
        item.set("state", e->finished() ? "exited" : "running");
        item.set("startedAtNs", e->startedAtNs()).set("background", e->background());
        out.push(std::move(item));
    }
    return out;
}

void ExecutionTable::reaped(pid_t pid, int status, const rusage& usage) {
    if (!zygotes_.reaped(pid) && !shells_.reaped(pid)) dead(pid, status, usage, Teller::Kernel);
}

void ExecutionTable::dead(pid_t pid, int status, const rusage& usage, Teller teller) {
    const bool any = teller == Teller::Kernel;
    for (const auto& [id, context] : contexts_) {
        if (context->pid() == pid && (any || context->ofZygote()))
            return context->reaped(status, usage);
    }
    for (const auto& [id, e] : all_) {
        if (e->pid() == pid && !e->finished() && (any || e->ofZygote()))
            return e->reaped(status, usage);
    }
}

void ExecutionTable::forked(gid_t label, pid_t pid) {
    for (const auto& [id, e] : all_) e->forked(label, pid);
}

void ExecutionTable::zygoteGone() {
    for (const auto& [id, context] : contexts_) context->zygoteGone();
    for (const auto& [id, e] : all_) e->zygoteGone();
}

void ExecutionTable::finished(Execution&) {
    deadlines_.ended(nowNs());
    zygotes_.answered();
    shells_.answered();
}

void ExecutionTable::drain(Fd pipe) {
    if (drains_.size() >= kMaxDrains) {
        loop_.bury(std::move(drains_.front()));
        drains_.pop_front();
    }
    drains_.push_back(std::make_unique<Drain>(loop_, std::move(pipe)));
}

std::int64_t ExecutionTable::nextTickNs() const noexcept {
    std::int64_t next = std::min(zygotes_.nextTickNs(), shells_.nextTickNs());
    for (const auto& [id, context] : contexts_) next = std::min(next, context->nextTickNs());
    for (const auto& [id, e] : all_) next = std::min(next, e->nextTickNs());
    return next;
}

void ExecutionTable::tick(std::int64_t now_ns) {
    zygotes_.tick(now_ns);
    shells_.tick(now_ns);
    for (auto it = contexts_.begin(); it != contexts_.end();) {
        it->second->tick(now_ns);
        it = it->second->alive() ? std::next(it) : contexts_.erase(it);
    }
    for (auto it = all_.begin(); it != all_.end();) {
        it->second->tick(now_ns);
        const bool over = it->second->forgotten && it->second->finished() &&
                          !it->second->watched() && it->second->nextTickNs() == INT64_MAX;
        it = over ? all_.erase(it) : std::next(it);
    }
    while (!drains_.empty() && drains_.front()->done()) {
        loop_.bury(std::move(drains_.front()));
        drains_.pop_front();
    }
}

void ExecutionTable::killAll() {
    zygotes_.killAll();
    shells_.killAll();
    for (const auto& [id, context] : contexts_) context->end();
    for (const auto& [id, e] : all_) e->killAll();
}

}  // namespace hearth::agent
