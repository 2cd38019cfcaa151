#include "controller/spec/PoolSpec.h"
#include "controller/spec/TemplateHash.h"
#include "tests/support/Support.h"

using namespace hearth;
using namespace hearth::controller;
using namespace hearth::test;

namespace {

Json manifest() {
    return {{"apiVersion", "hearth.dev/v1alpha1"},
            {"kind", "SandboxPool"},
            {"metadata", {{"name", "p"}}},
            {"spec", {{"template", {{"image", "python"}}}}}};
}

/// True if the document is refused with `code` and one of the errors is about `pointer`.
bool refusedAt(const Json& document, ErrorCode code, const std::string& pointer) {
    try {
        parsePool(document);
    } catch (const Error& e) {
        if (e.code() != code) return false;
        for (const FieldError& field : e.fields()) {
            if (field.pointer == pointer) return true;
        }
    }
    return false;
}

bool refusedWith(const std::string& pointer, const Json& value,
                 ErrorCode code = ErrorCode::InvalidSpec) {
    Json document = manifest();
    document[Json::json_pointer(pointer)] = value;
    return refusedAt(document, code, pointer);
}

}  // namespace

TEST_CASE("a manifest that names only an image gets every default", "[unit][controller]") {
    const Pool pool = parsePool(manifest());
    PoolSpec expected;
    expected.image = "python";
    CHECK(pool.name == "p");
    CHECK(pool.spec == expected);
    CHECK(pool.generation == 1);
    CHECK_FALSE(pool.deleting);
}

TEST_CASE("the document of a pool reads back as the same pool", "[unit][controller]") {
    PoolSpec spec;
    spec.image = "node:22";
    spec.allow_tags = true;
    spec.limits = {1500, 1ULL << 30U, 64, 100'000'000, 3ULL << 20U};
    spec.storage = pool::Storage::Memory;
    spec.warm_min = 3;
    spec.warm_max = 7;
    spec.parallel_creates = 4;
    spec.max_age = std::chrono::minutes(90);
    spec.on_empty = OnEmpty::Fail;
    spec.max_wait = std::chrono::milliseconds(1500);
    spec.prewarm_packages = {"numpy==2.1", "pandas"};
    spec.max_queue = 5;
    spec.idle_timeout = std::chrono::seconds(0);
    spec.max_lifetime = std::chrono::hours(1);
    spec.silence_timeout = std::chrono::seconds(45);
    spec.max_members = 9;
    spec.per_tenant = 2;
    const Pool pool = parsePool(poolDocument("n", spec));
    CHECK(pool.spec == spec);
    CHECK(poolDocument(pool.name, pool.spec) == poolDocument("n", spec));
    CHECK(parsePool(poolDocument("d", parsePool(manifest()).spec)).spec ==
          parsePool(manifest()).spec);
}

TEST_CASE("packages have names and versions of an index, and no paths or options",
          "[unit][controller]") {
    Json document = manifest();
    Json& prewarm = document["spec"]["template"]["prewarm"];
    prewarm["packages"] = {"numpy==2.1", "pandas[excel]>=2,<3", "tomli; python_version < '3.11'"};
    CHECK(parsePool(document).spec.prewarm_packages.size() == 3);
    for (const char* wrong : {"", "-r x", "--index-url=http://x", "../x", "a @ file:///x", "a b",
                              "git+https://x", "./x.whl"}) {
        CAPTURE(wrong);
        prewarm["packages"] = {"numpy", wrong};
        const Error error = errorOf([&] { parsePool(document); });
        REQUIRE(error.fields().size() == 1);
        CHECK(error.fields()[0].pointer == "/spec/template/prewarm/packages/1");
    }
}

TEST_CASE("a manifest may contain the fields that the server adds", "[unit][controller]") {
    Json document = manifest();
    document["metadata"]["generation"] = 4;
    document["metadata"]["resourceVersion"] = 9;
    document["metadata"]["createdAt"] = "2026-01-01T00:00:00.000Z";
    document["status"] = {{"ready", 3}};
    CHECK_NOTHROW(parsePool(document));
}

