#include "pool/agent/program/executions/ContextTable.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "pool/agent/program/interpreters/DriverWork.h"

namespace hearth::agent {

namespace {

/// How much output between two runs is kept for the second one.
constexpr std::size_t kBetween = 256U << 10U;
/// Node loses a signal that comes just as it stops to watch for one, at the end of a piece's part
/// before its first await. So an interrupt that ends nothing is sent again, but not for ever: the
/// piece may handle it.
constexpr int kInterruptsAgain = 3;
constexpr std::int64_t kInterruptAgainNs = 300'000'000;

Fd copyOf(const Fd& fd) {
    return Fd(fd ? fcntl(fd.get(), F_DUPFD_CLOEXEC, 3) : -1);
}

}  // namespace

/// One of the output pipes while nothing runs.
class Context::Idle final : public Source {
public:
    Idle(EventLoop& loop, int fd, OutputLog& log, Channel channel)
        : loop_(loop), fd_(fd), log_(log), channel_(channel) {
        loop_.add(fd_, EPOLLIN, *this);
    }
    ~Idle() override { stop(); }
    void stop() {
        if (fd_ >= 0) loop_.remove(fd_);
        fd_ = -1;
    }
    void ready(std::uint32_t) override {
        static char bytes[65'536];
        if (fd_ < 0) return;
        const ssize_t n = read(fd_, bytes, sizeof(bytes));
        if (n > 0) {
            log_.append(channel_, {bytes, static_cast<std::size_t>(n)});
        } else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
            stop();
        }
    }

private:
    EventLoop& loop_;
    int fd_;
    OutputLog& log_;
    const Channel channel_;
};

Context::Context(EventLoop& loop, const Settings& settings, Facts facts)
    : loop_(loop),
      settings_(settings),
      facts_(std::move(facts)),
      between_(kBetween),
      mark_(settings.mark) {}

Context::~Context() {
    end();
    watchPipes(false);
    if (channel_) channel_->close();
    loop_.bury(std::move(channel_));
}

void Context::startParked(std::unique_ptr<Parked> parked) {
    parked_ = true;
    mark_ = Mark::Limit;
    label_ = parked->label;
    channel_ = std::move(parked->channel);
    channel_->listen(*this);
    pid_ = parked->pid;
    began(std::move(parked->pipes));
}

const char* Context::startCold(std::vector<std::string> argv, gid_t label) {
    Fd ours;
    Fd theirs;
    if (!DriverChannel::open(ours, theirs)) return "no socket";
    SpawnRequest request;
    request.argv = std::move(argv);
    request.env = facts_.env;
    request.cwd = facts_.cwd;
    request.label = label;
    request.channel = theirs.get();
    Spawned spawned;
    if (const char* why = spawn(settings_, request, spawned)) return why;
    mark_ = settings_.mark;
    label_ = label;
    DriverListener& self = *this;
    channel_ = std::make_unique<DriverChannel>(loop_, self, std::move(ours));
    channel_->hearOne();
    pid_ = spawned.pid;
    began(std::move(spawned));
    return nullptr;
}

void Context::began(Spawned pipes) {
    pipes_ = std::move(pipes);
    pipes_.input.reset();  // a context has no standard input
    watchPipes(true);
}

void Context::watchPipes(bool watch) {
    for (auto* idle : {&idle_output_, &idle_errors_}) {
        if (*idle) (*idle)->stop();
        loop_.bury(std::move(*idle));
    }
    if (!watch) return;
    const auto idle = [this](const Fd& fd, Channel channel) {
        return fd ? std::make_unique<Idle>(loop_, fd.get(), between_, channel) : nullptr;
    };
    idle_output_ = idle(pipes_.output, Channel::Stdout);
    idle_errors_ = idle(pipes_.errors, Channel::Stderr);
}

void Context::run(Execution& execution, std::string_view code) {
    for (Idle* idle : {idle_output_.get(), idle_errors_.get()}) {
        if (idle != nullptr) idle->ready(EPOLLIN);
    }
    watchPipes(false);
    // Nobody asked for what an interpreter says when it starts.
    if (std::exchange(ran_, true)) execution.precede(between_);
    between_ = OutputLog(kBetween);
    current_ = &execution;
    Spawned copies;
    copies.pid = pid_;
    copies.output = copyOf(pipes_.output);
    copies.errors = copyOf(pipes_.errors);
    execution.startHosted(*this, std::move(copies), label_, mark_);
    channel_->write(encodeWork("context", facts_.cwd, facts_.file, "", facts_.env, code));
}

void Context::released() {
    current_ = nullptr;
    again_ns_ = INT64_MAX;
    watchPipes(true);
}

void Context::driverSaid(DriverChannel&, std::string_view kind, std::string_view payload) {
    if (current_ != nullptr) current_->driver(kind, payload);
}

void Context::driverClosed(DriverChannel&) {
    // The zygote, or the agent's own wait, reports how it ended; an interpreter that only closed
    // its channel is useless.
    if (pid_ > 0) kill(pid_, SIGKILL);
}

bool Context::interrupt() {
    if (current_ == nullptr || pid_ <= 0) return false;
    // A process that was just forked may not lead its group yet.
    if (kill(-pid_, SIGINT) != 0 && kill(pid_, SIGINT) != 0) return false;
    const bool node = facts_.language == "javascript" || facts_.language == "typescript";
    again_ = node ? kInterruptsAgain : 0;
    if (again_ > 0) again_ns_ = nowNs() + kInterruptAgainNs;
    return true;
}

void Context::tick(std::int64_t now_ns) {
    if (now_ns < again_ns_) return;
    again_ns_ = --again_ > 0 ? now_ns + kInterruptAgainNs : INT64_MAX;
    // The piece may have just ended: the signal would reach the next one.
    if (channel_ && channel_->isOpen()) channel_->read();
    if (current_ != nullptr && pid_ > 0) kill(pid_, SIGINT);
}

void Context::end() {
    if (pid_ < 0) return;
    kill(pid_, SIGKILL);
    killProcesses(settings_, mark_, label_);
    reaped(SIGKILL, rusage{});
}

void Context::reaped(int status, const rusage& usage) {
    if (pid_ < 0) return;
    if (channel_ && channel_->isOpen()) channel_->read();  // read its last messages
    pid_ = -1;
    if (channel_) channel_->close();
    if (Execution* const execution = std::exchange(current_, nullptr)) {
        execution->hostDied(status, usage);
    }
}

void Context::zygoteGone() {
    if (pid_ > 0 && parked_ && channel_ && !channel_->isOpen()) {
        reaped(SIGKILL, rusage{});
    }
}

}  // namespace hearth::agent
