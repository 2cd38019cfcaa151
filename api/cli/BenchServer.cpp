#include "api/cli/BenchServer.h"

#include <unistd.h>

#include "api/http/Url.h"
#include "base/Clock.h"
#include "base/Error.h"

namespace hearth::cli {
namespace {

constexpr std::chrono::seconds kWarmWait{60};
constexpr useconds_t kWarmPollMicros = 20'000;

std::string content(std::size_t size) {
    std::string bytes(size, '\0');
    std::uint32_t state = 12345;  // any fixed bytes that do not compress to nothing
    for (char& c : bytes) {
        state = state * 1664525U + 1013904223U;
        c = static_cast<char>(state >> 24U);
    }
    return bytes;
}

Error wrong(const std::string& what, const Json& answer) {
    return {ErrorCode::Internal, what + " gave a wrong answer: " + dumpJson(answer).substr(0, 500)};
}

}  // namespace

double timed(const std::function<void()>& work) {
    const SystemClock clock;
    const TimePoint start = clock.now();
    work();
    return toMillis(clock.now() - start);
}

const std::vector<std::string>& benchNames() {
    static const std::vector<std::string> kNames = {"claim",   "shell", "python",
                                                    "context", "file",  "oneshot"};
    return kNames;
}

const std::vector<BenchFile>& benchFiles() {
    static const std::vector<BenchFile> kFiles = {{"1 KiB", "bench-1k", content(1U << 10U)},
                                                  {"1 MiB", "bench-1m", content(1U << 20U)}};
    return kFiles;
}

BenchServer::BenchServer(Remote& remote, const std::string& pool) : remote_(remote), pool_(pool) {
    Json body = {{"labels", {{"hearth.dev/bench", "1"}}}};
    if (!pool.empty()) body["pool"] = pool;
    const Json made = remote_.send("POST", "/v1/workspaces", body).body;
    workspace_ = "/v1/workspaces/" + made.value("id", "");
    pool_ = made.value("pool", pool);
    sandbox_ = made.value("sandboxId", "");
    try {
        execute(workspace_ + "/executions", {{"code", "print(1)"}, {"language", "python"}}, "1\n");
    } catch (const RemoteError& e) {
        has_python_ = false;  // an image without Python is measured by its shell
        if (e.status() >= 500) throw;
    }
}

BenchServer::~BenchServer() {
    try {
        remote_.send("DELETE", workspace_);
    } catch (const std::exception&) {
        workspace_.clear();  // the server is gone, or ends it when idle
    }
}

void BenchServer::waitForWarm() {
    const SystemClock clock;
    const TimePoint end = clock.now() + kWarmWait;
    while (clock.now() < end) {
        const Json pool = remote_.get("/v1/pools/" + api::percentEncode(pool_));
        if (!pool.contains("status") || pool["status"].value("ready", 1) > 0) return;
        ::usleep(kWarmPollMicros);
    }
}

void BenchServer::countClaim(const Json& answer) {
    const bool warm = answer.contains("claim") && answer["claim"].is_object() &&
                      answer["claim"].value("source", "") == "warm";
    ++(warm ? warm_ : cold_);
}

Json BenchServer::execute(const std::string& target, const Json& body,
                          const std::string& expected) {
    Json answer = remote_.send("POST", target, body).body;
    if (answer.value("status", "") != "ok" || answer.value("stdout", "") != expected) {
        throw wrong("an execution", answer);
    }
    if (answer.value("language", Json()).is_string()) {
        ++interpreters_[answer.value("interpreter", "unknown")];
    }
    return answer;
}

void BenchServer::context(const Record& record) {
    if (context_.empty()) {
        const Json body = {{"language", "python"}};
        context_ = remote_.send("POST", workspace_ + "/contexts", body).body.value("id", "");
    }
    const Json body = {{"code", "print(1)"}, {"context", context_}};
    record(Side::Hearth, "context",
           timed([&] { execute(workspace_ + "/executions", body, "1\n"); }));
}

void BenchServer::claim(const Record& record) {
    Json body = {{"pool", pool_}};
    Json made;
    record(Side::Hearth, "claim",
           timed([&] { made = remote_.send("POST", "/v1/workspaces", body).body; }));
    const std::string id = made.value("id", "");
    if (id.empty() || made.value("phase", "") != "Active") throw wrong("a claim", made);
    countClaim(made);
    record(Side::Hearth, "close", timed([&] { remote_.send("DELETE", "/v1/workspaces/" + id); }));
}

void BenchServer::oneShot(const Record& record) {
    Json body = has_python_ ? Json{{"code", "print(1)"}, {"language", "python"}}
                            : Json{{"argv", {"sh", "-c", "echo 1"}}};
    body["pool"] = pool_;
    Json answer;
    record(Side::Hearth, "one shot",
           timed([&] { answer = execute("/v1/executions", body, "1\n"); }));
    countClaim(answer);
}

void BenchServer::files(const Record& record) {
    for (const BenchFile& file : benchFiles()) {
        const std::string target = workspace_ + "/files/" + file.name;
        record(Side::Hearth, "write " + file.series,
               timed([&] { remote_.raw("PUT", target, file.bytes); }));
        std::string back;
        record(Side::Hearth, "read " + file.series,
               timed([&] { back = remote_.raw("GET", target); }));
        if (back != file.bytes) throw wrong("a file", Json(back.size()));
    }
}

std::vector<BenchOperation> BenchServer::operations(const std::set<std::string>& names) {
    std::vector<BenchOperation> all;
    if (names.contains("claim")) {
        all.push_back({[this] { waitForWarm(); }, [this](const Record& r) { claim(r); }});
    }
    if (names.contains("shell")) {
        all.push_back({{}, [this](const Record& record) {
                           record(Side::Hearth, "shell", timed([this] {
                                      execute(workspace_ + "/executions",
                                              {{"argv", {"sh", "-c", "echo hi"}}}, "hi\n");
                                  }));
                       }});
    }
    if (names.contains("python") && has_python_) {
        all.push_back({{}, [this](const Record& record) {
                           record(Side::Hearth, "python", timed([this] {
                                      execute(workspace_ + "/executions",
                                              {{"code", "print(1)"}, {"language", "python"}},
                                              "1\n");
                                  }));
                       }});
    }
    if (names.contains("context") && has_python_) {
        all.push_back({{}, [this](const Record& r) { context(r); }});
    }
    if (names.contains("file")) {
        all.push_back({{}, [this](const Record& r) { files(r); }});
    }
    if (names.contains("oneshot")) {
        all.push_back({[this] { waitForWarm(); }, [this](const Record& r) { oneShot(r); }});
    }
    return all;
}

}  // namespace hearth::cli
