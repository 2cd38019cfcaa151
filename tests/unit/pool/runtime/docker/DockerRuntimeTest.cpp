#include <sys/socket.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/Error.h"
#include "base/Ids.h"
#include "pool/runtime/docker/DockerRuntime.h"
#include "pool/sys/Files.h"
#include "tests/unit/pool/runtime/docker/FakeEngine.h"

using namespace hearth;
using namespace hearth::docker_test;
namespace fs = std::filesystem;

namespace {

constexpr const char* kImage = R"({"Id":"sha256:5","Config":{"Volumes":{"/data":{}}}})";

/// A runtime on a fake Engine, with its own directories. The machine answers the requests that
/// every Engine gets, and `reply` answers the others.
class Machine {
public:
    explicit Machine(FakeEngine::Reply reply)
        : reply_(std::move(reply)), engine_([this](const Seen& seen) { return answerTo(seen); }) {
        std::string name = (fs::temp_directory_path() / "machine-XXXXXX").string();
        if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp");
        root_ = name;
        instance_ = {.name = "0123456789ab", .data_dir = root_ + "/d", .run_dir = root_ + "/r"};
        for (const std::string& path : pool::DockerRuntime::directories(instance_)) {
            fs::create_directories(path);
        }
        std::ofstream(root_ + "/agent") << "program";
        fs::create_directory(root_ + "/hearth-drivers");
        std::ofstream(root_ + "/hearth-drivers/driver.sh") << "driver";
        runtime_ = std::make_unique<pool::DockerRuntime>(
            instance_, std::make_unique<pool::docker::EngineClient>(engine_.address()),
            root_ + "/agent", pool::docker::AgentMode::Bind);
    }
    ~Machine() {
        runtime_.reset();
        std::error_code error;
        fs::remove_all(root_, error);
    }
    Machine(const Machine&) = delete;
    Machine& operator=(const Machine&) = delete;

    pool::DockerRuntime& runtime() { return *runtime_; }
    /// Returns the requests of a method, without the version.
    std::vector<std::string> asked(const std::string& method) {
        std::vector<std::string> targets;
        for (const Seen& seen : engine_.seen()) {
            if (seen.method == method) targets.push_back(seen.target.substr(6));
        }
        return targets;
    }
    std::vector<std::string> files() const {
        std::vector<std::string> all = sys::listDirectory(instance_.run_dir + "/sockets");
        for (const std::string& name : sys::listDirectory(instance_.run_dir + "/start")) {
            all.push_back(name);
        }
        return all;
    }
    std::string start(const std::string& id) const {
        return instance_.run_dir + "/start/" + id + "/socket";
    }
    void leave(const std::string& id) const {
        std::ofstream(instance_.run_dir + "/sockets/" + id + ".sock") << "";
    }

private:
    std::string answerTo(const Seen& seen) {
        if (seen.target == "/_ping") return pong();
        if (seen.target == "/v1.41/info") {
            return answer(200, R"({"ServerVersion":"20.10","CgroupVersion":"2",
                "SecurityOptions":["name=seccomp,profile=default","name=userns"],
                "RuncCommit":{"ID":"v1.1.5-0-gabc"}})");
        }
        if (seen.target.starts_with("/v1.41/images/sha") || seen.target.find("any") < 30) {
            return answer(200, kImage);
        }
        return reply_(seen);
    }

    FakeEngine::Reply reply_;
    FakeEngine engine_;
    std::string root_;
    Instance instance_;
    std::unique_ptr<pool::DockerRuntime> runtime_;
};

pool::SandboxSpec spec() {
    pool::SandboxSpec spec;
    spec.image = "any:1";
    spec.labels = {{"pool", "p"}};
    return spec;
}

std::string container(const std::string& id) {
    return "hearth-0123456789ab-" + id.substr(3);
}

}  // namespace

TEST_CASE("a container that does not start is removed, and no file stays", "[unit][docker]") {
    Machine machine([](const Seen& seen) {
        if (seen.target.ends_with("/start")) return refusal(500, "exec format error");
        if (seen.method == "DELETE") return answer(204, "");
        return answer(201, R"({"Id":"1"})");
    });
    const std::string id = newId("sb_");
    CHECK_THROWS_AS(machine.runtime().create(id, spec()), std::runtime_error);
    CHECK(machine.asked("POST") ==
          std::vector<std::string>{"/containers/create?name=" + container(id),
                                   "/containers/" + container(id) + "/start"});
    CHECK(machine.asked("DELETE") ==
          std::vector<std::string>{"/containers/" + container(id) + "?force=1&v=1"});
    CHECK(machine.files().empty());
}

