#include <catch2/catch.hpp>

#include "tests/unit/fake/runtime/Support.h"

using namespace hearth;
using namespace hearth::pool::test;
using namespace std::chrono_literals;

namespace {

ExecRequest code(const std::string& id, const std::string& text, const std::string& context = {}) {
    ExecRequest request;
    request.id = id;
    request.fingerprint = text;
    request.language = "python";
    request.code = text;
    request.context = context;
    return request;
}

}  // namespace

TEST_CASE("variables survive in a context and nowhere else", "[unit][runtime][agent]") {
    House house;
    const auto client = house.bound();
    CHECK_FALSE(client->createContext({"cx", "python", "", {}}, 5s));
    CHECK(client->createContext({"cx", "python", "", {}}, 5s));
    House::run(*client, code("a", "set x 1", "cx"));
    const auto kept = House::run(*client, code("b", "get x", "cx"));
    CHECK(kept->text_ == "1\n");
    CHECK(kept->interpreter_ == "context");
    CHECK(kept->context_ == "cx");
    CHECK(kept->result_->context_kept == true);
    const auto fresh = House::run(*client, code("c", "get x"));
    CHECK(fresh->result_->status == agent::ExecutionStatus::Failed);
    CHECK(fresh->interpreter_ == "zygote");
    CHECK_FALSE(fresh->result_->context_kept);
    client->restartContext("cx", 5s);
    CHECK(House::run(*client, code("d", "get x", "cx"))->result_->status ==
          agent::ExecutionStatus::Failed);
    client->endContext("cx");
    CHECK(House::run(*client, code("e", "get x", "cx"))->refused_ == "NOT_FOUND");
}

TEST_CASE("a context runs one execution at a time and heeds an interrupt",
          "[unit][runtime][agent]") {
    House house;
    const auto client = house.bound();
    client->createContext({"cx", "python", "", {}}, 5s);
    CHECK(agentCodeOf([&] { client->interruptContext("cx"); }) == "NOT_FOUND");
    const auto sink = std::make_shared<Recorder>();
    client->exec(code("a", "set x 2\nsleep 100", "cx"), sink);
    CHECK(House::run(*client, code("b", "get x", "cx"))->refused_ == "BUSY");
    client->interruptContext("cx");
    client->drive([&] { return sink->done(); }, 5s);
    REQUIRE(sink->result_);
    CHECK(sink->result_->status == agent::ExecutionStatus::Failed);
    CHECK(sink->result_->report.find("KeyboardInterrupt") != std::string::npos);
    CHECK(House::run(*client, code("c", "get x", "cx"))->text_ == "2\n");
    CHECK(house.client(2)->hello().contexts.size() == 1);
}

TEST_CASE("a deadline keeps a context that heeds it and ends one that does not",
          "[unit][runtime][agent]") {
    House house;
    const auto client = house.bound();
    client->createContext({"cx", "python", "", {}}, 5s);
    for (const bool stubborn : {false, true}) {
        auto request = code(stubborn ? "b" : "a", stubborn ? "stubborn 100" : "sleep 100", "cx");
        request.timeout = 1s;
        const auto sink = std::make_shared<Recorder>();
        client->exec(request, sink);
        client->drive([&] { return sink->at(&Recorder::started_); }, 5s);
        house.clock.advance(1s);
        if (stubborn) house.clock.advance(1s);
        client->drive([&] { return sink->done(); }, 5s);
        REQUIRE(sink->result_);
        CHECK(sink->result_->status == agent::ExecutionStatus::Timeout);
        CHECK(sink->result_->context_kept == !stubborn);
    }
    CHECK(house.client(2)->hello().contexts.empty());
}

TEST_CASE("results come in order with the output, also when asked for again",
          "[unit][runtime][agent]") {
    House house;
    const auto client = house.bound();
    const std::string text =
        "echo ab\nresult {\"n\":1}\necho cd\nresult {\"n\":2}\nresult {\"n\":3}";
    using Shown = std::vector<std::pair<std::uint64_t, std::string>>;
    const Shown wanted{{3, "{\"n\":1}"}, {6, "{\"n\":2}"}, {6, "{\"n\":3}"}};
    const auto first = House::run(*client, code("a", text));
    CHECK(first->results_ == wanted);
    CHECK(first->result_->result_bytes == 3 * 11);
    const auto again = std::make_shared<Recorder>();
    client->attach("a", 0, again);
    client->drive([&] { return again->done(); }, 5s);
    CHECK(again->results_ == wanted);
    const auto rest = std::make_shared<Recorder>();
    client->attach("a", 3, rest, 1U << 20U, 11);
    client->drive([&] { return rest->done(); }, 5s);
    CHECK(rest->results_ == Shown{{3, "{\"n\":2}"}, {3, "{\"n\":3}"}});
}

TEST_CASE("large results arrive whole, and results beyond the limit are counted",
          "[unit][runtime][agent]") {
    House house;
    const auto client = house.bound();
    std::string text = "result \"" + std::string(90'000, 'x') + "\"";
    for (int i = 0; i < 120; ++i) text += "\nresult " + std::to_string(i);
    const auto sink = House::run(*client, code("a", text));
    REQUIRE(sink->results_.size() == agent::kMaxResults);
    CHECK(sink->results_[0].second.size() == 90'002);
    CHECK(sink->result_->dropped_results == 21);
}

TEST_CASE("a sandbox is prewarmed before its bind only", "[unit][runtime][agent]") {
    House house;
    const auto client = house.client();
    std::optional<agent::PrewarmReply> reply;
    std::atomic<bool> done{false};
    client->prewarm({{{"python", {"numpy", "missing"}}, {"ruby", {}}}, 1s},
                    [&](const auto& told, const auto&) {
                        reply = told;
                        done = true;
                    });
    REQUIRE(eventually([&] { return done.load(); }));
    REQUIRE(reply);
    CHECK(reply->ready == std::vector<std::string>{"python"});
    CHECK(reply->failed.at("python").find("missing") != std::string::npos);
    CHECK(reply->failed.contains("ruby"));
    auto ahead = command("w", "echo warm");
    ahead.prewarm = true;
    CHECK(House::run(*client, ahead)->text_ == "warm\n");
    client->bind(claim("c"), 5s);
    CHECK(House::run(*client, ahead)->refused_ == "BAD_REQUEST");
}
