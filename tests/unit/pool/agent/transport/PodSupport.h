#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "pool/agent/client/AgentClient.h"
#include "pool/agent/transport/TcpDialer.h"
#include "tests/unit/pool/agent/program/Harness.h"

/// The real agent on loopback TCP, as it runs in a Pod, and its peers.
namespace hearth::agent::pod {

using program::AgentProcess;

inline constexpr std::string_view kUid = "0f0e4c6a-2b1d-4a52-9d63-1c6a8a3a7b90";
inline constexpr std::chrono::seconds kPatience{20};

/// A folder for one test.
struct Folder {
    Folder() {
        char name[] = "/tmp/hearth-pod-test-XXXXXX";
        path = mkdtemp(name);
    }
    Folder(const Folder&) = delete;
    Folder& operator=(const Folder&) = delete;
    ~Folder() { std::filesystem::remove_all(path); }
    std::string path;
};

inline Fd tcpSocket() {
    Fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (!fd) throw std::runtime_error("socket");
    return fd;
}

inline sockaddr_in loopback(std::uint16_t port, std::uint32_t last = 1) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK - 1 + last);
    return address;
}

inline Fd listenOnLoopback() {
    Fd fd = tcpSocket();
    const sockaddr_in address = loopback(0);
    if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 ||
        ::listen(fd.get(), 512) != 0) {
        throw std::runtime_error("listen");
    }
    return fd;
}

inline std::uint16_t portOf(const Fd& fd) {
    sockaddr_in address{};
    socklen_t size = sizeof(address);
    if (::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) {
        throw std::runtime_error("getsockname");
    }
    return ntohs(address.sin_port);
}

/// Connects from 127.0.0.`own`. Returns nullopt if nobody listens there.
inline std::optional<Fd> connectTo(std::uint16_t port, std::uint32_t own = 1) {
    Fd fd = tcpSocket();
    const sockaddr_in source = loopback(0, own);
    if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&source), sizeof(source)) != 0) {
        throw std::runtime_error("bind");
    }
    const sockaddr_in address = loopback(port);
    if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
        return std::nullopt;
    }
    return fd;
}

/// Runs the program to its end. Returns its exit status.
inline int runAgent(std::vector<std::string> words, Fd listener = {}) {
    return AgentProcess({}, HEARTH_AGENT_PATH, std::move(words), std::move(listener))
        .waitForEnd(kPatience);
}

/// One Pod: its init container has run, its agent serves on a port of loopback.
struct Pod {
    explicit Pod(std::vector<std::string> environment = {})
        : ready(secure::initialise()), key(secure::ServerKey::generate()) {
        const std::string secret = folder.path + "/identity";
        const std::string told = folder.path + "/termination-log";
        if (!ready || runAgent({"--make-identity", secret, told}) != 0) {
            throw std::runtime_error("no identity");
        }
        std::string text;
        std::ifstream(told) >> text;
        identity = secure::AgentPublicKey::parse(text).value();
        Fd listener = listenOnLoopback();
        port = portOf(listener);
        agent.emplace(std::move(environment), HEARTH_AGENT_PATH, arguments(), std::move(listener));
    }

    std::vector<std::string> arguments() const {
        return {"--server-key",    key.publicKey().text(), "--pod",
                std::string(kUid), "--identity",           folder.path + "/identity"};
    }
    PodAgent at() const { return {"127.0.0.1", port, std::string(kUid), identity}; }
    TcpDialer dialer() const { return {key, at(), kPatience}; }
    std::unique_ptr<AgentClient> client(const AgentDialer& dialer_of_test) {
        return std::make_unique<AgentClient>(poller, dialer_of_test, 1, kPatience,
                                             [this](const AgentLost& loss) {
                                                 broken = loss.loss() == Loss::Broken;
                                                 why = loss.what();
                                                 ++lost;
                                             });
    }
    std::unique_ptr<AgentClient> client() { return client(dialer()); }

    Folder folder;
    bool ready;
    secure::ServerKey key;
    secure::AgentPublicKey identity;
    std::uint16_t port = 0;
    std::optional<AgentProcess> agent;
    std::atomic<int> lost{0};
    std::atomic<bool> broken{false};
    std::string why;  ///< set before `lost`
    Poller poller;
};

inline BindRequest bindAs(const std::string& claim) {
    BindRequest request;
    request.epoch = 1;
    request.claim_id = claim;
    request.tenant = "t";
    request.workspace_id = "ws_1";
    request.fingerprint = "fp";
    request.env = {{"A", "1"}};
    request.secrets = {{"S", "hush"}};
    return request;
}

/// The output and the exit code of an execution.
class Ears final : public ExecSink {
public:
    void started(const ExecStart&) override {}
    void output(int channel, std::uint64_t, std::string_view bytes) override {
        (channel == 1 ? out : err).append(bytes);
        heard = out.size() + err.size();
    }
    void exited(const ExecResult& result) override {
        exit_code = result.exit_code;
        done = true;
    }
    void lost(const std::optional<AgentError>&) override { done = true; }

    std::string out;
    std::string err;
    int exit_code = -1;
    std::atomic<std::size_t> heard{0};
    std::atomic<bool> done{false};
};

/// Runs a command to its end. Returns its output.
inline std::shared_ptr<Ears> run(AgentClient& client, const std::string& id,
                                 const std::string& command) {
    const auto ears = std::make_shared<Ears>();
    ExecRequest request;
    request.id = id;
    request.command = command;
    request.output_limit = 16U << 20U;
    const auto handle = client.exec(request, ears);
    client.drive([&] { return ears->done.load(); }, kPatience);
    return ears;
}

}  // namespace hearth::agent::pod
