#include <catch2/catch.hpp>

#include "tests/support/Sockets.h"
#include "tests/support/Support.h"
#include "tests/unit/pool/agent/transport/PodSupport.h"

using namespace hearth;
using namespace hearth::agent;
using namespace hearth::agent::pod;
using namespace std::chrono_literals;

namespace {

/// Returns the error of a dial that must fail.
std::system_error dialling(const TcpDialer& dialer) {
    try {
        const AgentLink link = dialer(secure::Purpose::Control);
    } catch (const std::system_error& e) {
        return e;
    }
    throw std::runtime_error("it was let in");
}

/// Returns an unused port outside the range that the kernel gives to clients. Inside it, a client
/// that probes the port could connect to itself.
std::uint16_t unusedPort() {
    const auto first = static_cast<std::uint16_t>(15'000 + ::getpid() % 15'000);
    for (std::uint16_t port = first; port < first + 1'000; ++port) {
        const Fd fd = tcpSocket();
        const sockaddr_in address = loopback(port);
        if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0) {
            return port;
        }
    }
    throw std::runtime_error("no port is unused");
}

/// Returns a source of the text, piece by piece, as writeFile() needs it.
std::function<std::size_t(char*, std::size_t)> giving(const std::string& text) {
    return [&text, at = std::size_t{0}](char* into, std::size_t room) mutable {
        const std::size_t n = std::min(room, text.size() - at);
        text.copy(into, n, at);
        at += n;
        return n;
    };
}

std::string fileOf(AgentClient& client, const std::string& path) {
    std::string all;
    client.readFile(
        path, 0, 0, [](const FileStat&) {},
        [&](std::string_view piece) {
            all += piece;
            return true;
        });
    return all;
}

}  // namespace

TEST_CASE("over TCP a workspace is bound, runs code, streams output and keeps files",
          "[unit][agent][transport]") {
    Pod pod;
    // Next to a tenant that holds connections to the port, silent ones and others.
    std::vector<Fd> attackers;
    for (int i = 0; i < 100; ++i) {
        attackers.push_back(connectTo(pod.port).value());
        if (i % 2 == 0) ::send(attackers.back().get(), "GET / HTTP/1.1\r\n", 16, MSG_NOSIGNAL);
    }
    const auto client = pod.client();
    CHECK_FALSE(client->hello().binding);
    client->bind(bindAs("c1"), kPatience);
    CHECK(run(*client, "e1", "echo $A$S; echo no >&2; exit 3")->out == "1hush\n");
    CHECK(run(*client, "e2", "exit 3")->exit_code == 3);

    // More than any window, record or socket buffer takes at once, in both directions.
    const std::string text = hearth::test::bytesOf(5'000'000);
    CHECK(client->writeFile("big", {}, giving(text)).size == text.size());
    CHECK(fileOf(*client, "big") == text);
    CHECK(client->stat("big").size == text.size());
    const auto streamed = run(*client, "e3", "cat big");
    CHECK(streamed->out == text);
    CHECK(client->list("", false, 10, "").items.size() == 1);
    CHECK(pod.lost == 0);
}

TEST_CASE("input reaches an execution over TCP", "[unit][agent][transport]") {
    Pod pod;
    const auto client = pod.client();
    client->bind(bindAs("c1"), kPatience);
    const auto ears = std::make_shared<Ears>();
    ExecRequest request;
    request.id = "e1";
    request.command = "wc -c";
    request.stdin_open = true;
    const auto handle = client->exec(request, ears);
    handle->writeStdin(hearth::test::bytesOf(1'000'000), kPatience);
    handle->closeStdin();
    client->drive([&] { return ears->done.load(); }, kPatience);
    CHECK(ears->out == "1000000\n");
}

TEST_CASE("an agent serves its server's key only, and a server its own agent only",
          "[unit][agent][transport]") {
    Pod pod;
    const secure::ServerKey stranger = secure::ServerKey::generate();
    const auto denied = [](const TcpDialer& dialer, const std::string& why) {
        const std::system_error e = dialling(dialer);
        CHECK(e.code() == std::errc::permission_denied);
        CHECK_THAT(e.what(), Catch::StartsWith(why));
    };
    denied({stranger, pod.at(), kPatience}, "the agent refused this server's key");
    PodAgent other = pod.at();
    other.pod_uid = "another";
    denied({pod.key, other, kPatience}, "the agent of another Pod has the address");
    other = pod.at();
    other.identity = secure::AgentIdentity::generate().publicKey();
    denied({pod.key, other, kPatience}, "what listens there is not the agent");
    CHECK_NOTHROW(pod.client());
}

