#include "tests/bench/program/BenchServer.h"

#include <algorithm>

#include "base/Clock.h"
#include "base/Error.h"

namespace hearth::cli {
namespace {

std::string content(std::size_t size) {
    std::string bytes(size, '\0');
    std::uint32_t state = 12345;  // any fixed bytes that do not compress away
    for (char& c : bytes) {
        state = state * 1664525U + 1013904223U;
        c = static_cast<char>(state >> 24U);
    }
    return bytes;
}

bool keepsWarm(const Json& pool) {
    return pool.at("spec").value("warm", Json::object()).value("min", 0) > 0;
}

}  // namespace

double timed(const std::function<void()>& work) {
    const SystemClock clock;
    const TimePoint start = clock.now();
    work();
    return toMillis(clock.now() - start);
}

const std::vector<BenchFile>& benchFiles() {
    static const std::vector<BenchFile> files = {{"1 KiB", "bench-1k", content(1U << 10U)},
                                                 {"1 MiB", "bench-1m", content(1U << 20U)}};
    return files;
}

BenchServer::BenchServer(Remote& remote, const std::string& pool)
    : remote_(remote),
      workspace_(remote, pool),
      pool_(workspace_.made().value("pool", pool)),
      sandbox_(workspace_.made().value("sandboxId", "")),
      keeps_warm_(keepsWarm(poolManifest(remote_, pool_))),
      memory_bytes_(workspace_.memoryBytes()) {
    try {
        const Json answer = remote_.send("POST", workspace_.executions(), pythonWork()).body;
        // A fake sandbox prints another output. Without Python, the status shows it.
        has_python_ = answer.value("stdout", "") == kPythonPrints;
    } catch (const RemoteError& e) {
        has_python_ = false;  // an image without Python is measured by its shell
        if (e.status() >= 500) throw;
    }
}

std::string BenchServer::prepareNumpy() {
    if (!has_python_) return "pool " + pool_ + " has no Python";
    try {
        numpy_pool_ = std::make_unique<BenchPool>(
            remote_, poolManifest(remote_, pool_),
            BenchPool::Shape{
                .warm = 1,
                .members = 2,
                .template_patch =
                    R"({"prewarm":{"languages":["python"],"imports":["numpy"],"timeout":"2m"}})"});
    } catch (const RemoteError& e) {
        if (e.status() != 403) throw;
        return "a pool with numpy can only be made with an operator's token";
    }
    numpy_pool_->waitUntilWarm();
    if (!numpy_pool_->prewarmed()) {
        numpy_pool_.reset();
        return "the image of pool " + pool_ + " has no numpy";
    }
    numpy_ = std::make_unique<BenchWorkspace>(remote_, numpy_pool_->name());
    return {};
}

std::string BenchServer::prepareShells() {
    const Json like = poolManifest(remote_, pool_);
    const Json wanted = like["spec"]["template"].value("prewarm", Json::object());
    Json languages = wanted.value("languages", Json::array());
    if (std::ranges::find(languages, Json("sh")) != languages.end()) {
        parked_ = workspace_.executions();
    } else {
        languages.push_back("sh");
        const Json patch = {{"prewarm", {{"languages", languages}, {"timeout", "2m"}}}};
        try {
            shell_pool_ = std::make_unique<BenchPool>(
                remote_, like,
                BenchPool::Shape{.warm = 1, .members = 2, .template_patch = dumpJson(patch)});
        } catch (const RemoteError& e) {
            if (e.status() != 403) throw;
            return "a pool with parked shells can only be made with an operator's token";
        }
        shell_pool_->waitUntilWarm();
        shells_ = std::make_unique<BenchWorkspace>(remote_, shell_pool_->name());
        parked_ = shells_->executions();
    }
    const Json tried = remote_.send("POST", parked_, commandWork()).body;
    if (tried.value("interpreter", Json()) == "parked") return {};
    parked_.clear();
    shells_.reset();
    shell_pool_.reset();
    return "no shell can be parked in the image of pool " + pool_;
}

void BenchServer::run(const Record& record, const std::string& series, const std::string& target,
                      const Json& work, const std::string& expected,
                      const std::string& interpreter) {
    Json answer;
    record(Side::Hearth, series,
           timed([&] { answer = benchExecute(remote_, target, work, expected, interpreter); }));
    if (answer.value("interpreter", Json()).is_string()) {
        ++interpreters_[series][answer.value("interpreter", "")];
    }
}

void BenchServer::context(const Record& record) {
    if (context_.empty()) context_ = workspace_.newPythonContext();
    run(record, "context", workspace_.executions(), contextWork(context_), kPythonPrints,
        "context");
}

void BenchServer::waitUntilWarm() {
    if (keeps_warm_) waitUntilReady(remote_, pool_, 1);
}

void BenchServer::claim(const Record& record) {
    Json made;
    record(Side::Hearth, "claim", timed([&] {
               made = remote_.send("POST", "/v1/workspaces", {{"pool", pool_}}).body;
           }));
    const std::string id = made.value("id", "");
    if (id.empty() || made.value("phase", "") != "Active") throw wrongAnswer("a claim", made);
    ++claims_[claimSource(made)];
    record(Side::Hearth, "close", timed([&] { remote_.send("DELETE", "/v1/workspaces/" + id); }));
}

void BenchServer::oneShot(const Record& record) {
    Json work = has_python_ ? pythonWork() : shellWork();
    work["pool"] = pool_;
    Json answer;
    record(Side::Hearth, "one shot", timed([&] {
               answer = benchExecute(remote_, "/v1/executions", work,
                                     has_python_ ? kPythonPrints : kShellPrints);
           }));
    ++claims_[claimSource(answer)];
    if (has_python_) ++interpreters_["one shot"][answer.value("interpreter", "unknown")];
}

void BenchServer::files(const Record& record) {
    for (const BenchFile& file : benchFiles()) {
        const std::string target = workspace_.target() + "/files/" + file.name;
        record(Side::Hearth, "write " + file.series,
               timed([&] { remote_.raw("PUT", target, file.bytes); }));
        std::string back;
        record(Side::Hearth, "read " + file.series,
               timed([&] { back = remote_.raw("GET", target); }));
        if (back != file.bytes) throw wrongAnswer("a file", Json(back.size()));
    }
}

std::vector<BenchOperation> BenchServer::operations(const std::set<std::string>& names) {
    std::vector<BenchOperation> all;
    const auto add = [&](const char* name, bool possible, std::function<void(const Record&)> run) {
        if (possible && names.contains(name)) all.push_back({{}, std::move(run)});
    };
    const std::function<void()> warm = [this] { waitUntilWarm(); };
    const std::string here = workspace_.executions();
    add("noop", true, [this](const Record& record) {
        record(Side::Hearth, "no-op", timed([&] { remote_.get(workspace_.target()); }));
    });
    if (names.contains("claim")) all.push_back({warm, [this](const Record& r) { claim(r); }});
    add("shell", true,
        [this, here](const Record& r) { run(r, "shell", here, shellWork(), kShellPrints); });
    add("parked", !parked_.empty(),
        [this](const Record& r) { run(r, "shell parked", parked_, commandWork(), kShellPrints); });
    add("python", has_python_,
        [this, here](const Record& r) { run(r, "python", here, pythonWork(), kPythonPrints); });
    add("numpy", numpy_ != nullptr, [this](const Record& r) {
        run(r, "numpy", numpy_->executions(), numpyWork(), kNumpyPrints);
    });
    add("context", has_python_, [this](const Record& r) { context(r); });
    add("cold", has_python_, [this, here](const Record& r) {
        run(r, "python cold", here, coldPythonWork(), kPythonPrints, "cold");
    });
    add("file", true, [this](const Record& r) { files(r); });
    if (names.contains("oneshot")) all.push_back({warm, [this](const Record& r) { oneShot(r); }});
    return all;
}

}  // namespace hearth::cli
