#include "pool/agent/program/executions/ContextTable.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "pool/agent/program/interpreters/DriverWork.h"

namespace hearth::agent {

namespace {

Fd copyOf(const Fd& fd) {
    return Fd(fd ? fcntl(fd.get(), F_DUPFD_CLOEXEC, 3) : -1);
}

}  // namespace

/// One of the output pipes while nothing runs.
class Context::Idle final : public Source {
public:
    Idle(EventLoop& loop, int fd) : loop_(loop), fd_(fd) { loop_.add(fd_, EPOLLIN, *this); }
    ~Idle() override { stop(); }
    void stop() {
        if (fd_ >= 0) loop_.remove(fd_);
        fd_ = -1;
    }
    void ready(std::uint32_t) override {
        static char sink[65'536];
        if (fd_ < 0) return;
        const ssize_t n = read(fd_, sink, sizeof(sink));
        if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) stop();
    }

private:
    EventLoop& loop_;
    int fd_;
};

Context::Context(EventLoop& loop, const Settings& settings, Facts facts)
    : loop_(loop), settings_(settings), facts_(std::move(facts)), mark_(settings.mark) {}

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
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) return "no socket";
    Fd ours(pair[0]);
    const Fd theirs(pair[1]);
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
    if (pipes_.output) idle_output_ = std::make_unique<Idle>(loop_, pipes_.output.get());
    if (pipes_.errors) idle_errors_ = std::make_unique<Idle>(loop_, pipes_.errors.get());
}

void Context::run(Execution& execution, std::string_view code) {
    // Output that came between two runs must not count as this run's.
    for (Idle* idle : {idle_output_.get(), idle_errors_.get()}) {
        if (idle != nullptr) idle->ready(EPOLLIN);
    }
    watchPipes(false);
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
    return current_ != nullptr && pid_ > 0 && kill(-pid_, SIGINT) == 0;
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
