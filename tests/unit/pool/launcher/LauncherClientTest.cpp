#include <sys/socket.h>
#include <sys/types.h>

#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <thread>
#include <vector>

#include "base/Ids.h"
#include "pool/launcher/LauncherClient.h"
#include "pool/launcher/protocol/OperationRules.h"
#include "tests/support/Support.h"

using namespace hearth;
using namespace hearth::pool;
using namespace hearth::pool::launcher;
using namespace hearth::test;
using namespace std::chrono_literals;

namespace {

/// The launcher's end of the socket, which answers when the test wants it.
struct Peer {
    Fd ours;
    Fd theirs;
    std::map<std::string, std::size_t> stuck;
    std::mutex mutex;
    metrics::Log log{-1};
    std::chrono::milliseconds patience{20};
    std::optional<LauncherClient> client;

    Peer() {
        int ends[2];
        REQUIRE(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0);
        ours = Fd(ends[0]);
        theirs = Fd(ends[1]);
        client.emplace(
            std::move(ours), log, nullptr,
            LauncherClient::Waiting{.patience = [this](const RequestBody&) { return patience; },
                                    .stuck =
                                        [this](const std::string& operation, std::size_t count) {
                                            const std::lock_guard lock(mutex);
                                            stuck[operation] = count;
                                        }});
    }
    Request take() {
        std::vector<char> packet(kMaxPacket);
        const ssize_t n = ::recv(theirs.get(), packet.data(), packet.size(), 0);
        if (n <= 0) throw std::runtime_error("the client sent nothing");
        return decodeRequest({packet.data(), static_cast<std::size_t>(n)});
    }
    bool nothingCame() const {
        char byte = 0;
        return ::recv(theirs.get(), &byte, 1, MSG_DONTWAIT | MSG_PEEK) < 0;
    }
    void answer(std::uint64_t seq, const Json& result = Json::object()) {
        const std::string packet = encodeReply({seq, result, {}, {}, {}});
        if (::send(theirs.get(), packet.data(), packet.size(), 0) < 0) throwErrno("send");
    }
    std::size_t stuckOf(const std::string& operation) {
        const std::lock_guard lock(mutex);
        return stuck.at(operation);
    }
};

const SandboxId kOne = newId("sb_");
const SandboxId kTwo = newId("sb_");

}  // namespace

TEST_CASE("a call ends at its deadline, and counts as stuck until its answer", "[unit][launcher]") {
    Peer peer;
    CHECK(peer.stuckOf("destroy") == 0);  // the series exists from the beginning
    CHECK(codeOf([&] { peer.client->destroy(kOne); }) == ErrorCode::Deadline);
    const Request late = peer.take();
    CHECK(peer.stuckOf("destroy") == 1);
    CHECK(peer.stuckOf("create") == 0);

    // Retries do not queue up after it. Calls for other sandboxes go on.
    CHECK(codeOf([&] { peer.client->destroy(kOne); }) == ErrorCode::Unavailable);
    CHECK(peer.nothingCame());
    CHECK(codeOf([&] { peer.client->destroy(kTwo); }) == ErrorCode::Deadline);
    const Request second = peer.take();
    CHECK(peer.stuckOf("destroy") == 2);
    CHECK(peer.client->state().in_flight == 2);
    CHECK_FALSE(peer.client->state().up);  // it never reported that it is ready

    peer.answer(late.seq);
    CHECK(eventually([&] { return peer.stuckOf("destroy") == 1; }));
    peer.answer(second.seq);
    CHECK(eventually([&] { return peer.stuckOf("destroy") == 0; }));
    CHECK(peer.client->state().in_flight == 0);

    peer.patience = 10s;
    std::jthread launcher([&] { peer.answer(peer.take().seq); });
    CHECK_NOTHROW(peer.client->destroy(kOne));
}

TEST_CASE("a server that stops waits for no launcher that does not answer", "[unit][launcher]") {
    Peer peer;
    peer.patience = 10min;
    std::jthread stop([&] {
        static_cast<void>(peer.take());
        peer.client->finishWithin(0ms);
    });
    CHECK(codeOf([&] { peer.client->destroy(kOne); }) == ErrorCode::Deadline);
    CHECK(codeOf([&] { peer.client->destroy(kTwo); }) == ErrorCode::Deadline);
}

TEST_CASE("a sandbox is found with a single request", "[unit][launcher]") {
    Peer peer;
    peer.patience = 10s;
    SandboxId asked;
    std::jthread launcher([&] {
        const Request first = peer.take();
        asked = std::get<FindRequest>(first.body).id;
        peer.answer(first.seq, {{"found", encodeFound({kOne, true, {{"pool", "p"}}, 7})}});
        peer.answer(peer.take().seq);
    });
    const auto found = peer.client->find(kOne);
    REQUIRE(found);
    CHECK(found->alive);
    CHECK(found->labels.at("pool") == "p");
    CHECK(asked == kOne);
    CHECK_FALSE(peer.client->find(kTwo));
}