TEST_CASE("unknown fields are refused with their place and the names that exist",
          "[unit][controller]") {
    CHECK(refusedWith("/spec/warm/minimum", 1));
    CHECK(refusedWith("/spec/template/resources/mem", "1Gi"));
    CHECK(refusedWith("/metadata/labels", Json::object()));
    CHECK(refusedWith("/extra", true));
    Json document = manifest();
    document["spec"]["limits"] = {{"tenants", 1}};
    const Error error = errorOf([&] { parsePool(document); });
    REQUIRE(error.fields().size() == 1);
    CHECK(error.fields()[0].reason.find("members, perTenant") != std::string::npos);
}

TEST_CASE("wrong types and values out of range are refused one by one", "[unit][controller]") {
    for (const Json& value :
         {Json("3"), Json(-1), Json(1001), Json(1.5), Json(true), Json(1e300)}) {
        CAPTURE(value.dump());
        CHECK(refusedWith("/spec/warm/max", value));
    }
    CHECK(refusedWith("/spec/template/prewarm/packages", "numpy"));
    CHECK(refusedWith("/spec/template/prewarm/packages", Json(std::vector<std::string>(101, "a"))));
    CHECK(refusedWith("/spec/warm", 4));
    CHECK(refusedWith("/spec", Json::array()));
    CHECK(refusedWith("/spec/warm/parallelCreates", 0));
    CHECK(refusedWith("/spec/warm/parallelCreates", 17));
    CHECK(refusedWith("/spec/warm/maxAge", "soon"));
    CHECK(refusedWith("/spec/warm/maxAge", 60));
    CHECK(refusedWith("/spec/template/image", 7));
    CHECK(refusedWith("/spec/template/image", ""));
    CHECK(refusedWith("/spec/template/image", "../python"));
    CHECK(refusedWith("/spec/template/image", "python:"));
    CHECK(refusedWith("/spec/template/allowTags", "yes"));
    CHECK(refusedWith("/spec/template/storage", "disk"));
    CHECK(refusedWith("/spec/template/resources/cpu", "0"));
    CHECK(refusedWith("/spec/template/resources/cpu", "lots"));
    CHECK(refusedWith("/spec/template/resources/memory", "1Mi"));
    CHECK(refusedWith("/spec/template/resources/memory", "2Pi"));
    CHECK(refusedWith("/spec/template/resources/pids", 4));
    CHECK(refusedWith("/spec/onEmpty/action", "Wait"));
    CHECK(refusedWith("/spec/onEmpty/maxWait", "11m"));
    for (const char* name : {"", "A", "-a", "a-", "a_b", "a/b"}) {
        CHECK(refusedWith("/metadata/name", name));
    }
    CHECK(refusedWith("/metadata/name", std::string(64, 'a')));
    CHECK(refusedWith("/kind", "Pool"));
    CHECK(refusedWith("/apiVersion", "v1"));
    CHECK(codeOf([] { parsePool(Json::array()); }) == ErrorCode::InvalidSpec);
}

TEST_CASE("limits that contradict each other are refused", "[unit][controller]") {
    Json document = manifest();
    document["spec"]["warm"] = {{"min", 5}, {"max", 4}};
    CHECK(refusedAt(document, ErrorCode::InvalidSpec, "/spec/warm/min"));
    document = manifest();
    document["spec"]["template"]["resources"] = {{"memory", "100Mi"}, {"tmp", "64Mi"}};
    CHECK(refusedAt(document, ErrorCode::InvalidSpec, "/spec/template/resources/tmp"));
}

TEST_CASE("all mistakes are reported at once", "[unit][controller]") {
    Json document = manifest();
    document["spec"]["warm"] = {{"min", "x"}, {"maximum", 1}};
    document["kind"] = "Other";
    CHECK(errorOf([&] { parsePool(document); }).fields().size() == 3);
}

