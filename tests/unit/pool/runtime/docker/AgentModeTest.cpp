#include <sys/socket.h>
#include <sys/utsname.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/Error.h"
#include "base/Ids.h"
#include "pool/agent/protocol/Frame.h"
#include "pool/runtime/docker/AgentMode.h"
#include "pool/runtime/docker/AgentVolume.h"
#include "pool/runtime/docker/DockerRuntime.h"
#include "pool/runtime/docker/remote/AgentRelay.h"
#include "pool/sys/Files.h"
#include "tests/support/Support.h"
#include "tests/unit/pool/runtime/docker/FakeEngine.h"

using namespace hearth;
using namespace hearth::docker_test;
using namespace hearth::pool::docker;
using hearth::test::TempDir;
namespace fs = std::filesystem;

namespace {

constexpr const char* kVolume = "hearth-0123456789ab-agent-cafe";

std::string ourKernel() {
    utsname ours{};
    ::uname(&ours);
    return ours.release;
}

/// Returns the stream of an exec that has been handed over.
std::string handedOver(const std::string& bytes) {
    return "HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n" + bytes;
}

std::string framed(int kind, std::string_view text) {
    std::string bytes{static_cast<char>(kind), 0, 0, 0, 0, 0, 0, static_cast<char>(text.size())};
    return bytes += text;
}

/// Returns "METHOD /path" of all requests except pings, in order, without version and query.
std::vector<std::string> asked(FakeEngine& engine) {
    std::vector<std::string> all;
    for (const Seen& seen : engine.seen()) {
        if (seen.target == "/_ping") continue;
        const std::string path = seen.target.substr(seen.target.find('/', 1));
        all.push_back(seen.method + " " + path.substr(0, path.find('?')));
    }
    return all;
}

/// A daemon that sees the source of a bind mount or does not. Everything else works.
FakeEngine::Reply daemon(bool sees, const std::string& kernel) {
    return [sees, kernel](const Seen& seen) {
        if (seen.target == "/_ping") return pong();
        if (seen.target == "/v1.41/info") {
            return answer(200, dumpJson({{"KernelVersion", kernel}}));
        }
        if (seen.target.find("/containers/create") != std::string::npos && !sees) {
            return refusal(400,
                           "invalid mount config for type \"bind\": bind source path does not "
                           "exist: /x");
        }
        return answer(seen.method == "POST" ? 201 : 200, "{}");
    };
}

}  // namespace

TEST_CASE("a container of the daemon shows whether mounts work, and is removed", "[unit][docker]") {
    const TempDir folder;
    for (const bool sees : {true, false}) {
        FakeEngine fake(daemon(sees, ourKernel()));
        EngineClient engine(fake.address());
        const AgentChoice choice =
            chooseAgentMode(engine, AgentMode::Auto, {folder.path()}, soon());
        CHECK(choice.mode == (sees ? AgentMode::Bind : AgentMode::Copy));
        CHECK(choice.reason.find("see") != std::string::npos);
        CHECK(fs::is_empty(folder.path()));
        const std::vector<std::string> calls = asked(fake);
        CHECK(std::ranges::count_if(calls, [](const std::string& call) {
                  return call.starts_with("DELETE /containers/hearth-probe-") ||
                         call.starts_with("DELETE /images/hearth/probe:hearth-probe-");
              }) == 2);
        CHECK(std::ranges::none_of(
            calls, [](const std::string& call) { return call.ends_with("/start"); }));
    }
}

TEST_CASE("a daemon under another kernel gets a copy, and a configured mode is not probed",
          "[unit][docker]") {
    const TempDir folder;
    FakeEngine fake(daemon(true, "5.15.0-linuxkit"));
    EngineClient engine(fake.address());
    const AgentChoice other = chooseAgentMode(engine, AgentMode::Auto, {folder.path()}, soon());
    CHECK(other.mode == AgentMode::Copy);
    CHECK(other.reason.find("5.15.0-linuxkit") != std::string::npos);
    CHECK(asked(fake) == std::vector<std::string>{"GET /info"});
    CHECK(chooseAgentMode(engine, AgentMode::Bind, {folder.path()}, soon()).mode ==
          AgentMode::Bind);
    CHECK(asked(fake).size() == 1);
}