TEST_CASE("a change of limits begins however much else is under way", "[unit][launcher]") {
    std::vector<RequestBody> busy;
    const auto begin = [&](const RequestBody& body) {
        std::vector<Underway> underway;
        for (const RequestBody& each : busy) underway.push_back({&each});
        if (!mayStart(body, underway)) return false;
        busy.push_back(body);
        return true;
    };
    // Takes all places of these operations.
    for (int i = 0; i < 20; ++i) {
        begin(CreateRequest{newId("sb_"), {}});
        begin(DestroyRequest{newId("sb_")});
        begin(ListRequest{newId("sb_")});
    }
    CHECK(begin(PrepareImageRequest{"a"}));
    CHECK_FALSE(begin(PrepareImageRequest{"b"}));  // one image is unpacked at a time
    for (const RequestBody& body : std::initializer_list<RequestBody>{
             FetchImageRequest{"r", false, 900}, AddLayerRequest{"d"}, SweepRequest{}}) {
        CHECK(begin(body));
    }
    CHECK_FALSE(begin(CreateRequest{kOne, {}}));
    CHECK_FALSE(begin(DestroyRequest{kOne}));
    CHECK(begin(NarrowRequest{kOne}));
    CHECK_FALSE(begin(NarrowRequest{kOne}));  // no two operations on one sandbox at once
    CHECK(begin(NarrowRequest{kTwo}));
}

TEST_CASE("an operation that was killed and hangs gives its place to others", "[unit][launcher]") {
    std::vector<RequestBody> hanging;
    for (std::size_t i = 0; i < places(Slot::Destroy); ++i) {
        hanging.emplace_back(DestroyRequest{newId("sb_")});
    }
    std::vector<Underway> underway;
    for (const RequestBody& each : hanging) underway.push_back({&each, false});
    CHECK_FALSE(mayStart(DestroyRequest{kOne}, underway));
    for (Underway& each : underway) each.killed = true;
    CHECK(mayStart(DestroyRequest{kOne}, underway));
    CHECK_FALSE(mayStart(hanging.front(), underway));  // but never twice for one sandbox
    std::vector<Underway> sick(64, underway.front());
    CHECK_FALSE(mayStart(DestroyRequest{kOne}, sick));
}

TEST_CASE("operations that yield to requests leave room, and delay no others", "[unit][launcher]") {
    const RequestBody create = CreateRequest{newId("sb_"), {}};
    std::vector<Underway> underway{{&create, false, true}};
    CHECK(mayStart(DestroyRequest{kOne}, underway, 2));
    CHECK_FALSE(mayStart(DestroyRequest{kOne}, underway, 1));
    CHECK(mayStart(NarrowRequest{kOne}, underway));  // it does not yield
    underway.front().yields = false;                 // it has given way for long enough
    CHECK(mayStart(DestroyRequest{kOne}, underway, 1));
    underway.front() = {&create, true, true};  // it hangs
    CHECK(mayStart(DestroyRequest{kOne}, underway, 1));
}

TEST_CASE("only short operations yield, since a late one keeps all others from yielding",
          "[unit][launcher]") {
    for (const RequestBody& body : std::initializer_list<RequestBody>{
             CreateRequest{}, DestroyRequest{}, NarrowRequest{}, FindRequest{}, ListRequest{},
             SweepRequest{}, PrepareImageRequest{}, DescribeImageRequest{}, FetchImageRequest{},
             ForgetImagesRequest{}, AddLayerRequest{}, RemoveLayerRequest{}, FactsRequest{}}) {
        const OperationRules rules = rulesOf(body);
        CAPTURE(rules.name);
        CHECK(rules.behind == (rules.slot == Slot::Create || rules.slot == Slot::Destroy));
    }
}

TEST_CASE("no sort of operation waits in the launcher for another", "[unit][launcher]") {
    const auto slotOf = [](const RequestBody& body) { return rulesOf(body).slot; };
    CHECK(slotOf(NarrowRequest{}) == Slot::Narrow);
    CHECK(slotOf(DestroyRequest{}) != slotOf(CreateRequest{}));
    for (const RequestBody& slow : std::initializer_list<RequestBody>{
             PrepareImageRequest{}, FetchImageRequest{}, AddLayerRequest{}, SweepRequest{}}) {
        CHECK(slotOf(slow) == Slot::Image);
    }
    for (const Slot slot : {Slot::Create, Slot::Destroy, Slot::Narrow, Slot::Look, Slot::Image}) {
        CHECK(places(slot) > 0);
    }
    // If a client gave up first, nobody would learn the result of the operation.
    for (const RequestBody& body : std::initializer_list<RequestBody>{
             CreateRequest{}, DestroyRequest{}, NarrowRequest{}, FindRequest{}, ListRequest{},
             SweepRequest{}, PrepareImageRequest{}, DescribeImageRequest{}, FetchImageRequest{},
             ForgetImagesRequest{}, AddLayerRequest{}, RemoveLayerRequest{}, FactsRequest{}}) {
        CAPTURE(rulesOf(body).name);
        CHECK(rulesOf(body).patience > rulesOf(body).limit);
    }
    CHECK(operationNames().size() == std::variant_size_v<RequestBody>);
}
