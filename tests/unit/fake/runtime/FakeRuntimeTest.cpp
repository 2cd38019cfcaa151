#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <iostream>
#include <system_error>

#include "base/Error.h"
#include "tests/unit/fake/runtime/Support.h"

using namespace hearth;
using namespace hearth::pool;
using namespace hearth::pool::test;
using namespace std::chrono_literals;

TEST_CASE("fake sandboxes are created, listed and destroyed", "[unit][runtime]") {
    ManualClock clock;
    FakeRuntime runtime(clock);
    SandboxSpec spec;
    spec.labels = {{"pool", "p"}};
    runtime.create("a", spec);
    runtime.create("b", spec);
    CHECK_THROWS(runtime.create("b", spec));
    CHECK(runtime.running() == 2);
    CHECK(runtime.created() == 2);
    REQUIRE(runtime.list().size() == 2);
    CHECK(runtime.list()[0].labels.at("pool") == "p");
    CHECK(runtime.usage("a")->processes == 1);
    runtime.destroy("a");
    runtime.destroy("a");
    CHECK_FALSE(runtime.usage("a"));
    CHECK_THROWS_AS(runtime.connect("a"), std::system_error);
    runtime.create("c", spec);
    runtime.sweep({"c"});
    CHECK(runtime.list().size() == 1);
    CHECK(runtime.resolveImage("python").starts_with("sha256:"));
    CHECK_THROWS_AS(runtime.resolveImage("missing"), Error);
    CHECK(runtime.facts().name == "fake");
}

TEST_CASE("requested faults happen", "[unit][runtime]") {
    House house;
    house.runtime.failCreates(2);
    CHECK_THROWS(house.runtime.create("x", SandboxSpec{}));
    CHECK_THROWS(house.runtime.create("x", SandboxSpec{}));
    house.runtime.create("x", SandboxSpec{});
    house.runtime.slowCreates(20ms);
    const auto begin = std::chrono::steady_clock::now();
    house.runtime.create("y", SandboxSpec{});
    CHECK(std::chrono::steady_clock::now() - begin >= 20ms);
}

TEST_CASE("a killed sandbox loses its client and stays in the list", "[unit][runtime][agent]") {
    House house;
    const auto client = house.bound();
    const auto sink = std::make_shared<Recorder>();
    client->exec(command("e", "sleep 9"), sink);
    house.runtime.kill("sb");
    CHECK(eventually([&] { return house.lost == 1; }));
    CHECK(sink->at(&Recorder::lasts_) == 1);
    CHECK_THROWS_AS(client->touch(), AgentLost);
    CHECK_THROWS_AS(house.client(), AgentLost);
    REQUIRE(house.runtime.list().size() == 1);
    CHECK_FALSE(house.runtime.list()[0].alive);
    CHECK(house.runtime.running() == 0);
}

TEST_CASE("a hanging sandbox answers no call, and all of them when it goes on",
          "[unit][runtime][agent]") {
    House house;
    const auto client = house.client(1, 5s);
    house.runtime.hang("sb");
    CHECK_THROWS_AS(client->bind(claim("c"), 50ms), AgentLost);
    CHECK_THROWS_AS(house.client(1, 50ms), AgentLost);
    CHECK(house.lost == 0);
    CHECK(house.runtime.running() == 1);
    house.runtime.resume("sb");
    CHECK_NOTHROW(house.client(1, 5s)->touch());
}

TEST_CASE("the earlier of two events that were due while a sandbox hung happens",
          "[unit][runtime][agent]") {
    House house;
    const auto client = house.bound();
    const auto sink = std::make_shared<Recorder>();
    auto request = command("e", "sleep 9");
    request.timeout = 5s;
    client->exec(request, sink);
    client->drive([&] { return sink->at(&Recorder::started_); }, 5s);
    house.runtime.hang("sb");
    house.clock.advance(20s);
    house.runtime.resume("sb");
    client->drive([&] { return sink->done(); }, 5s);
    REQUIRE(sink->result_);
    CHECK(sink->result_->status == agent::ExecutionStatus::Timeout);
}

TEST_CASE("a severed sandbox goes on and can be connected to again", "[unit][runtime][agent]") {
    House house;
    const auto client = house.bound();
    house.runtime.sever("sb");
    CHECK(eventually([&] { return client->lost() && house.lost == 1; }));
    CHECK(house.client(1, 5s)->hello().binding);
    CHECK(house.runtime.running() == 1);
}

TEST_CASE("a sweep reports a sandbox that resists, and spares a new one", "[unit][runtime]") {
    House house;
    house.runtime.resist("sb");
    CHECK_THROWS(house.runtime.destroy("sb"));
    const std::vector<pool::Leftover> left = house.runtime.sweep({});
    REQUIRE(left.size() == 1);
    CHECK(left[0].id == "sb");
    house.runtime.resist("sb", false);
    house.runtime.begin();
    house.runtime.create("new", {});
    CHECK(house.runtime.sweep({}).empty());
    REQUIRE(house.runtime.list().size() == 1);
    CHECK(house.runtime.list()[0].id == "new");
}

TEST_CASE("a drained agent answers and is gone", "[unit][runtime][agent]") {
    House house;
    const auto client = house.bound();
    client->drain(1);
    CHECK(eventually([&] { return house.lost == 1; }));
    CHECK(house.runtime.running() == 0);
}

TEST_CASE("a thousand fake sandboxes need one thread", "[unit][runtime][agent]") {
    House house;
    std::vector<std::unique_ptr<AgentClient>> clients;
    for (int i = 0; i < 1000; ++i) {
        const std::string id = "s" + std::to_string(i);
        house.runtime.create(id, SandboxSpec{});
        clients.push_back(std::make_unique<AgentClient>(
            house.poller, [&house, id] { return house.runtime.connect(id); }, 1, 5s,
            [](const AgentLost&) {}));
    }
    for (std::size_t i = 0; i < clients.size(); ++i) {
        clients[i]->bind(claim("c" + std::to_string(i)), 5s);
    }
    CHECK(house.runtime.running() == 1001);
}

// Run by hand: unit_runtime "[measure]"
TEST_CASE("the round trip of touch, bind and echo", "[.][measure]") {
    House house;
    const auto client = house.bound();
    const auto measure = [](const char* name, int count, const std::function<void(int)>& f) {
        std::vector<double> micros;
        for (int i = 0; i < count; ++i) {
            const auto begin = std::chrono::steady_clock::now();
            f(i);
            micros.push_back(
                std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin)
                    .count());
        }
        std::sort(micros.begin(), micros.end());
        const auto at = [&](double q) {
            return micros[static_cast<std::size_t>(q * static_cast<double>(count - 1))];
        };
        std::cout << name << ": p50 " << at(0.5) << " us, p99 " << at(0.99) << " us, p99.9 "
                  << at(0.999) << " us\n";
    };
    measure("touch", 50'000, [&](int) { client->touch(); });
    measure("bind (repeated)", 20'000, [&](int) { client->bind(claim("c"), 5s); });
    measure("exec echo", 10'000, [&](int i) {
        const std::string id = "e" + std::to_string(i);
        House::run(*client, command(id, "echo x"));
    });
    const auto sleeper = std::make_shared<Recorder>();
    client->exec(command("s", "sleep 100000"), sleeper);
    measure("touch beside a running execution", 20'000, [&](int) { client->touch(); });
}
