#include "pool/agent/program/executions/Execution.h"

#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdio>

#include "pool/agent/protocol/OutputCut.h"

namespace hearth::agent {

namespace {
constexpr std::int64_t kMs = 1'000'000;
constexpr std::int64_t kPipeGraceNs = 250 * kMs;
constexpr std::int64_t kBeginWithinNs = 2'000 * kMs;
/// The time that interrupted code of a context has before the context is ended with it.
constexpr std::int64_t kInterruptGraceNs = 1'000 * kMs;
constexpr int kOrderRounds = 16;
constexpr std::int64_t kShortNs = 5 * kMs;
constexpr std::int64_t kHoldNs = kMs / 2;
constexpr std::size_t kMaxHeld = 4'096;
/// The room that a paced execution leaves in its log: two full pipes and one read.
constexpr std::uint64_t kPacedRoom = 192U << 10U;
constexpr std::size_t kMaxLeftInput = 1U << 20U;
char pipe_buffer[65'536];  // the loop's thread only

const char* nameOf(Execution::Interpreter interpreter) {
    static constexpr const char* kNames[] = {"", "cold", "zygote", "context", "parked"};
    return kNames[static_cast<std::size_t>(interpreter)];
}
}  // namespace

Refusal unwritten(int error) noexcept {
    if (error == ENOSPC || error == EDQUOT)
        return {"the code cannot be written: /.hearth/run is full", "NO_ROOM"};
    if (error == ENOMEM) return {"there is no memory for the code"};
    return {"the code cannot be written to /.hearth/run", "UNWRITTEN"};
}

/// One descriptor of an execution in the loop.
class Execution::Pipe final : public Source {
public:
    Pipe(Execution& execution, Fd end, Channel of)
        : execution_(execution), fd(std::move(end)), channel(of) {}
    void ready(std::uint32_t events) override {
        if (!fd) return;
        if (channel != Channel::Bytes) return execution_.readable(*this);
        if ((events & (EPOLLERR | EPOLLHUP)) != 0) return execution_.closeInput();
        execution_.feed();
    }

private:
    Execution& execution_;

public:
    Fd fd;
    const Channel channel;
    bool waiting = false;  ///< an input pipe that was full
};

Execution::Execution(EventLoop& loop, const Settings& settings, ExecutionOwner& owner,
                     Request request)
    : loop_(loop),
      settings_(settings),
      owner_(owner),
      request_(std::move(request)),
      log_(request_.output_limit),
      mark_(settings.mark),
      kills_(settings) {}

Execution::~Execution() {
    while (!streams_.empty()) {
        streams_.back()->fail("NOT_FOUND", "the execution has been forgotten");
    }
    wroteOff(input_);
    wroteOff(output_);
    wroteOff(errors_);
    if (host_ != nullptr) host_->released();
    if (channel_) channel_->close();
    loop_.bury(std::move(channel_));
}

const char* Execution::prepare(gid_t label) {
    SpawnRequest spawn;
    spawn.env = request_.spawn.env;
    spawn.cwd = request_.spawn.cwd;
    spawn.label = label;
    auto preparation = std::make_unique<Preparation>(loop_);
    if (const char* why = preparation->start(settings_, request_.prepare, request_.code,
                                             std::move(spawn), pid_)) {
        return why;
    }
    preparation_ = std::move(preparation);
    mark_ = settings_.mark;
    label_ = label;
    started_ns_ = nowNs();
    if (request_.timeout_ms > 0) deadline_ns_ = started_ns_ + request_.timeout_ms * kMs;
    return nullptr;
}

bool Execution::prepared(int status, const rusage& usage) {
    const bool ok = status == 0 && !killed_;
    preparation_->ended(ok);
    outcome_.prepared(usage);
    pid_ = -1;
    if (!ok) return false;
    killProcesses(settings_, mark_, label_);  // the leftovers have another label than the work
    if (const Refusal refusal = owner_.begin(*this)) {
        startFailed(refusal.text);
    } else {
        feed();
    }
    return true;
}

void Execution::startFailed(const char* why) {
    log_.append(Channel::Stderr, std::string("hearth: ") + why + "\n");
    reaped(W_EXITCODE(125, 0), rusage{});
}

const char* Execution::startCold(std::unique_ptr<Scratch> scratch, bool speaks) {
    Fd ours;
    Fd theirs;
    interpreter_ = request_.language.empty() ? Interpreter::None : Interpreter::Cold;
    if (speaks) {
        if (!DriverChannel::open(ours, theirs)) return "no socket";
        request_.spawn.channel = theirs.get();
    }
    Spawned spawned;
    if (const char* why = spawn(settings_, request_.spawn, spawned)) return why;
    scratch_ = std::move(scratch);
    mark_ = settings_.mark;
    label_ = request_.spawn.label;
    pid_ = spawned.pid;
    DriverListener& self = *this;
    if (ours) channel_ = std::make_unique<DriverChannel>(loop_, self, std::move(ours));
    began(std::move(spawned));
    return nullptr;
}

void Execution::startParked(std::unique_ptr<Parked> parked, std::string_view work,
                            std::unique_ptr<Scratch> scratch) {
    interpreter_ = Interpreter::Zygote;
    scratch_ = std::move(scratch);
    mark_ = Mark::Limit;
    label_ = parked->label;
    pid_ = parked->pid;
    channel_ = std::move(parked->channel);
    channel_->listen(*this);
    channel_->write(work);
    if (!request_.spawn.with_stdin) parked->pipes.input.reset();
    began(std::move(parked->pipes));
    begin_by_ns_ = nowNs() + kBeginWithinNs;
}

bool Execution::startInShell(std::unique_ptr<ParkedShell> shell, std::string_view script) {
    const std::int64_t now = nowNs();
    if (!shell->script.finish(script)) {
        kill(shell->pid, SIGKILL);
        return false;
    }
    if (started_ns_ == 0) started_ns_ = now;
    interpreter_ = Interpreter::Parked;
    script_ = std::move(shell->script);
    label_ = shell->label;
    pid_ = shell->pid;
    began(std::move(shell->pipes));
    begin_by_ns_ = now + kBeginWithinNs;
    return true;
}

void Execution::startHosted(ExecutionHost& host, Spawned pipes, gid_t label, Mark mark) {
    interpreter_ = Interpreter::Context;
    host_ = &host;
    mark_ = mark;
    label_ = label;
    pid_ = pipes.pid;
    began(std::move(pipes));
}

void Execution::precede(const OutputLog& earlier) {
    const OutputCut shown(earlier);
    for (std::uint64_t at = 0;;) {
        const OutputLog::Chunk chunk = shown.read(at, earlier.limit());
        if (chunk.bytes.empty()) break;
        if (chunk.offset > at) {
            lost_bytes_ = chunk.offset - at;
            log_.append(chunk.channel, "[… " + std::to_string(lost_bytes_) +
                                           " bytes before this run were not kept …]\n");
        }
        log_.append(chunk.channel, chunk.bytes);
        at = chunk.offset + chunk.bytes.size();
    }
}

void Execution::began(Spawned spawned) {
    if (started_ns_ == 0) started_ns_ = nowNs();
    if (request_.timeout_ms > 0) deadline_ns_ = started_ns_ + request_.timeout_ms * kMs;
    paused_ = false;
    const auto watch = [this](std::unique_ptr<Pipe>& pipe, Fd fd, Channel channel) {
        if (!fd) return;
        pipe = std::make_unique<Pipe>(*this, std::move(fd), channel);
        loop_.add(pipe->fd.get(), channel == Channel::Bytes ? 0U : EPOLLIN, *pipe);
    };
    watch(input_, std::move(spawned.input), Channel::Bytes);
    watch(output_, std::move(spawned.output), Channel::Stdout);
    watch(errors_, std::move(spawned.errors), Channel::Stderr);
}

void Execution::driverSaid(DriverChannel&, std::string_view kind, std::string_view payload) {
    driver(kind, payload);
}

void Execution::driver(std::string_view kind, std::string_view payload) {
    if (finished_ || reaped_) return;
    if (kind == "ready") return;  // it was sent its work before
    begin_by_ns_ = 0;             // any other message means that it has begun
    if (kind == "result") {
        drainBeforeResult();
        results_.append(payload, log_.total());
        pumpStreams();
    } else if (kind == "error") {
        outcome_.report(payload);
    } else if (kind == "done" && interpreter_ != Interpreter::Cold) {
        done(payload);
    }
}

void Execution::drainBeforeResult() {
    // Its earlier output is in the pipes already. If the program waits for its reader, that output
    // comes after the result: that is better than to drop any.
    if (paused_) return;
    const int rounds = request_.paced ? 1 : kOrderRounds;
    if (output_ && drainPipe(*output_, rounds)) wroteOff(output_);
    if (errors_ && drainPipe(*errors_, rounds)) wroteOff(errors_);
    pace();
}

void Execution::done(std::string_view payload) {
    int status = 0;
    long long used_us = 0;
    long long peak_kib = 0;
    int alone = 0;
    if (std::sscanf(std::string(payload).c_str(), "%d %lld %lld %d", &status, &used_us, &peak_kib,
                    &alone) < 3) {
        return;
    }
    alone_ = alone != 0;
    reaped(W_EXITCODE(status & 0xFF, 0), toldUsage(used_us, 0, peak_kib));
}

void Execution::driverClosed(DriverChannel& channel) {
    if (begin_by_ns_ > 0 && !reaped_ && !channel.taken()) retryCold();
    // Otherwise the zygote, or the agent's own wait, reports how it ended.
}

void Execution::forked(gid_t label, pid_t pid) {
    if (!reaped_ && interpreter_ == Interpreter::Zygote && label_ == label) {
        pid_ = pid;
        if (killed_) kill(pid_, SIGKILL);
    }
}

void Execution::zygoteGone() {
    if (reaped_ || interpreter_ != Interpreter::Zygote || (channel_ && channel_->isOpen())) return;
    reaped(SIGKILL, rusage{});
}

void Execution::hostDied(int status, const rusage& usage) {
    host_ = nullptr;
    host_lost_ = true;
    reaped(status, usage);
}

bool Execution::takeBack() {
    if (script_) return script_.takeBack();
    return !channel_ || !channel_->taken();
}

void Execution::retryCold() {
    begin_by_ns_ = 0;
    if (killed_) return reaped(SIGKILL, rusage{});
    if (pid_ > 0) kill(pid_, SIGKILL);
    killProcesses(settings_, mark_, label_);
    pid_ = -1;
    if (channel_) channel_->close();
    loop_.bury(std::move(channel_));
    scratch_.reset();  // the next has the same name
    wroteOff(input_);
    wroteOff(output_);
    wroteOff(errors_);
    if (const Refusal refusal = owner_.startCold(*this)) {
        startFailed(refusal.text);
    } else {
        feed();
    }
}

void Execution::wroteOff(std::unique_ptr<Pipe>& pipe) {
    if (!pipe) return;
    if (pipe->fd) {
        loop_.remove(pipe->fd.get());
        pipe->fd.reset();
    }
    loop_.bury(std::move(pipe));
}

bool Execution::drainPipe(Pipe& pipe, int rounds) {
    for (int i = 0; i < rounds; ++i) {
        const ssize_t n = read(pipe.fd.get(), pipe_buffer, sizeof(pipe_buffer));
        if (n > 0) {
            log_.append(pipe.channel, {pipe_buffer, static_cast<std::size_t>(n)});
        } else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
            return true;  // a PTY ends with EIO
        } else if (errno == EAGAIN) {
            return false;
        }
    }
    return false;
}

void Execution::hold() {
    const std::int64_t now = nowNs();
    if (held_ || request_.spawn.pty || log_.total() > kMaxHeld || now > started_ns_ + kShortNs) {
        return;
    }
    held_ = true;
    held_until_ns_ = now + kHoldNs;
}

void Execution::letGo() {
    if (std::exchange(held_until_ns_, INT64_MAX) != INT64_MAX) pumpStreams();
}

bool Execution::ahead() const {
    if (!request_.paced || streams_.empty() || reaped_) return false;
    std::uint64_t sent = 0;
    for (const OutputStream* s : streams_) sent = std::max(sent, s->cursor());
    return log_.total() - std::min(sent, log_.total()) + kPacedRoom > log_.limit() / 2;
}

void Execution::pace() {
    const bool wait = ahead();
    if (wait == paused_) return;
    paused_ = wait;
    // A pipe whose writers have ended would wake the loop for ever if it were only masked.
    for (Pipe* pipe : {output_.get(), errors_.get()}) {
        if (pipe == nullptr) continue;
        if (wait) {
            loop_.remove(pipe->fd.get());
        } else {
            loop_.add(pipe->fd.get(), EPOLLIN, *pipe);
        }
    }
}

void Execution::readable(Pipe& pipe) {
    if (paused_) return;  // this event is older than the pause
    if (drainPipe(pipe, request_.paced ? 1 : 4))
        wroteOff(&pipe == output_.get() ? output_ : errors_);
    if (!reaped_) hold();
    if (held_until_ns_ == INT64_MAX) pumpStreams();
    pace();
    finishIfDone();
}

void Execution::closed(OutputStream& stream) {
    streams_.erase(std::find(streams_.begin(), streams_.end(), &stream));
    if (paused_) pace();  // maybe no stream is left to wait for
    if (left_input_.size() + stream.input().size() <= kMaxLeftInput) left_input_ += stream.input();
}

void Execution::pumpStreams() {
    const std::vector<OutputStream*> all = streams_;
    for (OutputStream* s : all) {
        if (std::find(streams_.begin(), streams_.end(), s) == streams_.end()) continue;
        s->pump();
        s->flush();
    }
}

void Execution::feed() {
    if (preparing()) return;  // the input is for the work, which takes it when it begins
    bool full = false;
    const auto give = [&](std::string& bytes) {
        std::size_t done = 0;
        while (done < bytes.size() && input_ && !full) {
            const ssize_t n = write(input_->fd.get(), bytes.data() + done, bytes.size() - done);
            if (n > 0) {
                done += static_cast<std::size_t>(n);
            } else if (errno == EAGAIN) {
                full = true;
            } else if (errno != EINTR) {
                closeInput();
            }
        }
        if (!input_) done = bytes.size();  // nobody reads any more: taken and dropped
        bytes.erase(0, done);
        return done;
    };
    give(left_input_);
    bool ended = false;
    for (OutputStream* s : std::vector<OutputStream*>(streams_)) {
        if (full) break;
        const std::size_t done = give(s->input());
        if (done > 0) s->grant(done);
        ended = ended || s->inputEnded();
    }
    if (input_ && input_->waiting != full) {
        input_->waiting = full;
        loop_.change(input_->fd.get(), full ? EPOLLOUT : 0U, *input_);
    }
    if (ended && !full && input_) {
        if (request_.spawn.pty) {
            const char end_of_file = 4;
            if (write(input_->fd.get(), &end_of_file, 1) == 1) {
                for (OutputStream* s : streams_) s->reopenInput();
            }
        } else {
            closeInput();
        }
    }
    for (OutputStream* s : std::vector<OutputStream*>(streams_)) s->flush();
}

void Execution::closeInput() {
    wroteOff(input_);
    for (OutputStream* s : streams_) {
        if (!s->input().empty()) s->grant(s->input().size());
        s->input().clear();
    }
}

void Execution::reaped(int status, const rusage& usage) {
    const pid_t whose = pid_;
    if (channel_ && channel_->isOpen()) channel_->read();  // read its last messages
    if (reaped_ || pid_ != whose) return;                  // it ended, or another process runs
    if (preparing()) {
        if (prepared(status, usage)) return;
        if (killed_ && status == 0) status = SIGKILL;  // a success, but after the kill
    }
    if (script_ && script_.takeBack()) {  // it was killed before it had begun
        pid_ = -1;
        return retryCold();
    }
    reaped_ = true;
    begin_by_ns_ = 0;
    pid_ = -1;  // may be another process from here on
    outcome_.ended(settings_, status, usage);
    ended_ns_ = nowNs();
    grace_ns_ = ended_ns_ + kPipeGraceNs;
    if (output_ && drainPipe(*output_, 64)) wroteOff(output_);
    if (errors_ && drainPipe(*errors_, 64)) wroteOff(errors_);
    pace();
    finishIfDone();
    letGo();
    if (!finished_) pumpStreams();
}

void Execution::finishIfDone() {
    // A context's pipes stay open: its output was read before its result message.
    const bool silent = host_ != nullptr || alone_ || (!output_ && !errors_);
    // A killed execution waits for its processes first: it ends when they have ended.
    if (reaped_ && !finished_ && silent && !kills_.going()) finish();
}

void Execution::finish() {
    finished_ = true;
    held_until_ns_ = INT64_MAX;
    pumpStreams();
    // After the answer: an interpreter that is let go competes with it for the processor.
    if (channel_) channel_->close();
    loop_.bury(std::move(channel_));
    scratch_.reset();
    wroteOff(input_);
    for (std::unique_ptr<Pipe>* pipe : {&output_, &errors_}) {
        if (!*pipe) continue;
        loop_.remove((*pipe)->fd.get());
        if (host_ == nullptr) owner_.drain(std::move((*pipe)->fd));
        wroteOff(*pipe);
    }
    if (host_ != nullptr) std::exchange(host_, nullptr)->released();
    owner_.finished(*this);
}

bool Execution::signal(int number) {
    if (number == SIGKILL) {
        killAll();
        return true;
    }
    // A process that was just forked may not lead its group yet.
    return !reaped_ && pid_ > 0 && (kill(-pid_, number) == 0 || kill(pid_, number) == 0);
}

void Execution::killAll() {
    killed_ = true;
    if (!reaped_ && pid_ > 0) kill(pid_, SIGKILL);
    kills_.begin(mark_, label_);
}

void Execution::resize(unsigned short cols, unsigned short rows) {
    if (!output_ || !request_.spawn.pty) return;
    winsize size{};
    size.ws_col = cols;
    size.ws_row = rows;
    ioctl(output_->fd.get(), TIOCSWINSZ, &size);
}

std::int64_t Execution::nextTickNs() const noexcept {
    std::int64_t next = INT64_MAX;
    if (!reaped_ && deadline_ns_ > 0) next = deadline_ns_;
    if (begin_by_ns_ > 0) next = std::min(next, begin_by_ns_);
    if (reaped_ && !finished_) next = std::min(next, grace_ns_);
    return std::min({next, kills_.nextTickNs(), held_until_ns_});
}

void Execution::tick(std::int64_t now_ns) {
    if (kills_.going()) {
        kills_.tick(now_ns);
        finishIfDone();
    }
    if (begin_by_ns_ > 0 && now_ns >= begin_by_ns_) {
        begin_by_ns_ = 0;
        if (takeBack()) retryCold();
    }
    if (now_ns >= held_until_ns_) letGo();
    if (!reaped_ && deadline_ns_ > 0 && now_ns >= deadline_ns_) {
        const bool first = outcome_.timeOut();
        deadline_ns_ = 0;
        if (first && host_ != nullptr) {  // its state may be worth something
            host_->interrupt();
            deadline_ns_ = now_ns + kInterruptGraceNs;
        } else {
            killAll();
        }
    }
    if (reaped_ && !finished_ && now_ns >= grace_ns_) finish();
}

JsonValue Execution::startedNote(bool repeated) const {
    JsonValue started = JsonValue::object();
    started.set("id", request_.id).set("startedAtNs", started_ns_).set("repeated", repeated);
    started.set("interpreter", nameOf(interpreter_));
    if (!request_.context.empty()) started.set("context", request_.context);
    if (JsonValue kept; repeated && JsonValue::parse(request_.note, kept)) {
        started.set("note", std::move(kept));
    }
    JsonValue note = JsonValue::object();
    note.set("started", std::move(started));
    return note;
}

JsonValue Execution::result() const {
    JsonValue r = JsonValue::object();
    r.set("id", request_.id).set("startedAtNs", started_ns_).set("endedAtNs", ended_ns_);
    outcome_.addTo(r);
    r.set("outputBytes", log_.total() + lost_bytes_);
    r.set("droppedBytes", log_.dropped() + lost_bytes_);
    r.set("interpreter", nameOf(interpreter_)).set("resultBytes", results_.size());
    r.set("droppedResults", results_.dropped());
    if (interpreter_ == Interpreter::Context) r.set("contextKept", !host_lost_);
    if (preparation_) r.set("prepared", preparation_->told());
    return r;
}

}  // namespace hearth::agent
