#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "pool/agent/client/AgentClient.h"
#include "tests/fake/runtime/FakeRuntime.h"
#include "tests/unit/pool/agent/client/Peer.h"

namespace hearth::pool::test {

using agent::AgentClient;
using agent::AgentError;
using agent::AgentLost;
using agent::BindRequest;
using agent::ExecRequest;
using agent::Poller;
using agent::test::eventually;
using agent::test::Recorder;

inline BindRequest claim(const std::string& id, std::uint64_t epoch = 1) {
    BindRequest request;
    request.epoch = epoch;
    request.claim_id = id;
    request.tenant = "t";
    request.workspace_id = "ws_" + id;
    request.fingerprint = "fp";
    request.labels = {{"team", "a"}};
    request.note["pool"] = "python";
    return request;
}

inline ExecRequest command(const std::string& id, const std::string& line) {
    ExecRequest request;
    request.id = id;
    request.fingerprint = line;
    request.command = line;
    return request;
}

/// Returns the code of the AgentError that `call` throws; empty if it throws none.
inline std::string agentCodeOf(const std::function<void()>& call) {
    try {
        call();
    } catch (const AgentError& e) {
        return e.code();
    }
    return "";
}

/// A runtime with one sandbox and a client of its agent.
struct House {
    House() { runtime.create("sb", SandboxSpec{}); }
    std::unique_ptr<AgentClient> client(
        std::uint64_t epoch = 1, std::chrono::milliseconds timeout = std::chrono::seconds(5)) {
        return std::make_unique<AgentClient>(
            poller, [this] { return runtime.connect("sb"); }, epoch, timeout,
            [this](const AgentLost&) { ++lost; });
    }
    std::unique_ptr<AgentClient> bound() {
        auto made = client();
        made->bind(claim("c"), std::chrono::seconds(5));
        return made;
    }
    /// Runs a command to its end, reading on this thread.
    static std::shared_ptr<Recorder> run(AgentClient& agent, const ExecRequest& request) {
        auto sink = std::make_shared<Recorder>();
        agent.exec(request, sink);
        agent.drive([&] { return sink->done(); }, std::chrono::seconds(20));
        return sink;
    }

    ManualClock clock;
    FakeRuntime runtime{clock};
    Poller poller;
    std::atomic<int> lost{0};
};

}  // namespace hearth::pool::test
