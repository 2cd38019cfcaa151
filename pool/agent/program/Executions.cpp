#include "pool/agent/program/Executions.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <csignal>

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

unsigned short cells(const Value& v, unsigned short otherwise) {
    return static_cast<unsigned short>(std::clamp<std::int64_t>(v.integer(otherwise), 1, 4'096));
}

Value parsed(const std::string& text) {
    Value value;
    return Value::parse(text, value) ? value : Value();
}

/// Below the workspace if relative; in a test the workspace is elsewhere.
std::string workingDirectory(const Settings& settings, std::string_view cwd) {
    const std::string_view workspace = kWorkspace;
    if (cwd.empty()) return settings.root;
    if (cwd.substr(0, workspace.size()) == workspace &&
        (cwd.size() == workspace.size() || cwd[workspace.size()] == '/')) {
        return settings.root + std::string(cwd.substr(workspace.size()));
    }
    if (cwd.front() == '/') return std::string(cwd);
    return settings.root + "/" + std::string(cwd);
}

}  // namespace

/// A pipe that nobody listens to any more.
class Executions::Drain final : public Source {
public:
    Drain(Loop& loop, Fd fd) : loop_(loop), fd_(std::move(fd)) {
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
    Loop& loop_;
    Fd fd_;
};

Executions::Executions(Loop& loop, const Settings& settings, Deadlines& deadlines)
    : loop_(loop),
      settings_(settings),
      deadlines_(deadlines),
      image_(parsed(settings.image)),
      languages_(settings.languages, image_["languages"]) {
    if (!settings.init) labels_ = static_cast<std::uint32_t>(getpid()) * 64;
}

Executions::~Executions() = default;

gid_t Executions::nextLabel() {
    return kFirstLabel + labels_++ % kLabels;
}

bool Executions::readEnvironment(const Value& body, std::map<std::string, std::string>& out) {
    for (std::size_t i = 0; i < body.keys().size(); ++i) {
        const std::string& name = body.keys()[i];
        const Value& value = body.items()[i];
        if (name.empty() || name.find('=') != std::string::npos || hasNul(name)) return false;
        if (!value.isString() || hasNul(value.text())) return false;
        out[name] = value.text();
    }
    return true;
}

std::vector<std::string> Executions::environment(const Value& extra, const std::string& scratch,
                                                 bool pty, bool& valid) const {
    std::map<std::string, std::string> env = {
        {"PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
        {"HOME", settings_.root},
        {"USER", "sandbox"},
        {"LANG", "C.UTF-8"},
        {"TMPDIR", "/tmp"},
        {"MPLBACKEND", "Agg"},
        {"MPLCONFIGDIR", "/tmp/.mpl"},
        {"PYTHONDONTWRITEBYTECODE", "1"},
    };
    for (const Value& variable : image_["env"].items()) {
        const std::string_view text = variable.text();
        const std::size_t equals = text.find('=');
        if (equals == 0 || equals == std::string_view::npos) continue;
        env[std::string(text.substr(0, equals))] = text.substr(equals + 1);
    }
    // Not where code runs: that is the workspace, because an image cannot be written to.
    if (image_["workdir"].isString() && !image_["workdir"].text().empty()) {
        env["HEARTH_IMAGE_WORKDIR"] = image_["workdir"].text();
    }
    if (pty) env["TERM"] = "xterm-256color";
    if (!settings_.cpus.empty()) {
        for (const char* name : {"OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"}) {
            env[name] = settings_.cpus;
        }
    }
    for (const auto& [name, value] : bound_env_) env[name] = value;
    valid = readEnvironment(extra, env);
    if (!scratch.empty()) env["HEARTH_REPORT"] = scratch + "/report";
    std::vector<std::string> out;
    out.reserve(env.size());
    for (const auto& [name, value] : env) out.push_back(name + "=" + value);
    return out;
}

void Executions::exec(Connection& connection, std::uint32_t stream, const Value& body) {
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
        return follow(connection, stream, *known->second, 0, true);
    }

    std::unique_ptr<Scratch> scratch;
    SpawnRequest& spawn = request.spawn;
    const Value& code = body["code"];
    const std::string language(body["language"].text());
    for (const Value& word : body["argv"].items()) {
        if (!word.isString() || hasNul(word.text()))
            return connection.fail(stream, "BAD_REQUEST", "argv holds no plain strings");
        spawn.argv.emplace_back(word.text());
    }
    if (body["command"].isString() && spawn.argv.empty()) {
        if (hasNul(body["command"].text()))
            return connection.fail(stream, "BAD_REQUEST", "command holds a NUL");
        spawn.argv = {"/bin/sh", "-c", std::string(body["command"].text())};
    } else if (code.isString() && spawn.argv.empty()) {
        if (!languages_.has(language))
            return connection.fail(stream, "UNSUPPORTED", "the image has no such language");
    } else if (spawn.argv.empty() || spawn.argv[0].empty() || spawn.argv.size() > kMaxArguments) {
        return connection.fail(stream, "BAD_REQUEST",
                               "one of argv, command, language with code is needed");
    }
    spawn.cwd = workingDirectory(settings_, body["cwd"].text());
    if (hasNul(spawn.cwd)) return connection.fail(stream, "BAD_REQUEST", "cwd holds a NUL");
    spawn.with_stdin = body["stdin"].boolean();
    spawn.pty = body["pty"].isObject();
    spawn.cols = cells(body["pty"]["cols"], 80);
    spawn.rows = cells(body["pty"]["rows"], 24);
    request.timeout_ms = std::clamp<std::int64_t>(body["timeoutMs"].integer(), 0, kMaxTimeoutMs);
    request.output_limit = static_cast<std::size_t>(
        std::clamp(body["outputLimit"].integer(1 << 20), kMinOutput, kMaxOutput));
    request.background = body["background"].boolean();
    if (running() >= kMaxRunning)
        return connection.fail(stream, "TOO_MANY", "too many executions are running");
    if (!makeRoom()) return connection.fail(stream, "TOO_MANY", "too many executions are kept");

    if (spawn.argv.empty()) {
        scratch = std::make_unique<Scratch>(settings_);
        const std::string file = languages_.file(language);
        if (!scratch->create(request.id, file, code.text())) {
            return connection.fail(stream, "SPAWN_FAILED", "the code cannot be written to /tmp");
        }
        spawn.argv = languages_.command(language, scratch->path() + "/" + file);
    }
    bool valid = false;
    spawn.env = environment(body["env"], scratch ? scratch->path() : "", spawn.pty, valid);
    if (!valid) return connection.fail(stream, "BAD_REQUEST", "env holds a bad name or value");
    spawn.label = nextLabel();

    ExecutionOwner& self = *this;
    auto execution =
        std::make_unique<Execution>(loop_, settings_, self, std::move(request), std::move(scratch));
    if (const char* why = execution->start()) return connection.fail(stream, "SPAWN_FAILED", why);
    deadlines_.started(execution->startedAtNs());
    Execution& started = *execution;
    all_[started.id()] = std::move(execution);
    follow(connection, stream, started, 0, false);
}

void Executions::follow(Connection& connection, std::uint32_t stream, Execution& execution,
                        std::uint64_t from, bool repeated) {
    if (execution.streams() >= kMaxFollowers) {
        return connection.fail(stream, "TOO_MANY", "too many streams follow this execution");
    }
    connection.note(stream, execution.startedNote(repeated));
    auto output = std::make_unique<OutputStream>(connection, stream, execution, from);
    OutputStream& opened = *output;
    connection.open(stream, std::move(output));
    opened.pump();
}

Execution* Executions::find(Connection& connection, std::uint32_t stream, const Value& body) {
    const auto found = all_.find(std::string(body["id"].text()));
    if (found != all_.end() && !found->second->forgotten) return found->second.get();
    connection.fail(stream, "NOT_FOUND", "no such execution");
    return nullptr;
}

void Executions::attach(Connection& connection, std::uint32_t stream, const Value& body) {
    Execution* execution = find(connection, stream, body);
    if (execution == nullptr) return;
    const std::int64_t offset = body["offset"].integer();
    if (offset < 0) return connection.fail(stream, "BAD_REQUEST", "offset is negative");
    deadlines_.touch(nowNs());
    follow(connection, stream, *execution, static_cast<std::uint64_t>(offset), true);
}

void Executions::signal(Connection& connection, std::uint32_t stream, const Value& body) {
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
    connection.reply(stream, Value::object());
}

void Executions::resize(Connection& connection, std::uint32_t stream, const Value& body) {
    Execution* execution = find(connection, stream, body);
    if (execution == nullptr) return;
    execution->resize(cells(body["cols"], 80), cells(body["rows"], 24));
    connection.reply(stream, Value::object());
}

void Executions::forget(Connection& connection, std::uint32_t stream, const Value& body) {
    Execution* execution = find(connection, stream, body);
    if (execution == nullptr) return;
    execution->forgotten = true;  // tick() removes it
    connection.reply(stream, Value::object());
}

bool Executions::makeRoom() {
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

Value Executions::list() const {
    Value out = Value::array();
    for (const auto& [id, e] : all_) {
        if (e->forgotten) continue;
        Value item = Value::object();
        item.set("id", id).set("fingerprint", e->fingerprint());
        item.set("state", e->finished() ? "exited" : "running");
        item.set("startedAtNs", e->startedAtNs()).set("background", e->background());
        out.push(std::move(item));
    }
    return out;
}

void Executions::reaped(pid_t pid, int status, const rusage& usage) {
    for (const auto& [id, e] : all_) {
        if (e->pid() == pid && !e->finished()) return e->reaped(status, usage);
    }
}

void Executions::finished(Execution&) {
    deadlines_.ended(nowNs());
}

void Executions::drain(Fd pipe) {
    if (drains_.size() >= kMaxDrains) {
        loop_.bury(std::move(drains_.front()));
        drains_.pop_front();
    }
    drains_.push_back(std::make_unique<Drain>(loop_, std::move(pipe)));
}

std::int64_t Executions::nextTickNs() const noexcept {
    std::int64_t next = INT64_MAX;
    for (const auto& [id, e] : all_) next = std::min(next, e->nextTickNs());
    return next;
}

void Executions::tick(std::int64_t now_ns) {
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

void Executions::killAll() {
    for (const auto& [id, e] : all_) e->killAll();
}

}  // namespace hearth::agent
