#include <catch2/catch.hpp>
#include <thread>
#include <vector>

#include "tests/unit/fake/runtime/Support.h"

using namespace hearth;
using namespace hearth::pool::test;
using namespace std::chrono_literals;

TEST_CASE("an agent takes one bind in its life", "[unit][runtime][agent]") {
    House house;
    const auto client = house.client(3);
    CHECK_FALSE(client->hello().binding);
    const auto first = client->bind(claim("c", 3), 5s);
    CHECK_FALSE(first.repeated);
    CHECK(first.bound_at == house.clock.now());

    house.clock.advance(1s);
    auto again = claim("c", 3);
    again.attempt = 2;
    const auto second = client->bind(again, 5s);
    CHECK(second.repeated);
    CHECK(second.attempt == 1);
    CHECK(second.bound_at == first.bound_at);

    auto other_body = claim("c", 3);
    other_body.fingerprint = "else";
    CHECK(agentCodeOf([&] { client->bind(other_body, 5s); }) == "FINGERPRINT_MISMATCH");
    CHECK(agentCodeOf([&] { client->bind(claim("d", 3), 5s); }) == "BOUND_ELSEWHERE");
    CHECK(agentCodeOf([&] { client->bind(claim("c", 2), 5s); }) == "STALE_EPOCH");
    CHECK(house.lost == 0);
}

TEST_CASE("a newer server takes over and the older one is fenced out", "[unit][runtime][agent]") {
    House house;
    const auto old = house.client(1);
    old->bind(claim("c", 1), 5s);
    const auto fresh = house.client(2);
    REQUIRE(fresh->hello().binding);
    CHECK(fresh->hello().binding->claim_id == "c");
    CHECK(fresh->hello().binding->labels.at("team") == "a");
    CHECK(fresh->hello().binding->note["pool"] == "python");
    CHECK(eventually([&] { return old->lost() && house.lost == 1; }));
    CHECK(agentCodeOf([&] { house.client(1); }) == "STALE_EPOCH");
}

TEST_CASE("deadlines are in force when they are answered", "[unit][runtime][agent]") {
    House house;
    const auto client = house.bound();
    const auto at = house.clock.now() + 1h;
    const auto set = client->setDeadlines(1, at, 10min);
    CHECK(set.expires_at == at);
    CHECK(set.idle_timeout == 10min);
    CHECK(set.idle_at == house.clock.now() + 10min);
    house.clock.advance(1min);
    CHECK(client->touch() == house.clock.now());
    CHECK(client->setDeadlines(1, std::nullopt, std::nullopt).expires_at == at);
    CHECK(agentCodeOf([&] { client->setDeadlines(0, at, std::nullopt); }) == "STALE_EPOCH");
}