TEST_CASE("a missing GPU driver is reported with what to install, and nothing stays",
          "[unit][docker]") {
    std::string said =
        R"(could not select device driver "nvidia" with capabilities: [[gpu compute utility]])";
    Machine machine([&](const Seen& seen) {
        if (seen.target.ends_with("/start")) return refusal(500, said);
        if (seen.method == "DELETE") return answer(204, "");
        return answer(201, R"({"Id":"1"})");
    });
    pool::SandboxSpec wanted = spec();
    wanted.gpus = {"GPU-8dcd427f-483b-b48f-d7e5-75fb19a52b76"};
    const auto refused = [&](const std::string& what, const std::string& way_out) {
        try {
            machine.runtime().create(newId("sb_"), wanted);
            FAIL("created");
        } catch (const Error& e) {
            CHECK(e.code() == ErrorCode::Unsupported);
            CHECK(std::string(e.what()).find(what) != std::string::npos);
            CHECK(e.hint().find(way_out) != std::string::npos);
        }
        CHECK(machine.files().empty());
    };
    refused("no driver for NVIDIA's GPUs", "nvidia-container-toolkit");
    said = "nvidia-container-cli: device error: GPU-8dcd427f: unknown device";
    refused("unknown device", "nvidia-smi -L");
    CHECK(machine.asked("DELETE").size() == 2);
}

TEST_CASE("a second create of one name is a conflict and leaves the first alone",
          "[unit][docker]") {
    Machine machine(
        [](const Seen&) { return refusal(409, "name is already in use by container x"); });
    const std::string id = newId("sb_");
    try {
        machine.runtime().create(id, spec());
        FAIL("created twice");
    } catch (const Error& e) {
        CHECK(e.code() == ErrorCode::Conflict);
    }
    CHECK(machine.asked("DELETE").empty());
    CHECK(machine.files().empty());
}

TEST_CASE("an agent whose container ends before the answer is reported with that end",
          "[unit][docker]") {
    Machine machine([](const Seen& seen) {
        if (seen.method == "DELETE") return answer(204, "");
        if (seen.method == "POST") return answer(201, R"({"Id":"1"})");
        return answer(200, R"({"Id":"1","State":{"Status":"exited","ExitCode":2,"Error":""}})");
    });
    try {
        machine.runtime().create(newId("sb_"), spec());
        FAIL("created");
    } catch (const std::exception& e) {
        CHECK(std::string(e.what()).find("exited, code 2") != std::string::npos);
    }
    CHECK(machine.asked("DELETE").size() == 1);
    CHECK(machine.files().empty());
}

TEST_CASE("destroy may be repeated and waits for a removal that is under way", "[unit][docker]") {
    bool removing = true;
    Machine machine([&](const Seen& seen) {
        if (seen.method == "POST") {
            removing = false;
            return answer(200, R"({"StatusCode":137})");
        }
        return removing ? refusal(409, "removal of container x is already in progress")
                        : refusal(404, "No such container");
    });
    const std::string id = newId("sb_");
    machine.leave(id);
    machine.runtime().destroy(id);
    CHECK(machine.asked("DELETE").size() == 2);
    REQUIRE(machine.asked("POST").size() == 1);
    CHECK(machine.asked("POST")[0].find("/wait?condition=removed") != std::string::npos);
    CHECK(machine.files().empty());
    machine.runtime().destroy(id);
    CHECK_THROWS_AS(machine.runtime().destroy("../x"), Error);
}

TEST_CASE("a list has containers with their labels, and leftovers without a container",
          "[unit][docker]") {
    const std::string id = newId("sb_");
    const std::string piece = newId("sb_");
    Machine machine([&](const Seen&) {
        const Json labels{{"dev.hearth.instance", "0123456789ab"},
                          {"dev.hearth.sandbox", id},
                          {"dev.hearth.created", "1700000000000"},
                          {"dev.hearth.label.pool", "p"}};
        return answer(200, dumpJson(Json::array(
                               {{{"Id", "1"}, {"State", "running"}, {"Labels", labels}},
                                {{"Id", "2"}, {"State", "running"}, {"Labels", Json::object()}}})));
    });
    machine.leave(piece);
    const std::vector<pool::SandboxInfo> found = machine.runtime().list();
    REQUIRE(found.size() == 2);
    const auto& whole = found[0].id == id ? found[0] : found[1];
    const auto& part = found[0].id == id ? found[1] : found[0];
    CHECK((whole.id == id && whole.alive && whole.created_unix_ms == 1'700'000'000'000));
    CHECK(whole.labels == std::map<std::string, std::string>{{"pool", "p"}});
    CHECK((part.id == piece && !part.alive && part.labels.empty()));
    CHECK(machine.asked("GET").back().find("dev.hearth.instance%3D0123456789ab") !=
          std::string::npos);
}

