#include "pool/agent/program/executions/Preparation.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

#include "pool/agent/protocol/Frame.h"

namespace hearth::agent {

namespace {

constexpr std::size_t kKeptOutput = 48U << 10U;
constexpr std::size_t kKeptErrors = 4U << 10U;
constexpr std::size_t kMaxArguments = 64;
constexpr std::size_t kLastRounds = 64;
/// Control characters become six times longer in JSON, and the whole result must fit into a frame.
constexpr std::size_t kMaxTold = kMaxPayload / 4;

bool hasNul(std::string_view text) {
    return text.find('\0') != std::string_view::npos;
}

bool put(const Fd& fd, std::string_view bytes) {
    while (!bytes.empty()) {
        const ssize_t n = write(fd.get(), bytes.data(), bytes.size());
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        bytes.remove_prefix(static_cast<std::size_t>(n));
    }
    return true;
}

}  // namespace

/// The last bytes that come through one descriptor.
class Preparation::Pipe final : public Source {
public:
    Pipe(EventLoop& loop, Fd fd, std::string& kept, std::size_t most)
        : loop_(loop), fd_(std::move(fd)), kept_(kept), most_(most) {
        loop_.add(fd_.get(), EPOLLIN, *this);
    }
    ~Pipe() override { stop(); }
    void ready(std::uint32_t) override { read(1); }
    void read(std::size_t rounds) {
        static char buffer[65'536];  // the loop's thread only
        for (std::size_t i = 0; i < rounds && fd_; ++i) {
            const ssize_t n = ::read(fd_.get(), buffer, sizeof(buffer));
            if (n > 0) {
                kept_.append(buffer, static_cast<std::size_t>(n));
                if (kept_.size() > most_) kept_.erase(0, kept_.size() - most_);
            } else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
                stop();
            } else if (errno == EAGAIN) {
                return;
            }
        }
    }
    void stop() {
        if (!fd_) return;
        loop_.remove(fd_.get());
        fd_.reset();
    }

private:
    EventLoop& loop_;
    Fd fd_;
    std::string& kept_;
    const std::size_t most_;
};

bool PrepareRequest::read(const JsonValue& body, PrepareRequest& out) {
    if (body.kind() == JsonValue::Kind::Null) return true;
    for (const JsonValue& word : body["argv"].items()) {
        if (!word.isString() || hasNul(word.text())) return false;
        out.argv.emplace_back(word.text());
    }
    out.input = body["input"].text();
    out.with_code = body["code"].boolean();
    return !out.argv.empty() && !out.argv[0].empty() && out.argv.size() <= kMaxArguments;
}

Preparation::Preparation(EventLoop& loop) : loop_(loop) {}

Preparation::~Preparation() {
    close();
}

void Preparation::close() {
    for (std::unique_ptr<Pipe>* pipe : {&output_, &errors_}) {
        if (*pipe) (*pipe)->stop();
        loop_.bury(std::move(*pipe));
    }
}

const char* Preparation::start(const Settings& settings, const PrepareRequest& request,
                               std::string_view code, SpawnRequest spawn, pid_t& pid) {
    // A file, not a pipe: it is complete at once, however slowly it is read.
    const Fd input(memfd_create("input", MFD_CLOEXEC));
    if (!input || !put(input, request.input) || !put(input, "\n") ||
        (request.with_code && !put(input, code)) || lseek(input.get(), 0, SEEK_SET) != 0) {
        return "no memory for the input of what prepares it";
    }
    spawn.argv = request.argv;
    spawn.input = input.get();
    Spawned spawned;
    if (const char* why = agent::spawn(settings, spawn, spawned)) return why;
    pid = spawned.pid;
    started_ns_ = nowNs();
    output_ = std::make_unique<Pipe>(loop_, std::move(spawned.output), said_, kKeptOutput);
    errors_ = std::make_unique<Pipe>(loop_, std::move(spawned.errors), complaints_, kKeptErrors);
    return nullptr;
}

void Preparation::ended(bool ok) {
    ok_ = ok;
    ended_ns_ = nowNs();
    for (Pipe* pipe : {output_.get(), errors_.get()}) {
        if (pipe != nullptr) pipe->read(kLastRounds);
    }
    close();
}

JsonValue Preparation::told() const {
    JsonValue output(toUtf8(said_));
    JsonValue errors(toUtf8(complaints_));
    if (output.dump().size() > kMaxTold) output = JsonValue("");
    JsonValue told = JsonValue::object();
    told.set("ok", ok_).set("durationMs", (ended_ns_ - started_ns_) / 1'000'000);
    told.set("output", std::move(output)).set("errors", std::move(errors));
    return told;
}

}  // namespace hearth::agent
