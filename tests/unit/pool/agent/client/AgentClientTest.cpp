#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstring>

#include "tests/unit/pool/agent/client/Peer.h"

using namespace hearth;
using namespace hearth::agent;
using namespace hearth::agent::test;
using namespace std::chrono_literals;

namespace {

constexpr auto kReply = FrameType::Reply;
constexpr auto kNote = FrameType::Note;

constexpr std::string_view kEnded = R"({"ended":true})";

struct Case {
    std::string name;
    std::string bytes;
};

std::string rawHeader(std::uint32_t length, std::uint32_t stream, unsigned char type,
                      unsigned char channel = 0, unsigned char zero = 0) {
    std::array<unsigned char, kHeaderSize> head{};
    putU32(head.data(), length);
    putU32(head.data() + 4, stream);
    head[8] = type;
    head[9] = channel;
    head[10] = zero;
    return {reinterpret_cast<const char*>(head.data()), head.size()};
}

std::string deep(std::size_t levels) {
    return R"({"lastActivityNs":1,"x":)" + std::string(levels, '[') + std::string(levels, ']') +
           "}";
}

std::string many(std::size_t values) {
    std::string text = R"({"lastActivityNs":1,"x":[0)";
    for (std::size_t i = 1; i < values; ++i) text += ",0";
    return text + "]}";
}

std::string credit(std::uint32_t stream, std::uint32_t bytes) {
    std::string payload(4, '\0');
    putU32(reinterpret_cast<unsigned char*>(payload.data()), bytes);
    return frame(FrameType::Credit, stream, payload);
}

std::string edited(std::string_view text, std::string_view what, std::string_view by) {
    std::string out(text);
    const std::size_t at = out.find(what);
    if (at == std::string::npos) throw std::logic_error("nothing to edit");
    return out.replace(at, what.size(), by);
}

/// A client whose agent sends a correct hello and then the given answers.
struct Setup {
    explicit Setup(std::vector<std::string> answers, bool hang_up = false)
        : client(
              poller,
              [&] {
                  answers.insert(answers.begin(), frame(kReply, 1, kHello));
                  return peer.connect(answers, hang_up);
              },
              1, 300ms,
              [this](const AgentLost& loss) {
                  broken = loss.loss() == Loss::Broken;
                  ++lost;
              }) {}

    ScriptedPeer peer;
    Poller poller;
    std::atomic<int> lost{0};
    std::atomic<bool> broken{false};
    AgentClient client;
};

}  // namespace

TEST_CASE("the hello of an agent is read", "[unit][agent]") {
    Setup setup({});
    const Hello& hello = setup.client.hello();
    REQUIRE(hello.binding);
    CHECK(hello.binding->claim_id == "c");
    CHECK(hello.binding->labels.at("a") == "b");
    CHECK(hello.binding->note["pool"] == "p");
    CHECK(hello.executions.size() == 1);
    CHECK(hello.executions[0].running);
    REQUIRE(hello.contexts.size() == 1);
    CHECK(hello.contexts[0].id == "cx");
    CHECK(hello.contexts[0].running);
    CHECK(hello.languages == std::vector<std::string>{"python"});
    CHECK(setup.lost == 0);
}

TEST_CASE("an agent's report of its use is read, with its control group or without",
          "[unit][agent]") {
    const std::string disk = R"({"diskTotal":9,"diskUsed":8,"processes":7)";
    Setup setup({frame(kReply, 2, disk + "}"),
                 frame(kReply, 3,
                       disk + R"(,"group":{"cpuNs":1,"memoryBytes":2,"memoryPeakBytes":3,)"
                              R"("oomKills":4},"later":5})"),
                 frame(kReply, 4, disk + R"(,"group":{"cpuNs":1,"memoryBytes":2,"oomKills":4}})")});
    const AgentUsage before = setup.client.usage();
    CHECK((before.disk_total == 9 && before.disk_used == 8 && before.processes == 7));
    CHECK_FALSE(before.group);
    const auto group = setup.client.usage().group;
    REQUIRE(group);
    CHECK((group->cpu_ns == 1 && group->memory_bytes == 2 && group->memory_peak_bytes == 3));
    CHECK(group->oom_kills == 4);
    CHECK(setup.client.usage().group.value().memory_peak_bytes == 0);
    CHECK(setup.lost == 0);
}

