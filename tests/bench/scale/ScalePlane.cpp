#include "tests/bench/scale/ScalePlane.h"

#include <malloc.h>

#include <chrono>
#include <map>
#include <stdexcept>
#include <thread>
#include <utility>

#include "controller/schedule/ParseTime.h"
#include "pool/agent/client/AgentClient.h"

namespace hearth::bench {
namespace {

constexpr auto kPatience = std::chrono::minutes(5);
constexpr auto kLook = std::chrono::milliseconds(2);
constexpr auto kFar = std::chrono::hours(24);
constexpr auto kConnect = std::chrono::seconds(30);
constexpr unsigned kParallelCreates = 16;

double secondsSince(TimePoint since) {
    return std::chrono::duration<double>(SystemClock().now() - since).count();
}

std::string poolName(unsigned number) {
    return "pool-" + std::to_string(number);
}

/// Reads "2026-11-21T03:04:05.678Z".
WallTime whenOf(const std::string& text) {
    const std::size_t point = text.find('.');
    return controller::parseTime(text.substr(0, point) + "Z").value() +
           std::chrono::milliseconds(std::stoi(text.substr(point + 1)));
}

}  // namespace

ScalePlane::ScalePlane(Size size) : size_(size) {
    begin(true);
}

ScalePlane::~ScalePlane() = default;

void ScalePlane::begin(bool first) {
    began_ = clock_.now();
    house_ = std::make_unique<controller::test::House>(ground_);
    if (first) {
        controller::PoolSpec spec;
        spec.image = "python";
        spec.warm_min = spec.warm_max = spec.max_members = size_.of_pool;
        spec.per_tenant = size_.of_pool;
        spec.parallel_creates = kParallelCreates;
        spec.max_age = std::chrono::milliseconds(0);
        for (unsigned i = 0; i < size_.pools; ++i) house_->declare(poolName(i), spec);
    }
    static_cast<void>(house_->recover());
    house_->begin();
    // Sandboxes that do not exist: the sandbox of such a key is looked up only when it is due.
    for (unsigned i = 0; i < size_.delayed; ++i) {
        house_->work.addAfter({controller::WorkKind::Sandbox, "sb_" + std::to_string(i)}, kFar);
    }
    house_->loop.start();
}

bool ScalePlane::full() const {
    for (unsigned i = 0; i < size_.pools; ++i) {
        if (house_->warm.counts(poolName(i)).ready < size_.of_pool) return false;
    }
    return true;
}

double ScalePlane::fill() {
    while (!full()) {
        if (clock_.now() - began_ > kPatience) throw std::runtime_error("the pools do not fill");
        std::this_thread::sleep_for(kLook);
    }
    return secondsSince(began_);
}

double ScalePlane::claim() {
    auto request = controller::test::House::request();
    request.pool = poolName(next_++ % size_.pools);
    const TimePoint before = clock_.now();
    const std::string id = house_->open(house_->who, request).id;
    const double took = secondsSince(before);
    house_->workspaces.close(house_->who, id);
    return took * 1e3;
}

std::vector<double> ScalePlane::reclaim(unsigned count) {
    house_->reclaimer.start();
    auto request = controller::test::House::request();
    request.idle_timeout = std::chrono::seconds(1);
    std::map<std::string, WallTime> due;
    while (due.size() < count) {
        request.pool = poolName(next_++ % size_.pools);
        const controller::WorkspaceView view = house_->open(house_->who, request);
        due[view.id] = whenOf(view.idle_expires_at.value());
    }
    std::vector<double> late;
    const TimePoint begin = clock_.now();
    controller::EventQuery query{.type = "workspace.reclaimed", .resource = {}};
    while (!due.empty()) {
        if (clock_.now() - begin > kPatience) throw std::runtime_error("the idle ones do not end");
        std::this_thread::sleep_for(kLook);
        for (const controller::Event& event : house_->events.list(house_->who, query)) {
            query.since = event.id;
            const auto found = due.find(event.resource);
            if (found == due.end()) continue;
            late.push_back(toSeconds(whenOf(event.time) - found->second) * 1e3);
            due.erase(found);
        }
    }
    return late;
}

void ScalePlane::guarantee(unsigned tenants) {
    controller::QuotaSpec spec;
    for (unsigned i = 0; i < size_.pools; ++i) spec.guaranteed[poolName(i)] = 1;
    for (unsigned i = 0; i < tenants; ++i) house_->quotas.load("tenant-" + std::to_string(i), spec);
}

std::vector<double> ScalePlane::reconcile(unsigned rounds) {
    house_->loop.stop();
    std::vector<double> took;
    for (unsigned round = 0; round < rounds; ++round) {
        for (unsigned i = 0; i < size_.pools; ++i) {
            const TimePoint before = clock_.now();
            house_->pool_reconciler.reconcile(poolName(i));
            took.push_back(secondsSince(before) * 1e6);
        }
    }
    house_->loop.start();
    return took;
}

double ScalePlane::restart() {
    house_.reset();
    begin(false);
    return fill();
}

double heapBytes() {
    const struct mallinfo2 info = ::mallinfo2();
    return static_cast<double>(info.uordblks) + static_cast<double>(info.hblkhd);
}

double connectionBytes(unsigned sandboxes) {
    const SystemClock clock;
    agent::Poller poller;
    pool::FakeRuntime runtime(clock);
    const double before = heapBytes();
    std::vector<std::unique_ptr<agent::AgentClient>> clients;
    for (unsigned i = 0; i < sandboxes; ++i) {
        const pool::SandboxId id = "sb_" + std::to_string(i);
        runtime.create(id, pool::SandboxSpec{});
        clients.push_back(std::make_unique<agent::AgentClient>(
            poller, [&runtime, id] { return runtime.connect(id); }, 1, kConnect,
            [](const auto&) {}));
    }
    return (heapBytes() - before) / sandboxes;
}

}  // namespace hearth::bench