TEST_CASE("a volume is filled once, and the container that filled it is removed",
          "[unit][docker]") {
    const TempDir folder;
    fs::create_directories(folder.path() + "/cafe/start");
    std::ofstream(folder.path() + "/cafe/agent") << "program";
    FakeEngine fake(daemon(true, ""));
    EngineClient engine(fake.address());
    AgentVolume volume(engine, "0123456789ab", folder.path() + "/cafe");
    CHECK(volume.ready(soon()) == kVolume);
    const std::string name = kVolume;
    const std::vector<std::string> once{"DELETE /containers/" + name,
                                        "DELETE /volumes/" + name,
                                        "POST /images/create",
                                        "POST /volumes/create",
                                        "POST /containers/create",
                                        "DELETE /containers/" + name,
                                        "DELETE /images/hearth/agent:" + name};
    CHECK(asked(fake) == once);
    volume.ready(soon());
    CHECK(asked(fake) == once);
    volume.doubt();
    volume.ready(soon());
    CHECK(asked(fake).size() == 2 * once.size());
}

TEST_CASE("a volume that a sandbox uses is whole and is left alone", "[unit][docker]") {
    FakeEngine fake([](const Seen& seen) {
        if (seen.target == "/_ping") return pong();
        if (seen.target.find("/volumes/hearth") != std::string::npos) {
            return refusal(409, "volume is in use");
        }
        if (seen.target.find("/volumes?") != std::string::npos) {
            return answer(200, dumpJson({{"Volumes", Json::array({{{"Name", kVolume}},
                                                                  {{"Name", "another's"}}})}}));
        }
        return answer(200, "{}");
    });
    EngineClient engine(fake.address());
    AgentVolume volume(engine, "0123456789ab", "/nowhere/cafe");
    CHECK(volume.ready(soon()) == kVolume);
    volume.removeUnused([] { return false; }, soon());
    const std::vector<std::string> calls = asked(fake);
    CHECK(std::ranges::none_of(calls,
                               [](const std::string& call) { return call.starts_with("POST"); }));
    CHECK(std::ranges::none_of(
        calls, [](const std::string& call) { return call.find("another") != std::string::npos; }));
    const std::size_t before = calls.size();
    volume.removeUnused([] { return true; }, soon());
    CHECK(asked(fake).size() == before);
}

TEST_CASE("a relay is started as root, and bytes after its greeting are kept", "[unit][docker]") {
    FakeEngine fake([](const Seen& seen) {
        if (seen.target == "/_ping") return pong();
        if (seen.target.ends_with("/exec")) return answer(201, R"({"Id":"e1"})");
        return handedOver(framed(1, "hearth-re") + framed(2, "a warning") +
                          framed(1, "lay 1\nframes"));
    });
    EngineClient engine(fake.address());
    const AgentRelay relay = startRelay(engine, "box", "--relay", soon());
    CHECK(relay.early == "frames");
    CHECK(asked(fake) ==
          std::vector<std::string>{"POST /containers/box/exec", "POST /exec/e1/start"});
    const Json made = parseJson(fake.seen().at(1).body);
    CHECK(made["User"] == "0:0");
    CHECK(made["Privileged"] == false);
    CHECK(made["Tty"] == false);
    CHECK(made["Cmd"] == Json::array({"/.hearth/agent", "--relay", "/.hearth/start"}));
}

TEST_CASE("a relay that does not start is reported with its output", "[unit][docker]") {
    for (const std::string& said :
         {framed(2, "no socket"), std::string("OCI runtime: no socket\r\n"), framed(1, "no socket"),
          framed(1, "no socket, but much else")}) {
        FakeEngine fake([&](const Seen& seen) {
            if (seen.target == "/_ping") return pong();
            if (seen.target.ends_with("/exec")) return answer(201, R"({"Id":"e1"})");
            return handedOver(said) + (said.size() > 30 ? "" : framed(1, std::string(40, '\n')));
        });
        EngineClient engine(fake.address());
        try {
            startRelay(engine, "box", "--relay", soon());
            FAIL("begun");
        } catch (const Error& e) {
            CHECK(e.code() == ErrorCode::Unavailable);
            CHECK(e.hint().find("no socket") != std::string::npos);
        }
    }
}

TEST_CASE("a silent relay costs its deadline", "[unit][docker]") {
    FakeEngine fake([](const Seen& seen) {
        if (seen.target == "/_ping") return pong();
        if (seen.target.ends_with("/exec")) return answer(201, R"({"Id":"e1"})");
        return std::string();
    });
    EngineClient engine(fake.address());
    try {
        startRelay(engine, "box", "--relay", soon(std::chrono::milliseconds(100)));
        FAIL("begun");
    } catch (const Error& e) {
        CHECK(e.code() == ErrorCode::Deadline);
    }
}