TEST_CASE("a dialer gives up in time, and names addresses only", "[unit][agent][transport]") {
    Pod pod;
    const Fd silent = listenOnLoopback();
    PodAgent at = pod.at();
    at.port = portOf(silent);
    CHECK(dialling({pod.key, at, 50ms}).code() == std::errc::timed_out);
    {
        const Fd gone = listenOnLoopback();
        at.port = portOf(gone);
    }
    CHECK(dialling({pod.key, at, kPatience}).code() == std::errc::connection_refused);
    at.address = "localhost";
    CHECK(dialling({pod.key, at, kPatience}).code() == std::errc::invalid_argument);
    const AgentLost lost = [&] {
        try {
            pod.client(TcpDialer(pod.key, at, kPatience));
        } catch (const AgentLost& e) {
            return e;
        }
        throw std::runtime_error("connected");
    }();
    CHECK(lost.loss() == Loss::Gone);
}

TEST_CASE("a connection serves only the purpose for which the server opened it",
          "[unit][agent][transport]") {
    Pod pod;
    const auto client = pod.client();
    client->bind(bindAs("c1"), kPatience);
    const TcpDialer dialer = pod.dialer();
    const auto swapped = [&dialer](secure::Purpose purpose) {
        return dialer(purpose == secure::Purpose::Control ? secure::Purpose::Data
                                                          : secure::Purpose::Control);
    };
    CHECK_THROWS_WITH(pod.client(swapped), Catch::Contains("opened for the other kind"));
    // The connection that holds the workspace is not affected.
    CHECK(client->touch().time_since_epoch().count() > 0);
    CHECK(pod.lost == 0);
}

TEST_CASE("strangers learn nothing but the greeting, and are closed in time",
          "[unit][agent][transport]") {
    Pod pod({"HEARTH_AGENT_PROOF_MS=100"});
    const Fd silent = connectTo(pod.port).value();
    CHECK(hearth::test::readFrom(silent, 1'000'000).size() == secure::kGreetingSize);
    const Fd rude = connectTo(pod.port).value();
    CHECK(hearth::test::readFrom(rude, secure::kGreetingSize).size() == secure::kGreetingSize);
    const std::string hello = program::hello().dump();
    REQUIRE(::send(rude.get(), hello.data(), hello.size(), MSG_NOSIGNAL) > 0);
    CHECK(hearth::test::readFrom(rude, 1).empty());
    // A stranger that knows the server's first bytes gets no further.
    const Fd sly = connectTo(pod.port).value();
    CHECK(hearth::test::readFrom(sly, secure::kGreetingSize).size() == secure::kGreetingSize);
    const std::string answer = std::string("hrthsrv\1\1", 9) + std::string(96, 'x');
    REQUIRE(::send(sly.get(), answer.data(), answer.size(), MSG_NOSIGNAL) > 0);
    CHECK(hearth::test::readFrom(sly, 1).empty());
    CHECK_NOTHROW(pod.client());
}

TEST_CASE("a tenant that floods the port does not keep the server out, nor grow the agent",
          "[unit][agent][transport]") {
    Pod pod({"HEARTH_AGENT_OUTSIDE=127.0.0.1"});
    const auto first = pod.client();
    first->bind(bindAs("c1"), kPatience);
    std::atomic<int> made{0};
    std::jthread tenant([&](const std::stop_token& stop) {
        std::vector<Fd> open;
        while (!stop.stop_requested()) {
            // The tenant's many addresses do not help it.
            const auto own = static_cast<std::uint32_t>(2 + made % 100);
            if (auto fd = connectTo(pod.port, own)) open.push_back(std::move(*fd));
            if (open.size() > 200) open.erase(open.begin(), open.begin() + 100);
            ++made;
        }
    });
    REQUIRE(hearth::test::eventually([&] { return made > 200; }));
    for (int i = 0; i < 20; ++i) CHECK(first->stat("").type == FileType::Directory);
    for (int i = 0; i < 20; ++i) {
        CHECK_NOTHROW(pod.dialer()(secure::Purpose::Data));
    }
    std::size_t descriptors = 0;
    for (const auto& entry :
         std::filesystem::directory_iterator("/proc/" + std::to_string(pod.agent->pid()) + "/fd")) {
        descriptors += entry.is_symlink() ? 1 : 0;
    }
    CHECK(descriptors < 100);
    CHECK(pod.lost == 0);
}

