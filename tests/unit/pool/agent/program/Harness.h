#pragma once

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/Fd.h"
#include "base/Json.h"
#include "pool/agent/protocol/Frame.h"

/// The real agent outside a sandbox, and a client that writes the protocol's bytes itself.
namespace hearth::agent::program {

struct Frame {
    FrameHeader header;
    std::string payload;
};

/// Everything that one stream brought.
struct Outcome {
    bool ok = false;
    Json body;
    Json note;
    std::string out;
    std::string err;
    std::vector<std::pair<std::uint64_t, std::string>> pieces;  ///< of executions, by offset
    std::uint64_t gap = 0;
    std::string results;  ///< channel 3, as it came
    /// Returns the results that the code showed.
    std::vector<Json> shown() const {
        std::vector<Json> all;
        for (std::size_t at = 0; at + 4 <= results.size();) {
            const auto size = getU32(reinterpret_cast<const unsigned char*>(results.data()) + at);
            all.push_back(parseJson(results.substr(at + 4, size)));
            at += 4 + size;
        }
        return all;
    }
    Json result() const { return body.value("result", Json::object()); }
    std::string code() const { return ok ? "" : body.value("code", ""); }
};

class Client {
public:
    explicit Client(const std::string& path) {
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        path.copy(address.sun_path, sizeof(address.sun_path) - 1);
        socket_ = Fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
        if (connect(socket_.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) {
            throw std::runtime_error("no agent");
        }
    }
    explicit Client(Fd socket) : socket_(std::move(socket)) {}

    void raw(const std::string& bytes) {
        std::size_t at = 0;
        while (at < bytes.size()) {
            const ssize_t n =
                ::send(socket_.get(), bytes.data() + at, bytes.size() - at, MSG_NOSIGNAL);
            if (n <= 0) return;
            at += static_cast<std::size_t>(n);
        }
    }
    void send(FrameType type, std::uint32_t stream, const std::string& payload,
              Channel channel = Channel::Bytes) {
        unsigned char header[kHeaderSize];
        encodeHeader({static_cast<std::uint32_t>(payload.size()), stream, type, channel}, header);
        raw(std::string(reinterpret_cast<char*>(header), kHeaderSize) + payload);
    }
    void credit(std::uint32_t stream, std::uint32_t bytes) {
        unsigned char payload[4];
        putU32(payload, bytes);
        send(FrameType::Credit, stream, std::string(reinterpret_cast<char*>(payload), 4));
    }
    std::uint32_t request(const Json& body) {
        send(FrameType::Request, ++stream_, body.dump());
        return stream_;
    }

    /// Returns false if the agent closed the connection. Throws if nothing comes for `seconds`.
    bool next(Frame& frame, int seconds = 20) {
        std::string header;
        if (!read(header, kHeaderSize, seconds)) return false;
        if (!decodeHeader(reinterpret_cast<const unsigned char*>(header.data()), frame.header)) {
            throw std::runtime_error("malformed frame");
        }
        return read(frame.payload, frame.header.length, seconds);
    }

    /// Reads until the stream ends, and gives credit meanwhile. Frames of other streams are kept.
    Outcome finish(std::uint32_t stream) {
        Frame frame;
        while (!done_.count(stream)) {
            if (!next(frame)) throw std::runtime_error("connection closed");
            take(frame);
        }
        Outcome outcome = std::move(open_[stream]);
        open_.erase(stream);
        done_.erase(stream);
        return outcome;
    }
    /// Reads until `text` has appeared in the output of the stream.
    void await(std::uint32_t stream, const std::string& text) {
        Frame frame;
        while (open_[stream].out.find(text) == std::string::npos && !done_.count(stream)) {
            if (!next(frame)) throw std::runtime_error("connection closed");
            take(frame);
        }
    }
    void awaitNote(std::uint32_t stream) {
        Frame frame;
        while (open_[stream].note.is_null() && !done_.count(stream)) {
            if (!next(frame)) throw std::runtime_error("connection closed");
            take(frame);
        }
    }
    Outcome ask(const Json& body) { return finish(request(body)); }
    std::map<std::uint32_t, std::uint64_t> credits;  ///< granted by the agent

private:
    void take(const Frame& frame) {
        const std::uint32_t stream = frame.header.stream;
        Outcome& o = open_[stream];
        switch (frame.header.type) {
            case FrameType::Data: {
                std::string bytes = frame.payload;
                if (frame.header.channel == Channel::Results) {
                    o.results += bytes.substr(kOffsetSize);
                    credit(stream, static_cast<std::uint32_t>(bytes.size() - kOffsetSize));
                    return;
                }
                if (frame.header.channel != Channel::Bytes) {
                    const auto offset =
                        getU64(reinterpret_cast<const unsigned char*>(bytes.data()));
                    bytes.erase(0, kOffsetSize);
                    const std::uint64_t expected =
                        o.pieces.empty() ? offset
                                         : o.pieces.back().first + o.pieces.back().second.size();
                    o.gap += offset - expected;
                    o.pieces.emplace_back(offset, bytes);
                }
                (frame.header.channel == Channel::Stderr ? o.err : o.out) += bytes;
                credit(stream, static_cast<std::uint32_t>(bytes.size()));
                return;
            }
            case FrameType::Note:
                o.note.update(parseJson(frame.payload));
                return;
            case FrameType::Credit:
                credits[stream] +=
                    getU32(reinterpret_cast<const unsigned char*>(frame.payload.data()));
                return;
            case FrameType::Reply:
            case FrameType::Error:
                o.ok = frame.header.type == FrameType::Reply;
                o.body = parseJson(frame.payload);
                done_[stream] = true;
                return;
            default:
                return;
        }
    }
    bool read(std::string& out, std::size_t length, int seconds) {
        out.resize(length);
        std::size_t at = 0;
        while (at < length) {
            pollfd p{socket_.get(), POLLIN, 0};
            if (poll(&p, 1, seconds * 1000) <= 0) throw std::runtime_error("the agent is silent");
            const ssize_t n = recv(socket_.get(), out.data() + at, length - at, 0);
            if (n <= 0) return false;
            at += static_cast<std::size_t>(n);
        }
        return true;
    }

    Fd socket_;
    std::uint32_t stream_ = 0;
    std::map<std::uint32_t, Outcome> open_;
    std::map<std::uint32_t, bool> done_;
};

inline Fd listenAt(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof(address.sun_path) - 1);
    Fd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0 ||
        listen(fd.get(), 64) != 0) {
        throw std::runtime_error("cannot listen");
    }
    return fd;
}

