#include "tests/bench/program/BenchCalls.h"

namespace hearth::cli {
namespace {

Json claimed(Remote& remote, const std::string& pool) {
    Json body = {{"labels", {{"hearth.dev/bench", "1"}}}};
    if (!pool.empty()) body["pool"] = pool;
    return remote.send("POST", "/v1/workspaces", body).body;
}

}  // namespace

Error wrongAnswer(const std::string& what, const Json& answer) {
    return {ErrorCode::Internal, what + " gave a wrong answer: " + dumpJson(answer).substr(0, 500)};
}

Json benchExecute(Remote& remote, const std::string& target, const Json& body,
                  const std::string& expected, const std::string& interpreter) {
    Json answer = remote.send("POST", target, body).body;
    if (!answer.is_object() || answer.value("status", "") != "ok" ||
        answer.value("exitCode", Json()) != 0 || answer.value("stdout", "") != expected) {
        throw wrongAnswer("an execution", answer);
    }
    if (!interpreter.empty() && answer.value("interpreter", Json()) != interpreter) {
        throw wrongAnswer("an execution that is to run " + interpreter, answer);
    }
    return answer;
}

Json shellWork() {
    return {{"argv", {"sh", "-c", "echo hi"}}};
}

Json commandWork() {
    return {{"command", "echo hi"}};
}

Json echoWork() {
    return {{"argv", {"echo", "hi"}}};
}

Json pythonWork() {
    return {{"code", kPythonCode}, {"language", "python"}};
}

Json coldPythonWork() {
    Json work = pythonWork();
    work["env"] = {{"PYTHONHASHSEED", "1"}};
    return work;
}

Json numpyWork() {
    return {{"code", kNumpyCode}, {"language", "python"}};
}

Json contextWork(const std::string& context) {
    return {{"code", kPythonCode}, {"context", context}};
}

std::string claimSource(const Json& answer) {
    const Json ledger = answer.value("claim", Json());
    return ledger.is_object() ? ledger.value("source", "unknown") : "unknown";
}

BenchWorkspace::BenchWorkspace(Remote& remote, const std::string& pool)
    : BenchWorkspace(remote, claimed(remote, pool)) {}

BenchWorkspace::BenchWorkspace(Remote& remote, Json made)
    : remote_(remote), made_(std::move(made)) {
    const std::string id = made_.is_object() ? made_.value("id", "") : "";
    if (id.empty()) throw wrongAnswer("a claim", made_);
    target_ = "/v1/workspaces/" + id;
}

BenchWorkspace::BenchWorkspace(BenchWorkspace&& other) noexcept
    : remote_(other.remote_),
      made_(std::move(other.made_)),
      target_(std::exchange(other.target_, {})) {}

BenchWorkspace::~BenchWorkspace() {
    if (target_.empty()) return;
    try {
        remote_.send("DELETE", target_);
    } catch (const std::exception&) {
        target_.clear();  // the server is gone, or ends it when it is idle
    }
}

std::string BenchWorkspace::newPythonContext() {
    const Json made = remote_.send("POST", target_ + "/contexts", {{"language", "python"}}).body;
    const std::string id = made.is_object() ? made.value("id", "") : "";
    if (id.empty()) throw wrongAnswer("a new context", made);
    return id;
}

std::uint64_t BenchWorkspace::memoryBytes() {
    const Json usage = remote_.get(target_ + "/usage");
    return usage.is_object() ? usage.value("memoryBytes", std::uint64_t{0}) : 0;
}

}  // namespace hearth::cli
