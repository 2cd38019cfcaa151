#include <array>
#include <catch2/catch.hpp>

#include "tests/unit/pool/agent/program/Harness.h"

using namespace hearth::agent::program;
using hearth::Fd;

namespace {

/// The agent's program with other arguments; its standard input and output are one socket.
class Program {
public:
    explicit Program(std::vector<std::string> words, std::vector<std::string> environment = {}) {
        std::array<int, 2> ends{};
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
            throw std::runtime_error("socketpair");
        }
        talk = Fd(ends[0]);
        const Fd inside(ends[1]);
        words.insert(words.begin(), "hearth-agent");
        const auto pointers = [](std::vector<std::string>& texts) {
            std::vector<char*> all;
            for (std::string& text : texts) all.push_back(text.data());
            all.push_back(nullptr);
            return all;
        };
        const std::vector<char*> argv = pointers(words);
        const std::vector<char*> env = pointers(environment);
        pid_ = fork();
        if (pid_ == 0) {
            dup2(inside.get(), 0);
            dup2(inside.get(), 1);
            execve(HEARTH_AGENT_PATH, argv.data(), env.data());
            _exit(1);
        }
    }
    Program(const Program&) = delete;
    Program& operator=(const Program&) = delete;
    ~Program() {
        if (pid_ <= 0) return;
        kill(pid_, SIGTERM);
        waitpid(pid_, nullptr, 0);
    }

    std::string read(std::size_t size) {
        std::string text;
        while (text.size() < size) {
            pollfd p{talk.get(), POLLIN, 0};
            if (poll(&p, 1, 20'000) <= 0) throw std::runtime_error("nothing comes");
            char piece[256];
            const ssize_t n =
                recv(talk.get(), piece, std::min(sizeof piece, size - text.size()), 0);
            if (n <= 0) break;
            text.append(piece, static_cast<std::size_t>(n));
        }
        return text;
    }
    int waitForEnd() {
        int status = 0;
        waitpid(pid_, &status, 0);
        pid_ = -1;
        return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
    }

    Fd talk;

private:
    pid_t pid_ = -1;
};

/// A folder with an opened agent, as a daemon on another machine has it.
struct Opened {
    Opened() {
        char name[] = "/tmp/hearth-relay-test-XXXXXX";
        folder = mkdtemp(name);
        chmod(folder.c_str(), 0755);
        std::filesystem::create_directories(folder + "/root");
        if (geteuid() == 0 && chown((folder + "/root").c_str(), 1000, 1000) != 0) {
            throw std::runtime_error("chown");
        }
        agent = std::make_unique<Program>(
            std::vector<std::string>{"--receive", folder + "/socket"},
            std::vector<std::string>{"HEARTH_AGENT_UNCONFINED=1", "HEARTH_SANDBOX=sb_test",
                                     "HEARTH_AGENT_ROOT=" + folder + "/root",
                                     "HEARTH_AGENT_RUN=" + folder,
                                     geteuid() == 0 ? "" : "HEARTH_AGENT_KEEP_IDENTITY=1"});
        Program opening({"--open", folder});
        ready = opening.read(hearth::agent::kRelayReady.size());
        status = opening.waitForEnd();
    }
    ~Opened() {
        agent.reset();
        std::error_code ignored;
        std::filesystem::remove_all(folder, ignored);
    }

    std::string folder;
    std::unique_ptr<Program> agent;
    std::string ready;
    int status = -1;
};

}  // namespace

TEST_CASE("an agent that comes first is opened, and its socket is root's alone",
          "[unit][agent][program]") {
    const Opened opened;
    CHECK(opened.ready == hearth::agent::kRelayReady);
    CHECK(opened.status == 0);
    CHECK_FALSE(std::filesystem::exists(opened.folder + "/socket"));
    struct stat status {};
    REQUIRE(stat((opened.folder + "/agent").c_str(), &status) == 0);
    CHECK((status.st_mode & 07777U) == 0600);
}

TEST_CASE("a relay carries the whole protocol, and ends with either side",
          "[unit][agent][program]") {
    const Opened opened;
    {
        Program relay({"--relay", opened.folder});
        REQUIRE(relay.read(hearth::agent::kRelayReady.size()) == hearth::agent::kRelayReady);
        Client client(std::move(relay.talk));
        REQUIRE(client.ask(hello()).ok);
        REQUIRE(client.ask(bindRequest()).ok);
        const Outcome outcome = client.ask(exec("e", "head -c 60000 /dev/zero | tr '\\0' x"));
        CHECK(outcome.out == std::string(60'000, 'x'));
        client = Client(Fd());  // the server disconnects
        CHECK(relay.waitForEnd() == 0);
    }
    Program again({"--relay", opened.folder});
    REQUIRE(again.read(hearth::agent::kRelayReady.size()) == hearth::agent::kRelayReady);
    Client client(std::move(again.talk));
    CHECK(client.ask(hello(2)).body["bound"]["claimId"] == "c1");
    Program newer({"--relay", opened.folder});
    REQUIRE(newer.read(hearth::agent::kRelayReady.size()) == hearth::agent::kRelayReady);
    Client second(std::move(newer.talk));
    CHECK(second.ask(hello(3)).ok);
    CHECK(again.waitForEnd() == 0);  // the agent has ended that connection
}

TEST_CASE("a relay without an agent fails and says why", "[unit][agent][program]") {
    Program relay({"--relay", "/nowhere"});
    CHECK(relay.read(1).empty());
    CHECK(relay.waitForEnd() == 1);
}