/// An agent process with a workspace of its own. Its end kills everything that it started.
class AgentProcess {
public:
    /// The agent serves on `listener`, or on socket() without one. `words`: further arguments.
    explicit AgentProcess(std::vector<std::string> environment = {},
                          const std::string& program = HEARTH_AGENT_PATH,
                          std::vector<std::string> words = {}, Fd listener = {}) {
        char name[] = "/tmp/hearth-agent-test-XXXXXX";
        base_ = mkdtemp(name);
        std::filesystem::create_directories(base_ + "/root");
        std::filesystem::create_directories(base_ + "/run");
        std::ofstream(base_ + "/languages.json")
            << R"({"shell":{"file":"main.sh","run":["sh","{file}"]},)"
            << R"("silent":{"file":"main.sh","run":["sh","{file}"],"channel":false},)"
            << R"("built":{"file":"it's.in","compile":["cp","{file}","{file}.out"],"run":["sh","{file}.out"]},)"
            << R"("python":{"file":"main.py","run":["python3","-B",")" << drivers()
            << R"(/python/run.py","{file}"],"zygote":["python3","-B",")" << drivers()
            << R"(/python/zygote.py"],"context":["python3","-B",")" << drivers()
            << R"(/python/context.py"]}})";
        std::filesystem::copy(HEARTH_DRIVERS_PATH, drivers(),
                              std::filesystem::copy_options::recursive);
        chmod(base_.c_str(), 0755);
        chmod((base_ + "/run").c_str(), 0755);
        const bool root = geteuid() == 0;
        if (root && chown((base_ + "/root").c_str(), 1000, 1000) != 0)
            throw std::runtime_error("chown");
        environment.insert(environment.end(),
                           {"HEARTH_AGENT_UNCONFINED=1", "HEARTH_AGENT_ROOT=" + base_ + "/root",
                            "HEARTH_AGENT_RUN=" + base_ + "/run",
                            "HEARTH_AGENT_LANGUAGES=" + base_ + "/languages.json",
                            "HEARTH_SANDBOX=sb_test", "HEARTH_CPUS=3"});
        if (!root) environment.emplace_back("HEARTH_AGENT_KEEP_IDENTITY=1");
        std::vector<char*> env;
        for (std::string& e : environment) env.push_back(e.data());
        env.push_back(nullptr);
        // Like the server's: the listening socket exists before the agent does.
        const Fd listening = listener ? std::move(listener) : listenAt(socket());
        words.insert(words.begin(), "hearth-agent");
        std::vector<char*> argv;
        for (std::string& word : words) argv.push_back(word.data());
        argv.push_back(nullptr);
        pid_ = fork();
        if (pid_ == 0) {
            if (listening.get() == kListenFd) {
                fcntl(kListenFd, F_SETFD, 0);
            } else {
                dup2(listening.get(), kListenFd);
            }
            execve(program.c_str(), argv.data(), env.data());
            _exit(1);
        }
    }
    AgentProcess(const AgentProcess&) = delete;
    AgentProcess& operator=(const AgentProcess&) = delete;
    ~AgentProcess() {
        if (pid_ > 0) {
            kill(pid_, SIGTERM);  // the agent kills what it started
            waitpid(pid_, nullptr, 0);
        }
        std::error_code ignored;
        std::filesystem::remove_all(base_, ignored);
    }

    std::string socket() const { return base_ + "/agent.sock"; }
    std::string root() const { return base_ + "/root"; }
    std::string drivers() const { return base_ + "/drivers"; }
    std::string run() const { return base_ + "/run"; }
    pid_t pid() const { return pid_; }
    /// Waits for the agent's end. Returns its exit status, or -1 if it lives on.
    int waitForEnd(std::chrono::milliseconds limit) {
        const Fd ended(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)));
        pollfd wait{ended.get(), POLLIN, 0};
        if (::poll(&wait, 1, static_cast<int>(limit.count())) == 0) return -1;
        int status = 0;
        waitpid(pid_, &status, 0);
        pid_ = -1;
        return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
    }
    long rssKib() const {
        std::ifstream status("/proc/" + std::to_string(pid_) + "/status");
        for (std::string line; std::getline(status, line);) {
            if (line.rfind("VmRSS:", 0) == 0) return std::strtol(line.c_str() + 6, nullptr, 10);
        }
        return -1;
    }
    bool alive() const { return kill(pid_, 0) == 0; }