TEST_CASE("an agent with a malformed report of its use is lost", "[unit][agent]") {
    const std::string group =
        GENERATE(as<std::string>(), R"("group":{"cpuNs":1,"memoryBytes":2})",
                 R"("group":{"cpuNs":-1,"memoryBytes":2,"oomKills":4})",
                 R"("group":{"cpuNs":1,"memoryBytes":"2","oomKills":4})", R"("group":[])");
    Setup setup({frame(kReply, 2, R"({"diskTotal":9,"diskUsed":8,"processes":7,)" + group + "}")});
    CHECK_THROWS_AS(setup.client.usage(), AgentLost);
    CHECK(setup.broken);
}

TEST_CASE("a malformed answer to a call loses the agent", "[unit][agent]") {
    const std::vector<Case> cases{
        {"a payload over the limit", rawHeader(kMaxPayload + 1, 2, 2)},
        {"a huge length", rawHeader(0xFFFFFFFFU, 2, 2)},
        {"an unknown type", rawHeader(0, 2, 9)},
        {"type zero", rawHeader(0, 2, 0)},
        {"an unknown channel", rawHeader(0, 2, 4, 3)},
        {"a reserved byte", rawHeader(0, 2, 2, 0, 1)},
        {"a request from the agent", frame(FrameType::Request, 2, "{}")},
        {"a cancel from the agent", frame(FrameType::Cancel, 2, "")},
        {"data instead of a reply", frame(FrameType::Data, 2, "abc")},
        {"an end instead of a reply", frame(FrameType::End, 2, "")},
        {"credit instead of a reply", credit(2, 10)},
        {"a note instead of a reply", frame(kNote, 2, "{}")},
        {"the wrong stream", frame(kReply, 3, R"({"lastActivityNs":1})")},
        {"stream zero", frame(kReply, 0, R"({"lastActivityNs":1})")},
        {"a stream that is over", frame(kReply, 1, R"({"lastActivityNs":1})")},
        {"no JSON", frame(kReply, 2, "lastActivityNs")},
        {"no payload", frame(kReply, 2, "")},
        {"an array", frame(kReply, 2, "[1]")},
        {"bytes behind the JSON", frame(kReply, 2, R"({"lastActivityNs":1} x)")},
        {"a key twice", frame(kReply, 2, R"({"lastActivityNs":1,"lastActivityNs":2})")},
        {"bytes that are no UTF-8", frame(kReply, 2, "{\"lastActivityNs\":1,\"x\":\"\xFF\"}")},
        {"nested too deep", frame(kReply, 2, deep(16))},
        {"too many values", frame(kReply, 2, many(20'000))},
        {"a missing field", frame(kReply, 2, "{}")},
        {"a text for a number", frame(kReply, 2, R"({"lastActivityNs":"1"})")},
        {"a negative time", frame(kReply, 2, R"({"lastActivityNs":-1})")},
        {"a fraction", frame(kReply, 2, R"({"lastActivityNs":1.5})")},
        {"a time beyond all", frame(kReply, 2, R"({"lastActivityNs":18446744073709551615})")},
        {"an error without code", frame(FrameType::Error, 2, R"({"message":"m"})")},
        {"an error with a strange code",
         frame(FrameType::Error, 2, R"({"code":"a b","message":""})")},
    };
    for (const Case& each : cases) {
        INFO(each.name);
        Setup setup({each.bytes});
        CHECK_THROWS_AS(setup.client.touch(), AgentLost);
        CHECK(setup.client.lost());
        CHECK(eventually([&] { return setup.lost == 1; }));
        CHECK_THROWS_AS(setup.client.touch(), AgentLost);
    }
}

TEST_CASE("a malformed hello is refused and nobody is told of a loss", "[unit][agent]") {
    const std::vector<std::pair<std::string_view, std::string_view>> edits{
        {"\"protocol\":1", "\"protocol\":2"},
        {"\"highestEpoch\":1,", ""},
        {"\"claimId\":\"c\"", "\"claimId\":\"\""},
        {"\"labels\":{\"a\":\"b\"}", "\"labels\":{\"a\":1}"},
        {"\"note\":{\"pool\":\"p\"}", "\"note\":[]"},
        {"\"running\":1", "\"running\":65"},
        {"\"attempt\":1", "\"attempt\":4294967296"},
        {"\"python\"", "\"Py thon\""},
        {"\"state\":\"running\"", "\"state\":\"odd\""},
        {"\"contexts\":[", "\"contexts\":[1,"},
        {"\"language\":\"python\"", "\"language\":\"\""},
        {"\"running\":true", "\"running\":1"},
        {"\"idleTimeoutMs\":7", "\"idleTimeoutMs\":9223372036854775807"},
    };
    ScriptedPeer peer;
    Poller poller;
    for (const auto& [what, by] : edits) {
        INFO(what);
        std::atomic<int> lost{0};
        CHECK_THROWS_AS(
            AgentClient(
                poller, [&] { return peer.connect({frame(kReply, 1, edited(kHello, what, by))}); },
                1, 300ms, [&](const AgentLost&) { ++lost; }),
            AgentLost);
        CHECK(lost == 0);
    }
}

TEST_CASE("a malformed execution loses the agent, and its sink is told of that once",
          "[unit][agent]") {
    const std::string started = frame(kNote, 2, kStarted);
    const std::string end = frame(kReply, 2, kResult);
    const std::string ended = frame(kNote, 2, kEnded);
    std::string hundred;
    for (std::size_t i = 0; i < kMaxResults; ++i) hundred += entry("{}");
    std::string flood = started;
    for (std::uint64_t i = 0; i < 3; ++i) {
        flood += output(2, i * 131'072, std::string(131'072, 'x'));
    }
    // The peer sends all pieces at once. The third one fits only because the client has granted the
    // second half of the window by then. The pieces after it are too many.
    for (std::uint64_t i = 3; i < 12; ++i)
        flood += output(2, i * 131'072, std::string(131'072, 'x'));
    const std::vector<Case> cases{
        {"output before the start", output(2, 0, "abc")},
        {"the end before the start", end},
        {"two starts", started + started},
        {"a note of nothing", started + frame(kNote, 2, R"({"ended":1})")},
        {"two notes of the end", started + ended + ended},
        {"an end noted before the start", ended},
        {"a gap before the start", frame(kNote, 2, R"({"gap":{"to":9,"stderr":0}})")},
        {"a gap in output that was sent",
         started + output(2, 0, "abc") + frame(kNote, 2, R"({"gap":{"to":3,"stderr":0}})")},
        {"more of stderr than there was",
         started + frame(kNote, 2, R"({"gap":{"to":9,"stderr":10}})")},
        {"a gap without an end", started + frame(kNote, 2, R"({"gap":{"stderr":0}})")},
        {"a gap that is a number", started + frame(kNote, 2, R"({"gap":9})")},
        {"output within a gap",
         started + frame(kNote, 2, R"({"gap":{"to":9,"stderr":0}})") + output(2, 8, "abc")},
        {"a start of another execution", frame(kNote, 2, edited(kStarted, "\"x\"", "\"y\""))},
        {"offsets that go backwards", started + output(2, 10, "abc") + output(2, 12, "abc")},
        {"an offset beyond all", started + output(2, ~0ULL, "abc")},
        {"output without bytes", started + output(2, 0, "")},
        {"output without an offset", started + frame(FrameType::Data, 2, "abc", Channel::Stdout)},
        {"output on the file channel",
         started + frame(FrameType::Data, 2, std::string(9, 'x'), Channel::Bytes)},
        {"output behind the end", started + frame(FrameType::End, 2, "") + output(2, 0, "abc")},
        {"an end with bytes", started + frame(FrameType::End, 2, "x")},
        {"credit of no bytes", started + credit(2, 0)},
        {"credit of a gigabyte", started + credit(2, 1U << 30U)},
        {"credit of three bytes", started + frame(FrameType::Credit, 2, "abc")},
        {"an unknown status", started + frame(kReply, 2, edited(kResult, "\"ok\"", "\"fine\""))},
        {"an exit code of 256",
         started + frame(kReply, 2, edited(kResult, "\"exitCode\":0", "\"exitCode\":256"))},
        {"an end before the start in time",
         started + frame(kReply, 2, edited(kResult, "\"endedAtNs\":2", "\"endedAtNs\":0"))},
        {"more dropped than written",
         started + frame(kReply, 2, edited(kResult, "\"droppedBytes\":0", "\"droppedBytes\":4"))},
        {"a strange interpreter", frame(kNote, 2, edited(kStarted, "zygote", "bare metal"))},
        {"a result of more than four MiB", started + shown(2, 0, entry("{", kMaxResult + 1))},
        {"results that leave bytes out",
         started + shown(2, 0, entry("{}")) + shown(2, 7, entry("{}"))},
        {"results that come again", started + shown(2, 0, entry("{}")) + shown(2, 0, entry("{}"))},
        {"results that do not begin at the beginning", started + shown(2, 4, entry("{}"))},
        {"an offset of results beyond all", started + shown(2, ~0ULL, entry("{}"))},
        {"results without an offset", started + frame(FrameType::Data, 2, "abc", Channel::Results)},
        {"a result before the start", shown(2, 0, entry("{}"))},
        {"an end within a result", started + shown(2, 0, entry("{}", 3)) + end},
        {"an end within a length", started + shown(2, 0, "\1") + end},
        {"more than a hundred results", started + shown(2, 0, hundred + entry("{}"))},
        {"more results than credit", started +
                                         shown(2, 0, entry(std::string(131'000, 'x'), 4'000'000)) +
                                         shown(2, 131'004, std::string(140'000, 'x'))},
        {"context kept that is no flag",
         started + frame(kReply, 2, edited(kResult, "\"resultBytes\":0", "\"contextKept\":1"))},
        {"a preparation that is no object",
         started + frame(kReply, 2, edited(kResult, "\"resultBytes\":0", "\"prepared\":1"))},
        {"a preparation that does not tell all",
         started +
             frame(kReply, 2, edited(kResult, "\"resultBytes\":0", R"("prepared":{"ok":true})"))},
        {"more bytes of results than there may be",
         started +
             frame(kReply, 2, edited(kResult, "\"resultBytes\":0", "\"resultBytes\":9000000"))},
        {"a frame behind the result", started + end + end},
        {"more output than credit beyond the limit", flood},
    };
    for (const Case& each : cases) {
        INFO(each.name);
        Setup setup({each.bytes});
        const auto sink = std::make_shared<Recorder>();
        ExecRequest request;
        request.id = "x";
        request.command = "echo";
        request.output_limit = 1000;
        setup.client.exec(request, sink);
        CHECK(eventually([&] { return setup.lost == 1; }));
        CHECK(setup.client.lost());
        CHECK(sink->at(&Recorder::lasts_) == 1);
        CHECK(sink->at(&Recorder::refused_).empty());
    }
}

TEST_CASE("results are assembled, each after the output before it", "[unit][agent]") {
    const std::string first = entry(R"({"a":1})");
    const std::string second = entry(R"({"b":2})");
    std::string bytes = frame(kNote, 2, kStarted) + output(2, 0, "abc");
    std::uint64_t at = 0;
    for (const char c : first) bytes += shown(2, at++, std::string(1, c));
    bytes += output(2, 3, "de") + shown(2, at, second + second.substr(0, 3)) +
             shown(2, at + second.size() + 3, second.substr(3) + entry("")) +
             frame(kReply, 2, kResult);
    Setup setup({bytes});
    const auto sink = std::make_shared<Recorder>();
    ExecRequest request;
    request.id = "x";
    request.language = "python";
    setup.client.exec(request, sink);
    REQUIRE(eventually([&] { return sink->done(); }));
    CHECK(sink->at(&Recorder::interpreter_) == "zygote");
    using Shown = std::vector<std::pair<std::uint64_t, std::string>>;
    CHECK(sink->at(&Recorder::results_) ==
          Shown{{3, R"({"a":1})"}, {5, R"({"b":2})"}, {5, R"({"b":2})"}, {5, ""}});
    CHECK_FALSE(setup.client.lost());
}

TEST_CASE("results beyond the output limit get their credit at once", "[unit][agent]") {
    // A flood beyond the limit, then results that need the window several times over.
    std::string bytes = frame(kNote, 2, kStarted) + output(2, 0, std::string(2000, 'x'));
    const std::string big = entry(std::string(250'000, 'x'));
    Setup setup({bytes + shown(2, 0, big), shown(2, big.size(), big),
                 shown(2, 2 * big.size(), big) + frame(kReply, 2, kResult)});
    const auto sink = std::make_shared<Recorder>();
    ExecRequest request;
    request.id = "x";
    request.command = "echo";
    request.output_limit = 1000;
    setup.client.exec(request, sink);
    REQUIRE(eventually([&] { return sink->done(); }));
    CHECK(sink->at(&Recorder::results_).size() == 3);
    CHECK_FALSE(setup.client.lost());
}

TEST_CASE("the report of a prewarm is received without a waiting caller", "[unit][agent]") {
    const PrewarmRequest request{{{"python", {"numpy"}}}, 1s};
    struct Heard {
        std::atomic<int> calls{0};
        std::optional<PrewarmReply> reply;
        std::optional<AgentError> refusal;
    };
    const auto ask = [&](const std::string& answer, bool loses) {
        INFO(answer);
        Setup setup({answer});
        const auto heard = std::make_shared<Heard>();
        setup.client.prewarm(request, [heard](const auto& reply, const auto& refusal) {
            heard->reply = reply;
            if (refusal) heard->refusal.emplace(*refusal);
            ++heard->calls;
        });
        CHECK(eventually([&] { return heard->calls == 1; }));
        CHECK(eventually([&] { return setup.client.lost() == loses; }));
        return heard;
    };
    const auto good =
        ask(frame(kReply, 2, R"({"ready":["python"],"failed":{"python":"No module"}})"), false);
    REQUIRE(good->reply);
    CHECK(good->reply->ready == std::vector<std::string>{"python"});
    CHECK(good->reply->failed.at("python") == "No module");
    const auto refused =
        ask(frame(FrameType::Error, 2, R"({"code":"BAD_REQUEST","message":"bound"})"), false);
    REQUIRE(refused->refusal);
    CHECK(refused->refusal->code() == "BAD_REQUEST");
    for (const char* bad :
         {R"({"ready":["ruby"]})", R"({"ready":[1]})", R"({"failed":{}})",
          R"({"ready":[],"failed":{"ruby":"x"}})", R"({"ready":[],"failed":{"python":1}})"}) {
        const auto lost = ask(frame(kReply, 2, bad), true);
        CHECK_FALSE(lost->reply);
        CHECK_FALSE(lost->refusal);
    }
}

TEST_CASE("a context's answer must be about the context", "[unit][agent]") {
    const ContextRequest request{"cx", "python", "", {}};
    Setup good({frame(kReply, 2, R"({"id":"cx","language":"python","repeated":true})")});
    CHECK(good.client.createContext(request, 300ms));
    for (const char* bad : {R"({"id":"cy","language":"python","repeated":true})",
                            R"({"id":"cx","language":"node","repeated":true})",
                            R"({"id":"cx","language":"python"})"}) {
        INFO(bad);
        Setup setup({frame(kReply, 2, bad)});
        CHECK_THROWS_AS(setup.client.createContext(request, 300ms), AgentLost);
    }
}

TEST_CASE("beyond the output limit credit is given at one MiB a second", "[unit][agent]") {
    // A full window in two pieces. After it, the peer counts the frames with which credit is given.
    Setup setup({frame(kNote, 2, kStarted) + output(2, 0, std::string(131'072, 'x')) +
                 output(2, 131'072, std::string(131'072, 'x'))});
    const auto sink = std::make_shared<Recorder>();
    ExecRequest request;
    request.id = "x";
    request.command = "echo";
    request.output_limit = 1000;
    const auto begin = std::chrono::steady_clock::now();
    setup.client.exec(request, sink);
    // hello, exec, and three grants of about 105 kB, 100 ms apart
    REQUIRE(eventually([&] { return setup.peer.heard() >= 5; }));
    CHECK(std::chrono::steady_clock::now() - begin >= 290ms);
    CHECK_FALSE(setup.client.lost());
}

TEST_CASE("output left after the end gets its credit at once, up to the limit again",
          "[unit][agent]") {
    const std::string piece(131'072, 'x');
    const auto at = [&](std::size_t i) { return output(2, i * piece.size(), piece); };
    // The second piece passes the limit. The fourth and the fifth need the grant of a whole window;
    // the fifth passes the limit again.
    Setup setup({frame(kNote, 2, kStarted) + at(0) + at(1), at(2) + frame(kNote, 2, kEnded),
                 at(3) + at(4)});
    const auto sink = std::make_shared<Recorder>();
    ExecRequest request;
    request.id = "x";
    request.command = "echo";
    request.output_limit = 2 * piece.size() - 1;
    const auto begin = std::chrono::steady_clock::now();
    setup.client.exec(request, sink);
    REQUIRE(eventually([&] { return sink->at(&Recorder::received_) == 5 * piece.size(); }));
    // hello, exec, three grants at once, and two of the pace
    REQUIRE(eventually([&] { return setup.peer.heard() >= 7; }));
    CHECK(std::chrono::steady_clock::now() - begin >= 190ms);
    CHECK_FALSE(setup.client.lost());
}

TEST_CASE("a paced execution gets credit when its reader has caught up", "[unit][agent]") {
    const std::string piece(131'072, 'x');
    // The second and the third piece come only after a grant each.
    Setup setup({frame(kNote, 2, kStarted) + output(2, 0, piece) + output(2, 131'072, piece),
                 output(2, 262'144, piece)});
    const auto sink = std::make_shared<Recorder>();
    sink->readerLags(1U << 20U);
    ExecRequest request;
    request.id = "x";
    request.command = "echo";
    request.paced = true;
    setup.client.exec(request, sink);
    REQUIRE(eventually([&] { return sink->at(&Recorder::received_) == 262'144; }));
    CHECK(setup.peer.heard() == 2);  // hello and exec, and no credit
    SECTION("it has caught up") {
        sink->readerLags(0);
    }
    SECTION("it has gone") {
        sink->readerLags(std::nullopt);
    }
    CHECK(eventually([&] { return setup.peer.heard() > 2; }));
    CHECK_FALSE(setup.client.lost());
}

TEST_CASE("unexpected descriptors lose the agent, and all of them are closed", "[unit][agent]") {
    std::array<int, 2> ends{};
    std::array<int, 2> pipe{};
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) == 0);
    REQUIRE(::pipe2(pipe.data(), O_CLOEXEC) == 0);
    const Fd peer(ends[1]);
    const Fd read_end(pipe[0]);
    {
        const Fd write_end(pipe[1]);
        const std::array<int, 2> passed{pipe[1], pipe[1]};
        std::string bytes = frame(FrameType::Reply, 1, kHello);
        iovec part{bytes.data(), bytes.size()};
        alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(passed))> control{};
        msghdr message{};
        message.msg_iov = &part;
        message.msg_iovlen = 1;
        message.msg_control = control.data();
        message.msg_controllen = control.size();
        cmsghdr* const header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(sizeof(passed));
        std::memcpy(CMSG_DATA(header), passed.data(), sizeof(passed));
        REQUIRE(::sendmsg(peer.get(), &message, 0) == static_cast<ssize_t>(bytes.size()));
    }
    Poller poller;
    CHECK_THROWS_AS(AgentClient(poller, [&] { return Fd(ends[0]); }, 1, 2s, {}), AgentLost);
    pollfd ended{read_end.get(), POLLIN, 0};
    CHECK(::poll(&ended, 1, 2000) == 1);  // no write end is left open anywhere
}

TEST_CASE("a call without an answer fails alone, and its late answer is dropped", "[unit][agent]") {
    const auto touched = [](std::uint32_t stream, int at) {
        return frame(kReply, stream,
                     R"({"idleAtNs":0,"lastActivityNs":)" + std::to_string(at) + "}");
    };
    Setup setup({"", touched(2, 7) + touched(3, 9)});
    const auto begin = std::chrono::steady_clock::now();
    try {
        setup.client.touch();
        FAIL("nobody answered");
    } catch (const AgentLost& e) {
        CHECK(e.loss() == Loss::Silent);
    }
    CHECK(std::chrono::steady_clock::now() - begin >= 299ms);
    CHECK_FALSE(setup.client.lost());
    CHECK(setup.client.touch().time_since_epoch().count() == 9);
    CHECK(setup.lost == 0);
}

TEST_CASE("a late call does not end the execution beside it", "[unit][agent]") {
    // Output arrives while the call waits, so the agent lives.
    Setup setup({frame(kNote, 2, kStarted), output(2, 0, "abc"), frame(kReply, 2, kResult)});
    const auto sink = std::make_shared<Recorder>();
    ExecRequest request;
    request.id = "x";
    request.argv = {"x"};
    const auto handle = setup.client.exec(request, sink);
    try {
        setup.client.touch();
        FAIL("nobody answered");
    } catch (const AgentLost& e) {
        CHECK(e.loss() == Loss::Late);
    }
    CHECK_THROWS_AS(setup.client.touch(), AgentLost);  // the peer answers it with the result
    CHECK(eventually([&] { return sink->done(); }));
    CHECK(sink->at(&Recorder::text_) == "abc");
    CHECK(sink->at(&Recorder::result_).has_value());
    CHECK(setup.lost == 0);
}

TEST_CASE("an agent that hangs up is noticed without a waiting caller", "[unit][agent]") {
    Setup setup({}, true);
    CHECK(eventually([&] { return setup.lost == 1; }));
    CHECK(setup.client.lost());
    CHECK_FALSE(setup.broken);
}

TEST_CASE("a broken protocol and a lost agent are different errors", "[unit][agent]") {
    Setup setup({frame(kReply, 2, "no JSON")});
    try {
        setup.client.touch();
        FAIL("it was believed");
    } catch (const AgentLost& e) {
        CHECK(e.loss() == Loss::Broken);
    }
    CHECK(eventually([&] { return setup.lost == 1; }));
    CHECK(setup.broken);
}

TEST_CASE("a refusal carries its code and details and loses nothing", "[unit][agent]") {
    Setup setup(
        {frame(FrameType::Error, 2, R"({"code":"STALE_EPOCH","message":"m","highestEpoch":7})"),
         frame(kReply, 3, R"({"lastActivityNs":9,"idleAtNs":0})")});
    try {
        setup.client.touch();
        FAIL("no refusal");
    } catch (const AgentError& e) {
        CHECK(e.code() == "STALE_EPOCH");
        CHECK(e.details()["highestEpoch"] == 7);
    }
    CHECK(setup.client.touch().time_since_epoch().count() == 9);
    CHECK(setup.lost == 0);
}

TEST_CASE("a data connection that breaks the protocol loses the agent", "[unit][agent]") {
    ScriptedPeer peer;
    Poller poller;
    std::atomic<int> lost{0};
    std::atomic<int> connections{0};
    AgentClient client(
        poller,
        [&] {
            if (connections++ == 0) return peer.connect({frame(kReply, 1, kHello)});
            return peer.connect({frame(kReply, 1, kHello),
                                 frame(kReply, 2, edited(kStat, "\"file\"", "\"fifo\""))});
        },
        1, 300ms,
        [&](const AgentLost& loss) {
            CHECK(loss.loss() == Loss::Broken);
            ++lost;
        });
    CHECK_THROWS_AS(client.stat("f"), AgentLost);
    CHECK(eventually([&] { return lost == 1; }));
}

TEST_CASE("an idle data connection that broke is replaced once", "[unit][agent]") {
    ScriptedPeer peer;
    Poller poller;
    std::atomic<int> connections{0};
    AgentClient client(
        poller,
        [&] {
            if (connections++ == 0) return peer.connect({frame(kReply, 1, kHello)});
            return peer.connect({frame(kReply, 1, kHello), frame(kReply, 2, kStat)}, true);
        },
        1, 300ms, [](const AgentLost&) {});
    CHECK(client.stat("f").size == 3);
    CHECK(client.stat("f").size == 3);
    CHECK(connections == 3);
    CHECK_FALSE(client.lost());
}