TEST_CASE("a network is None, Mirror, or Egress with an allow-list", "[unit][controller]") {
    const auto invalid = ErrorCode::InvalidSpec;
    CHECK(refusedWith("/spec/template/network/mode", "Internet", invalid));
    Json document = manifest();
    document["spec"]["template"]["network"] = {{"mode", "Egress"}};
    CHECK(errorOf([&] { parsePool(document); }).fields()[0].pointer ==
          "/spec/template/network/allow");
    document["spec"]["template"]["network"] = {{"mode", "Mirror"}, {"allow", {"example.com"}}};
    CHECK(errorOf([&] { parsePool(document); }).fields()[0].pointer ==
          "/spec/template/network/allow");
    document["spec"]["template"]["network"] = {
        {"mode", "Egress"}, {"allow", {"example.com", "http://x", "10.0.0.0/8"}}};
    CHECK(errorOf([&] { parsePool(document); }).fields()[0].pointer ==
          "/spec/template/network/allow/1");
    document["spec"]["template"]["network"]["allow"] = {"*.example.com:443", "203.0.113.0/24"};
    const Pool pool = parsePool(document);
    CHECK(pool.spec.network == egress::NetworkMode::Egress);
    CHECK(pool.spec.network_allow.size() == 2);
    CHECK(parsePool(poolDocument(pool.name, pool.spec)).spec == pool.spec);
}

TEST_CASE("the allowed silence of a sandbox has a minimum", "[unit][controller]") {
    Json document = manifest();
    CHECK(parsePool(document).spec.silence_timeout == std::chrono::minutes(5));
    for (const char* good : {"10s", "2h", "0s"}) {
        document["spec"]["lifecycle"]["silenceTimeout"] = good;
        CHECK_NOTHROW(parsePool(document));
    }
    CHECK(refusedWith("/spec/lifecycle/silenceTimeout", "9s", ErrorCode::InvalidSpec));
    CHECK(refusedWith("/spec/lifecycle/silenceTimeout", 5, ErrorCode::InvalidSpec));
}

TEST_CASE("a lifecycle sets what keeps a workspace alive and when its end is announced",
          "[unit][controller]") {
    Json document = manifest();
    CHECK(parsePool(document).spec.count_running_work);
    CHECK(parsePool(document).spec.warn_before == std::chrono::seconds(30));
    document["spec"]["lifecycle"]["countRunningWork"] = false;
    document["spec"]["lifecycle"]["warnBefore"] = "0s";
    const Pool pool = parsePool(document);
    CHECK_FALSE(pool.spec.count_running_work);
    CHECK(pool.spec.warn_before.count() == 0);
    CHECK(parsePool(poolDocument("p", pool.spec)).spec == pool.spec);
    CHECK(refusedWith("/spec/lifecycle/countRunningWork", "no", ErrorCode::InvalidSpec));
    CHECK(refusedWith("/spec/lifecycle/warnBefore", 30, ErrorCode::InvalidSpec));
}

TEST_CASE("schedules are read whole, and each mistake in them has its place",
          "[unit][controller]") {
    Json document = manifest();
    document["spec"]["schedules"] = Json::parse(R"([
        {"name": "night", "cron": "0 20 * * *", "timeZone": "Asia/Shanghai", "warm": {"min": 0, "max": 2}},
        {"name": "peak", "cron": "0 9 * * mon-fri", "duration": "2h", "warm": {"min": 8}},
        {"name": "own", "cron": "@daily", "warm": {}},
        {"name": "sweep", "cron": "0 4 * * *", "sweep": true}])");
    const Pool pool = parsePool(document);
    REQUIRE(pool.spec.schedules.size() == 4);
    CHECK(pool.spec.schedules[0].zone.name() == "Asia/Shanghai");
    CHECK(pool.spec.schedules[1].duration == std::chrono::hours(2));
    CHECK(parsePool(poolDocument(pool.name, pool.spec)).spec == pool.spec);

    const auto wrong = [&](const char* entry, const std::string& pointer, const char* reason) {
        INFO(entry);
        document["spec"]["schedules"] = Json::array({Json::parse(entry)});
        const Error error = errorOf([&] { parsePool(document); });
        CHECK(error.code() == ErrorCode::InvalidSpec);
        REQUIRE_FALSE(error.fields().empty());
        CHECK(error.fields()[0].pointer == "/spec/schedules/0" + pointer);
        CHECK_THAT(error.fields()[0].reason, Catch::Contains(reason));
    };
    wrong(R"("x")", "", "must be an object");
    wrong(R"({"cron": "0 0 * * *", "warm": {}})", "/name", "");
    wrong(R"({"name": "a", "warm": {}})", "/cron", "it has 0 fields");
    wrong(R"({"name": "a", "cron": "0 25 * * *", "warm": {}})", "/cron", "0 to 23");
    wrong(R"({"name": "a", "cron": "@daily", "timeZone": "Mars/Base", "warm": {}})", "/timeZone",
          "\"Mars/Base\" is no time zone");
    wrong(R"({"name": "a", "cron": "@daily", "duration": "400d", "warm": {}})", "/duration",
          "366d");
    wrong(R"({"name": "a", "cron": "@daily", "duration": "soon", "warm": {}})", "/duration", "10m");
    wrong(R"({"name": "a", "cron": "@daily"})", "", "needs warm, or sweep: true");
    wrong(R"({"name": "a", "cron": "@daily", "duration": "1h", "sweep": true})", "/duration",
          "needs warm");
    wrong(R"({"name": "a", "cron": "@daily", "warm": {"min": 3, "max": 2}})", "/warm/min", "above");
    wrong(R"({"name": "a", "cron": "@daily", "warm": {"most": 3}})", "/warm/most", "unknown field");
    wrong(R"({"name": "a", "cron": "@daily", "warm": {"max": 5000}})", "/warm/max", "1000");
    wrong(R"({"name": "a", "cron": "@daily", "warm": {}, "zone": "UTC"})", "/zone", "timeZone");
    const Json one = Json::parse(R"({"name": "a", "cron": "@daily", "warm": {}})");
    document["spec"]["schedules"] = {one, one};
    CHECK(errorOf([&] { parsePool(document); }).fields()[0].pointer == "/spec/schedules/1/name");
}

