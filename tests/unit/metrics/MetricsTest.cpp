#include <map>
#include <set>
#include <sstream>

#include "metrics/Metrics.h"
#include "tests/support/Support.h"

using namespace hearth::metrics;

namespace {

bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

/// Returns the first breach of the rules of `promtool check metrics`: each family is announced
/// once, by HELP and TYPE, before its samples; each sample has a value and appears only once.
std::string sanityProblem(const std::string& text) {
    std::map<std::string, std::string> types;
    std::set<std::string> helped;
    std::set<std::string> samples;
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) {
        std::istringstream words(line);
        std::string hash;
        std::string what;
        std::string name;
        if (line.starts_with("#")) {
            words >> hash >> what >> name;
            if (what == "HELP" && !helped.insert(name).second) return "HELP twice: " + line;
            if (what == "TYPE") {
                std::string type;
                words >> type;
                if (!types.emplace(name, type).second) return "TYPE twice: " + line;
                if (type == "counter" && !name.ends_with("_total")) return "not _total: " + line;
            }
            continue;
        }
        const std::size_t end = line.rfind(' ');
        if (end == std::string::npos || end + 1 == line.size()) return "no value: " + line;
        if (!samples.insert(line.substr(0, end)).second) return "twice: " + line;
        std::string family = line.substr(0, line.find_first_of("{ "));
        for (const char* suffix : {"_bucket", "_sum", "_count"}) {
            const std::string base = family.substr(0, family.rfind(suffix));
            if (!types.contains(family) && family.ends_with(suffix)) family = base;
        }
        if (!types.contains(family) || !helped.contains(family)) return "not announced: " + line;
    }
    return samples.empty() ? "nothing" : "";
}

}  // namespace

TEST_CASE("a pool's series are born at zero", "[unit][metrics]") {
    Metrics metrics;
    CHECK(contains(metrics.render(), "hearth_double_bind_refused_total 0"));
    CHECK(contains(metrics.render(), "hearth_build_info{version="));
    CHECK_FALSE(contains(metrics.render(), "pool=\"p\""));
    metrics.bornPool("p");
    metrics.bornPool("p");
    const std::string text = metrics.render();
    CHECK(contains(text, "hearth_claims_total{pool=\"p\",result=\"ok\",source=\"warm\"} 0"));
    CHECK(contains(
        text, "hearth_claims_total{pool=\"p\",reason=\"POOL_EXHAUSTED\",result=\"refused\"} 0"));
    CHECK(contains(text, "hearth_claims_total{pool=\"p\",result=\"cancelled\"} 0"));
    CHECK(contains(text, "hearth_pool_degraded{pool=\"p\"} 0"));
    CHECK(contains(text, "hearth_reclaims_total{pool=\"p\",reason=\"idle\"} 0"));
    CHECK(contains(text, "hearth_pool_sandboxes{pool=\"p\",state=\"ready\"} 0"));
    CHECK(contains(text, "hearth_pool_exhausted_total{pool=\"p\"} 0"));
    CHECK(contains(text, "hearth_claim_duration_seconds_count{pool=\"p\",source=\"cold\"} 0"));
}

TEST_CASE("a forgotten pool leaves no series and the others keep theirs", "[unit][metrics]") {
    Metrics metrics;
    metrics.bornPool("p");
    metrics.bornPool("q");
    metrics.claim("p", "warm", 0.1);
    metrics.sandboxFailure("p", "create");
    metrics.execution("p", "python", "ok", 0.1, 0.01);
    metrics.claim("q", "warm", 0.1);
    metrics.forgetPool("p");
    metrics.forgetPool("never");
    const std::string text = metrics.render();
    CHECK_FALSE(contains(text, "pool=\"p\""));
    CHECK(contains(text, "hearth_claims_total{pool=\"q\",result=\"ok\",source=\"warm\"} 1"));
    metrics.bornPool("p");
    CHECK(contains(metrics.render(),
                   "hearth_claims_total{pool=\"p\",result=\"ok\",source=\"warm\"} 0"));
}

TEST_CASE("a refused claim counts by its reason and has no latency", "[unit][metrics]") {
    Metrics metrics;
    metrics.bornPool("p");
    metrics.claimUnserved("p", hearth::ErrorCode::PoolExhausted);
    metrics.claimUnserved("p", hearth::ErrorCode::SandboxLost);
    metrics.claimUnserved("", hearth::ErrorCode::NotFound);
    metrics.claimCancelled("p");
    const std::string text = metrics.render();
    for (const char* series :
         {"pool=\"p\",reason=\"POOL_EXHAUSTED\",result=\"refused\"",
          "pool=\"p\",reason=\"SANDBOX_LOST\",result=\"failed\"",
          "pool=\"\",reason=\"NOT_FOUND\",result=\"refused\"", "pool=\"p\",result=\"cancelled\""}) {
        CHECK(contains(text, "hearth_claims_total{" + std::string(series) + "} 1\n"));
    }
    for (const char* source : {"warm", "queued", "cold"}) {
        CHECK(contains(text, "hearth_claim_duration_seconds_count{pool=\"p\",source=\"" +
                                 std::string(source) + "\"} 0"));
    }
}

TEST_CASE("only a workspace that ended at a deadline has a lag", "[unit][metrics]") {
    Metrics metrics;
    metrics.reclaim("p", hearth::EndReason::Deleted);
    metrics.reclaim("p", hearth::EndReason::Idle, 0.1);
    CHECK(contains(metrics.render(), "hearth_reclaim_lag_seconds_count{pool=\"p\"} 1"));
}

TEST_CASE("the rendered metrics are a sound exposition", "[unit][metrics]") {
    Metrics metrics;
    metrics.bornPool("p");
    metrics.claimStage("p", "bind", 0.001);
    metrics.claimQueued("p", 1);
    metrics.sandboxStart("p", 0.2);
    metrics.reclaim("p", hearth::EndReason::Idle, 0.1);
    metrics.execution("p", "bash", "failed", 1, 0.1);
    metrics.reconcile("pool", "ok", 0.1);
    metrics.workQueueRetry();
    metrics.http("/v1/pools", "GET", 200, 0.1);
    metrics.http("/v1/\"odd\"\n\\", "GET", 404, 0.1);
    metrics.httpRefused("head");
    metrics.mcp("tools/call", "run", "ok");
    metrics.doubleBindRefused();
    metrics.poolDegraded("p", true);
    metrics.httpWorkers("api", 128);
    metrics.httpWorkersBusy("api").Increment();
    metrics.disk("state", 1e9, 1e8);
    metrics.images(2, 1e6);
    metrics.launcher(true, 1, 2);
    const std::string text = metrics.render();
    CHECK(sanityProblem(text) == "");
    CHECK(text.ends_with("\n"));
    CHECK(contains(text, "\nprocess_"));
}