TEST_CASE("an agent over TCP has everything that protects it, or does not start",
          "[unit][agent][transport]") {
    const Folder folder;
    const std::string secret = folder.path + "/identity";
    const std::string told = folder.path + "/told";
    REQUIRE(secure::initialise());
    const std::string key = secure::ServerKey::generate().publicKey().text();
    const auto start = [&](std::vector<std::string> words) {
        return runAgent(std::move(words), listenOnLoopback());
    };
    CHECK(start({}) == 2);  // on a network, but without a key
    CHECK(start({"--server-key", key}) == 2);
    CHECK(start({"--server-key", key, "--pod", "p"}) == 2);
    CHECK(start({"--server-key", key, "--pod", "p", "--identity", secret}) == 2);  // no such file
    CHECK(start({"--server-key", "no key", "--pod", "p", "--identity", secret}) == 2);
    CHECK(start({"--tcp", "1"}) == 2);
    CHECK(start({"--tcp", "0"}) == 2);
    CHECK(start({"--tcp", "65536"}) == 2);

    std::ofstream(secret) << "too short";
    CHECK(start({"--server-key", key, "--pod", "p", "--identity", secret}) == 2);
    REQUIRE(runAgent({"--make-identity", secret, told}) == 0);
    const std::string link = folder.path + "/link";
    std::filesystem::create_symlink(secret, link);
    CHECK(start({"--server-key", key, "--pod", "p", "--identity", link}) == 2);
    // A key for a Unix socket is refused, because it must be a mistake.
    CHECK(runAgent({"--server-key", key, "--pod", "p", "--identity", secret}) == 2);
    // Each start takes its identity, so the one above has removed the file.
    CHECK_FALSE(std::filesystem::exists(secret));
}

TEST_CASE("an identity is one agent's, and gone from its file once it serves",
          "[unit][agent][transport]") {
    Pod pod;
    CHECK_NOTHROW(pod.client());
    CHECK_FALSE(std::filesystem::exists(pod.folder.path + "/identity"));
    // The same container starts again.
    CHECK(runAgent(pod.arguments(), listenOnLoopback()) == 2);
    // The same steps as an init container that runs again.
    const std::string secret = pod.folder.path + "/identity";
    const std::string told = pod.folder.path + "/told";
    REQUIRE(runAgent({"--make-identity", secret, told}) == 0);
    CHECK(std::filesystem::file_size(secret) == 32);
    struct stat st {};
    REQUIRE(::stat(secret.c_str(), &st) == 0);
    CHECK((st.st_mode & 0777) == 0600);
    std::string text;
    std::ifstream(told) >> text;
    REQUIRE(secure::AgentPublicKey::parse(text));
    CHECK(secure::AgentPublicKey::parse(text) != pod.identity);
    CHECK(runAgent({"--make-identity", pod.folder.path + "/none/identity", told}) == 1);
}

TEST_CASE("the agent holds a port of both families, so that no tenant can share it",
          "[unit][agent][transport]") {
    Pod pod;
    REQUIRE_NOTHROW(pod.client());  // the agent has taken its identity
    REQUIRE(runAgent({"--make-identity", pod.folder.path + "/identity",
                      pod.folder.path + "/told"}) == 0);
    std::string text;
    std::ifstream(pod.folder.path + "/told") >> text;
    const std::uint16_t port = unusedPort();
    std::vector<std::string> words = pod.arguments();
    words.insert(words.end(), {"--tcp", std::to_string(port)});
    const AgentProcess agent({}, HEARTH_AGENT_PATH, words);
    REQUIRE(hearth::test::eventually([&] { return connectTo(port).has_value(); }));
    PodAgent at = pod.at();
    at.port = port;
    at.identity = secure::AgentPublicKey::parse(text).value();
    CHECK_NOTHROW(TcpDialer(pod.key, at, kPatience)(secure::Purpose::Control));

    const auto taken = [](const auto& address, int family) {
        const int yes = 1;
        const Fd fd(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
        ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
        ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEPORT, &yes, sizeof(yes));
        ::setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &yes, sizeof(yes));
        return ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) !=
                   0 &&
               errno == EADDRINUSE;
    };
    sockaddr_in four = loopback(port);
    CHECK(taken(four, AF_INET));
    four.sin_addr.s_addr = htonl(INADDR_ANY);
    CHECK(taken(four, AF_INET));
    if (!Fd(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0))) return;  // nobody has IPv6 then
    sockaddr_in6 six{};
    six.sin6_family = AF_INET6;
    six.sin6_port = htons(port);
    CHECK(taken(six, AF_INET6));
}