private:
    std::string base_;
    pid_t pid_ = -1;
};

inline Json hello(int epoch = 1) {
    return {{"op", "hello"}, {"protocol", 1}, {"kind", "control"}, {"epoch", epoch}};
}
inline Json withClaim(const std::string& claim) {
    return {{"op", "hello"}, {"protocol", 1}, {"kind", "data"}, {"epoch", 1}, {"claimId", claim}};
}
inline Json bindRequest(const std::string& claim = "c1", int epoch = 1) {
    return {{"op", "bind"},
            {"protocol", 1},
            {"epoch", epoch},
            {"claimId", claim},
            {"attempt", 1},
            {"tenant", "t"},
            {"workspaceId", "ws_1"},
            {"fingerprint", "fp"},
            {"labels", {{"k", "v"}}},
            {"note", {{"name", "n"}}},
            {"env", {{"A", "1"}, {"B", "1"}}},
            {"secrets", {{"S", "hush"}}},
            {"deadlines", {{"expiresAtNs", 0}, {"idleTimeoutMs", 0}}}};
}
inline Json exec(const std::string& id, const std::string& command) {
    return {{"op", "exec"},   {"id", id},           {"fingerprint", "f"},   {"command", command},
            {"stdin", false}, {"timeoutMs", 20000}, {"outputLimit", 65536}, {"background", false}};
}

/// A bound agent with a control connection.
struct Bound {
    explicit Bound(std::vector<std::string> environment = {})
        : agent(std::move(environment)), client(agent.socket()) {
        if (!client.ask(hello()).ok || !client.ask(bindRequest()).ok)
            throw std::runtime_error("bind");
    }
    AgentProcess agent;
    Client client;
};

}  // namespace hearth::agent::program