TEST_CASE("a runtime class is a name, and with podTemplate part of the template",
          "[unit][controller]") {
    for (const char* wrong : {"g visor", "gvisor.", ".gvisor", "gVisor", "a..b"}) {
        CHECK(refusedWith("/spec/template/runtimeClass", wrong, ErrorCode::InvalidSpec));
    }
    Json document = manifest();
    const PoolSpec plain = parsePool(document).spec;
    document["spec"]["template"]["runtimeClass"] = "gvisor.v1";
    const PoolSpec classy = parsePool(document).spec;
    CHECK(classy.runtime_class == "gvisor.v1");
    document["spec"]["template"]["podTemplate"] = {{"spec", {{"nodeSelector", {{"zone", "a"}}}}}};
    const PoolSpec placed = parsePool(document).spec;
    CHECK(parsePool(poolDocument("p", placed)).spec == placed);
    CHECK(templateHash(plain, "") != templateHash(classy, ""));
    CHECK(templateHash(classy, "") != templateHash(placed, ""));
}

TEST_CASE("the GPUs of a pool are read with their defaults, written back, and part of its template",
          "[unit][controller]") {
    Json document = manifest();
    const PoolSpec none = parsePool(document).spec;
    CHECK(none.gpu == GpuSpec());
    document["spec"]["template"]["gpu"] = {{"count", 2}, {"product", {"H100", "1g.10gb"}}};
    const PoolSpec two = parsePool(document).spec;
    CHECK(two.gpu == GpuSpec{2, {"H100", "1g.10gb"}, GpuSharing::Exclusive, 4});
    CHECK(parsePool(poolDocument("p", two)).spec == two);
    CHECK(templateHash(two, "") != templateHash(none, ""));
    PoolSpec shared = two;
    shared.gpu.sharing = GpuSharing::Shared;
    CHECK(templateHash(two, "") != templateHash(shared, ""));

    const auto wrong = [](const char* field, const Json& value) {
        return refusedWith(std::string("/spec/template/gpu/") + field, value);
    };
    CHECK(wrong("count", 17));
    CHECK(wrong("count", -1));
    CHECK(wrong("count", "1"));
    CHECK(wrong("sharing", "Sliced"));
    CHECK(wrong("sharedBy", 1));
    CHECK(wrong("model", "H100"));
    document["spec"]["template"]["gpu"] = {{"count", 1}, {"product", {""}}};
    CHECK(refusedAt(document, ErrorCode::InvalidSpec, "/spec/template/gpu/product/0"));
    document["spec"]["template"]["gpu"] = {{"product", {"H100"}}};
    CHECK(refusedAt(document, ErrorCode::InvalidSpec, "/spec/template/gpu/count"));
}

