#include "tests/bench/program/BenchPool.h"

#include <unistd.h>

#include <algorithm>

#include "base/Clock.h"
#include "base/Error.h"
#include "base/Ids.h"
#include "base/http/Url.h"
#include "tests/bench/program/measure/BenchStop.h"

namespace hearth::cli {
namespace {

constexpr std::chrono::seconds kMostStall{60};
constexpr std::chrono::seconds kMostUnrest{3};
constexpr unsigned kPollMillis = 10;

std::string targetOf(const std::string& pool) {
    return "/v1/pools/" + percentEncode(pool);
}

/// Returns the pool's own reason why it does not come up; empty if it gives none.
std::string complaintOf(const Json& pool) {
    const Json status = pool.value("status", Json::object());
    const Json conditions = status.value("conditions", Json::array());
    for (const Json& condition : conditions) {
        if (condition.value("type", "") == "Degraded" && condition.value("status", "") == "True") {
            return condition.value("message", "");
        }
    }
    return {};
}

}  // namespace

Json poolManifest(Remote& remote, const std::string& pool) {
    Json manifest = remote.get(targetOf(pool));
    if (!manifest.is_object() || !manifest.contains("spec")) {
        throw Error(ErrorCode::Internal, "the server's pool " + pool + " has no spec");
    }
    return manifest;
}

void waitUntilReady(Remote& remote, const std::string& pool, unsigned ready) {
    const SystemClock clock;
    TimePoint end = clock.now() + kMostStall;
    unsigned most = 0;
    while (true) {
        const Json now = remote.get(targetOf(pool));
        if (!now.contains("status")) return;  // hidden from this caller
        const Json status = now["status"];
        const unsigned there = status.value("ready", 0U);
        if (there >= ready) return;
        if (there > most) {
            most = there;
            end = clock.now() + kMostStall;
        }
        if (clock.now() >= end) {
            const std::string why = complaintOf(now);
            throw Error(ErrorCode::Deadline, "pool " + pool + " has only " + std::to_string(there) +
                                                 " of " + std::to_string(ready) + " warm" +
                                                 (why.empty() ? "" : ": " + why))
                .hint("see `hearth get events`, or measure fewer");
        }
        BenchStop::sleep(kPollMillis);
    }
}

bool waitUntilAtRest(Remote& remote, const std::string& pool) {
    const SystemClock clock;
    const TimePoint end = clock.now() + kMostUnrest;
    while (true) {
        const Json now = remote.get(targetOf(pool));
        if (!now.contains("status")) return true;  // hidden from this caller
        const Json& status = now["status"];
        const unsigned wanted = now.at("spec").value("warm", Json::object()).value("min", 0U);
        if (status.value("ready", 0U) >= wanted && status.value("creating", 0U) == 0 &&
            status.value("draining", 0U) == 0) {
            return true;
        }
        if (clock.now() >= end) return false;
        BenchStop::sleep(kPollMillis);
    }
}

std::vector<std::string> readySandboxes(Remote& remote, const std::string& pool) {
    std::vector<std::string> ready;
    for (const Json& sandbox : remote.list(targetOf(pool) + "/sandboxes")) {
        if (sandbox.value("phase", "") == "Ready") ready.push_back(sandbox.value("id", ""));
    }
    return ready;
}

Json benchManifest(const std::string& name, const Json& like, const BenchPool::Shape& shape) {
    Json made = like.at("spec").at("template");
    if (!shape.template_patch.empty()) made.merge_patch(parseJson(shape.template_patch));
    Json warm = like.at("spec").value("warm", Json::object());
    warm["min"] = shape.warm;
    warm["max"] = shape.warm;
    return {{"apiVersion", "hearth.dev/v1alpha1"},
            {"kind", "SandboxPool"},
            {"metadata", {{"name", name}}},
            {"spec",
             {{"template", std::move(made)},
              {"warm", std::move(warm)},
              {"onEmpty", {{"action", "Queue"}, {"maxWait", "60s"}, {"maxQueue", 1000}}},
              {"lifecycle", {{"idleTimeout", "10m"}, {"maxLifetime", "1h"}}},
              {"limits",
               {{"members", std::min(shape.members, BenchPool::kMostMembers)},
                {"perTenant", BenchPool::kMostMembers}}}}}};
}

BenchPool::BenchPool(Remote& remote, const Json& like, const Shape& shape)
    : remote_(remote), name_("bench-" + newId("").substr(0, 12)), warm_(shape.warm) {
    BenchStop::check();
    remote_.send("POST", "/v1/pools", benchManifest(name_, like, shape));
}

BenchPool::~BenchPool() {
    try {
        remote_.send("DELETE", targetOf(name_));
        const SystemClock clock;
        const TimePoint end = clock.now() + kMostStall;
        while (clock.now() < end) {
            remote_.get(targetOf(name_));
            ::usleep(kPollMillis * 1000);
        }
    } catch (const std::exception&) {
        name_.clear();  // 404: the pool is gone. Otherwise the server is gone.
    }
}

void BenchPool::waitUntilWarm() {
    waitUntilReady(remote_, name_, warm_);
}

void BenchPool::drain() {
    remote_.send("POST", targetOf(name_) + "/drain");
}

bool BenchPool::prewarmed() {
    const Json status = remote_.get(targetOf(name_)).value("status", Json::object());
    const Json conditions = status.value("conditions", Json::array());
    return std::ranges::any_of(conditions, [](const Json& condition) {
        return condition.value("type", "") == "Prewarmed" &&
               condition.value("status", "") == "True";
    });
}

std::vector<std::string> BenchPool::readySandboxes() {
    return cli::readySandboxes(remote_, name_);
}

}  // namespace hearth::cli