TEST_CASE("facts come from the daemon's answers", "[unit][docker]") {
    Machine machine([](const Seen&) { return answer(200, R"([{"RepoTags":["alpine:3"]}])"); });
    const pool::RuntimeFacts facts = machine.runtime().facts();
    CHECK((facts.name == "docker" && facts.version == "Docker 20.10" && facts.cgroup == "v2"));
    CHECK((facts.seccomp && facts.user_namespaces));
    CHECK(std::ranges::find(facts.holes, "CVE-2024-21626") != facts.holes.end());
    CHECK(facts.images == std::vector<std::string>{"alpine:3"});
}

namespace {

/// Answers as a remote Engine whose container has 5 processes and 60 MB, 20 of them in files.
std::string narrowing(const Seen& seen, const std::string& update) {
    if (seen.method == "POST") return update;
    if (seen.target.ends_with("/json")) return answer(200, R"({"Id":"1","State":{"Pid":0}})");
    return answer(200, R"({"cpu_stats":{},"pids_stats":{"current":5},"memory_stats":{
        "usage":60000000,"stats":{"active_file":1,"total_active_file":10000000,
        "total_inactive_file":10000000}}})");
}

pool::SandboxLimits limits(std::uint64_t memory, std::uint32_t pids) {
    pool::SandboxLimits limits;
    limits.milli_cpu = 500;
    limits.memory_bytes = memory;
    limits.pids = pids;
    return limits;
}

}  // namespace

TEST_CASE("lower limits of a container are one update call of the Engine", "[unit][docker]") {
    std::string sent;
    Machine machine([&](const Seen& seen) {
        if (seen.method == "POST") sent = seen.body;
        return narrowing(seen, answer(200, R"({"Warnings":null})"));
    });
    const std::string id = newId("sb_");
    CHECK_FALSE(machine.runtime().narrow(id, limits(41'000'000, 6)));
    CHECK(machine.asked("POST") ==
          std::vector<std::string>{"/containers/" + container(id) + "/update"});
    CHECK(parseJson(sent) == Json{{"PidsLimit", 6},
                                  {"Memory", 41'000'000},
                                  {"MemorySwap", 41'000'000},
                                  {"CpuPeriod", 100'000},
                                  {"CpuQuota", 50'000}});
}

TEST_CASE("a limit below a container's use is reported without a call of the Engine",
          "[unit][docker]") {
    Machine machine([](const Seen& seen) { return narrowing(seen, answer(200, "{}")); });
    const std::string id = newId("sb_");
    CHECK(machine.runtime().narrow(id, limits(39'000'000, 6)) ==
          pool::LimitInUse{pool::LimitInUse::Of::Memory, 40'000'000});
    CHECK(machine.runtime().narrow(id, limits(41'000'000, 5)) ==
          pool::LimitInUse{pool::LimitInUse::Of::Processes, 5});
    CHECK(machine.asked("POST").empty());
}

TEST_CASE("a refused update of the Engine is a failure, a missing container is NOT_FOUND",
          "[unit][docker]") {
    Machine refusing([](const Seen& seen) {
        return narrowing(seen, refusal(500, "unable to set memory limit"));
    });
    CHECK_THROWS_AS(refusing.runtime().narrow(newId("sb_"), limits(41'000'000, 6)),
                    std::runtime_error);
    Machine empty([](const Seen&) { return refusal(404, "No such container"); });
    try {
        empty.runtime().narrow(newId("sb_"), limits(41'000'000, 6));
        FAIL("it was narrowed");
    } catch (const Error& e) {
        CHECK(e.code() == ErrorCode::NotFound);
    }
}

TEST_CASE("usage comes from the daemon where the container is on another machine",
          "[unit][docker]") {
    Machine machine([](const Seen& seen) {
        if (seen.target.find("/stats") == std::string::npos) {
            return answer(200, R"({"Id":"abc","State":{"Pid":1}})");
        }
        return answer(200, R"({"cpu_stats":{"cpu_usage":{"total_usage":7}},
            "memory_stats":{"usage":8,"max_usage":9},"pids_stats":{"current":2}})");
    });
    const auto usage = machine.runtime().usage(newId("sb_"));
    REQUIRE(usage);
    CHECK((usage->cpu_ns == 7 && usage->memory_bytes == 8 && usage->memory_peak_bytes == 9));
    CHECK(usage->processes == 2);
}