TEST_CASE("idle workspaces are paused only in pools that count running work",
          "[unit][controller]") {
    Json document = manifest();
    document["spec"]["lifecycle"] = {{"onIdle", "Pause"}};
    const PoolSpec spec = parsePool(document).spec;
    CHECK(spec.on_idle == OnIdle::Pause);
    CHECK(poolDocument("p", spec)["spec"]["lifecycle"]["onIdle"] == "Pause");
    CHECK(refusedWith("/spec/lifecycle/onIdle", "Sleep", ErrorCode::InvalidSpec));
    document["spec"]["lifecycle"]["countRunningWork"] = false;
    CHECK(refusedAt(document, ErrorCode::InvalidSpec, "/spec/lifecycle/countRunningWork"));
}

TEST_CASE("a pool may be sized by a forecast, with a share of misses in its bounds",
          "[unit][controller]") {
    Json document = manifest();
    document["spec"]["sizing"] = {{"mode", "Predictive"}, {"missRate", 0.01}};
    const PoolSpec spec = parsePool(document).spec;
    CHECK(spec.sizing == SizingMode::Predictive);
    CHECK(spec.miss_rate == 0.01);
    CHECK(poolDocument("p", spec)["spec"]["sizing"] == document["spec"]["sizing"]);
    for (const Json& wrong : {Json(0), Json(0.9), Json(-0.1), Json("0.1")}) {
        CHECK(refusedWith("/spec/sizing/missRate", wrong, ErrorCode::InvalidSpec));
    }
    CHECK(refusedWith("/spec/sizing/mode", "Clever", ErrorCode::InvalidSpec));
}

TEST_CASE("a tag is an image only where the pool allows it", "[unit][controller]") {
    const std::string digest = "@sha256:" + std::string(64, 'a');
    for (const std::string& image :
         {std::string("python-3.9"), "python" + digest, "registry:5000/team/app:1" + digest}) {
        INFO(image);
        Json document = manifest();
        document["spec"]["template"]["image"] = image;
        CHECK(parsePool(document).spec.image == image);
    }
    for (const char* image : {"python:3.9-slim", "docker.io/library/python", "team/app:latest"}) {
        INFO(image);
        CHECK(refusedWith("/spec/template/image", image));
        Json document = manifest();
        document["spec"]["template"] = {{"image", image}, {"allowTags", true}};
        CHECK(parsePool(document).spec.image == image);
    }
}

TEST_CASE("prewarm is read, implied, refused with a pointer, and written back",
          "[unit][controller]") {
    Json document = manifest();
    Json& prewarm = document["spec"]["template"]["prewarm"];
    prewarm = {{"imports", {"numpy", "matplotlib.pyplot"}}, {"command", {"sh", "-c", "true"}}};
    const PoolSpec spec = parsePool(document).spec;
    CHECK(spec.prewarm_languages == std::vector<std::string>{"python"});
    CHECK(spec.prewarm_imports.size() == 2);
    CHECK(spec.prewarm_command.size() == 3);
    CHECK(spec.prewarm_timeout == std::chrono::seconds(60));
    CHECK(parsePool(poolDocument("p", spec)).spec == spec);
    const std::string at = "/spec/template/prewarm";
    for (const char* bad : {"", "1a", "a..b", "a b", "os;x", "a.", "-m"}) {
        INFO(bad);
        prewarm = {{"imports", {bad}}};
        CHECK(refusedAt(document, ErrorCode::InvalidSpec, at + "/imports/0"));
    }
    CHECK(refusedWith(at + "/imports", "numpy"));
    CHECK(refusedWith(at + "/timeout", "0s"));
    prewarm = {{"languages", {"node"}}, {"imports", {"numpy"}}};
    CHECK(refusedAt(document, ErrorCode::InvalidSpec, at + "/imports"));
    prewarm = {{"languages", {"Python"}}};
    CHECK(refusedAt(document, ErrorCode::InvalidSpec, at + "/languages/0"));
    prewarm = {{"command", {""}}};
    CHECK(refusedAt(document, ErrorCode::InvalidSpec, at + "/command/0"));
}