TEST_CASE("executions echo, read their input, fail and are killed", "[unit][runtime][agent]") {
    House house;
    const auto client = house.bound();
    const auto echo = House::run(*client, command("e1", "echo hello world"));
    CHECK(echo->text_ == "hello world\n");
    REQUIRE(echo->result_);
    CHECK(echo->result_->status == agent::ExecutionStatus::Ok);
    CHECK(echo->result_->output_bytes == 12);

    const auto failed = House::run(*client, command("e2", "exit 3"));
    CHECK(failed->result_->exit_code == 3);

    auto request = command("e3", "cat");
    request.stdin_open = true;
    const auto cat = std::make_shared<Recorder>();
    const auto handle = client->exec(request, cat);
    const std::string text(700'000, 'i');
    handle->writeStdin(text, 5s);
    handle->closeStdin();
    client->drive([&] { return cat->done(); }, 5s);
    REQUIRE(cat->at(&Recorder::result_));
    CHECK(cat->text_ == text);
    handle->writeStdin("too late", 5s);

    const auto sleeper = std::make_shared<Recorder>();
    client->exec(command("e4", "sleep 3600"), sleeper);
    CHECK(client->setDeadlines(1, std::nullopt, 1min).idle_at == TimePoint{});
    client->signal("e4", "TERM");
    client->drive([&] { return sleeper->done(); }, 5s);
    REQUIRE(sleeper->result_);
    CHECK(sleeper->result_->status == agent::ExecutionStatus::Killed);
    CHECK(sleeper->result_->signal == 15);

    auto slow = command("e5", "sleep 3600");
    slow.timeout = 10s;
    const auto late = std::make_shared<Recorder>();
    client->exec(slow, late);
    client->drive([&] { return late->at(&Recorder::started_); }, 5s);  // before the clock moves
    house.clock.advance(11s);
    client->drive([&] { return late->done(); }, 5s);
    REQUIRE(late->result_);
    CHECK(late->result_->status == agent::ExecutionStatus::Timeout);
    CHECK(client->touch() == house.clock.now());
}

TEST_CASE("an execution asked for twice runs once", "[unit][runtime][agent]") {
    House house;
    const auto client = house.bound();
    House::run(*client, command("e", "echo once"));
    const auto again = House::run(*client, command("e", "echo once"));
    CHECK(again->repeated_);
    CHECK(again->text_ == "once\n");
    auto other = command("e", "echo once");
    other.fingerprint = "else";
    CHECK(House::run(*client, other)->refused_ == "FINGERPRINT_MISMATCH");
    client->forget("e");
    CHECK_FALSE(House::run(*client, command("e", "echo once"))->repeated_);
}

TEST_CASE("output is resumed from an offset by a new client", "[unit][runtime][agent]") {
    House house;
    auto client = house.bound();
    auto request = command("e", "cat");
    request.stdin_open = true;
    const auto first = std::make_shared<Recorder>();
    auto handle = client->exec(request, first);
    handle->writeStdin("0123456789", 5s);
    client->drive([&] { return first->at(&Recorder::received_) == 10; }, 5s);
    handle.reset();
    client.reset();
    CHECK(first->lasts_ == 1);
    CHECK_FALSE(first->result_);
    CHECK(house.lost == 0);

    const auto next = house.client(2);
    REQUIRE(next->hello().executions.size() == 1);
    CHECK(next->hello().executions[0].running);
    const auto second = std::make_shared<Recorder>();
    next->attach("e", 4, second);
    next->signal("e", "KILL");
    next->drive([&] { return second->done(); }, 5s);
    CHECK(second->text_ == "456789");
    CHECK(second->first_ == 4);
    CHECK(second->repeated_);
    const auto unknown = std::make_shared<Recorder>();
    next->attach("nothing", 0, unknown);
    next->drive([&] { return unknown->done(); }, 5s);
    CHECK(unknown->refused_ == "NOT_FOUND");
}

TEST_CASE("a flood with a slow sink keeps its head and tail and blocks nobody",
          "[unit][runtime][agent]") {
    class Slow final : public agent::ExecSink {
    public:
        void started(const agent::ExecStart&) override {}
        void output(int, std::uint64_t offset, std::string_view bytes) override {
            const auto until = std::chrono::steady_clock::now() + 200us;
            while (std::chrono::steady_clock::now() < until) {
            }
            if (offset != next_) ++gaps_;
            next_ = offset + bytes.size();
            received_ += bytes.size();
        }
        void exited(const agent::ExecResult& result) override {
            written_ = result.output_bytes;
            dropped_ = result.dropped_bytes;
            done_ = true;
        }
        void lost(const std::optional<AgentError>&) override { done_ = true; }

        std::atomic<bool> done_{false};
        std::uint64_t next_ = 0, received_ = 0, written_ = 0, dropped_ = 0;
        int gaps_ = 0;
    };
    House house;
    const auto client = house.bound();
    auto request = command("e", "flood 67108864");
    request.output_limit = 256U << 10U;
    const auto sink = std::make_shared<Slow>();
    client->exec(request, sink);
    // Meanwhile the Poller reads the flood.
    for (int i = 0; i < 50; ++i) client->touch();
    client->drive([&] { return sink->done_.load(); }, 20s);
    REQUIRE(sink->done_);
    CHECK(sink->written_ == 67'108'864);
    CHECK(sink->next_ == sink->written_);
    CHECK(sink->dropped_ > 60'000'000);
    CHECK(sink->gaps_ >= 1);
    CHECK(sink->received_ < (4U << 20U));
}

TEST_CASE("a client does not keep the sink of a running execution", "[unit][runtime][agent]") {
    House house;
    const auto client = house.bound();
    auto sink = std::make_shared<Recorder>();
    const std::weak_ptr<Recorder> seen = sink;
    client->exec(command("e", "sleep 3600"), sink);
    client->drive([&] { return sink->at(&Recorder::started_); }, 5s);
    sink.reset();
    CHECK(eventually([&] { return seen.expired(); }));  // the reading thread may still hold it

    const auto again = std::make_shared<Recorder>();
    client->attach("e", 0, again);
    client->signal("e", "TERM");
    client->drive([&] { return again->done(); }, 5s);
    CHECK(again->at(&Recorder::result_));
    CHECK(House::run(*client, command("f", "echo on"))->text_ == "on\n");
}

TEST_CASE("many threads ask one client at once", "[unit][runtime][agent]") {
    House house;
    const auto client = house.bound();
    constexpr int kThreads = 32;
    std::atomic<int> good{0};
    {
        std::vector<std::jthread> threads;
        for (int t = 0; t < kThreads; ++t) {
            threads.emplace_back([&, t] {
                int right = 0;
                for (int i = 0; i < 40; ++i) {
                    const std::string id = std::to_string(t) + "-" + std::to_string(i);
                    if (i % 10 == 0) {
                        const auto sink = House::run(*client, command(id, "echo " + id));
                        right += sink->text_ == id + "\n" ? 1 : 0;
                        client->forget(id);
                    } else if (i % 10 == 1) {
                        std::size_t sent = 0;
                        client->writeFile(
                            "d/" + id, std::nullopt, [&](char* out, std::size_t room) {
                                const std::size_t n = std::min(room, id.size() - sent);
                                id.copy(out, n, sent);
                                sent += n;
                                return n;
                            });
                        right += client->stat("d/" + id).size == id.size() ? 1 : 0;
                    } else {
                        right += client->touch() == house.clock.now() ? 1 : 0;
                    }
                }
                good += right;
            });
        }
    }
    CHECK(good == kThreads * 40);
    CHECK(client->list("d", false, 1000, "").items.size() == 4 * kThreads);
}

TEST_CASE("a client that ends tells its sinks, and not its owner", "[unit][runtime][agent]") {
    House house;
    auto client = house.bound();
    std::vector<std::shared_ptr<Recorder>> sinks;
    for (int i = 0; i < 8; ++i) {
        sinks.push_back(std::make_shared<Recorder>());
        client->exec(command("e" + std::to_string(i), "sleep 10"), sinks.back());
    }
    client.reset();
    for (const auto& sink : sinks) CHECK(sink->lasts_ == 1);
    CHECK(house.lost == 0);
}
