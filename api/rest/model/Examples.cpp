#include "api/rest/model/Examples.h"

namespace hearth::rest {
namespace {

Json claimExample() {
    return parseJson(R"({"source":"warm","queueMs":0,"pickMs":0.01,"bindMs":0.2,"totalMs":0.3})");
}

}  // namespace

Json workspaceExample() {
    Json out = {{"id", kExampleWorkspace}, {"pool", kExamplePool}, {"sandboxId", kExampleSandbox}};
    out.update(parseJson(R"({"phase":"Active","tenant":"default","name":null,"labels":{},
        "root":"/workspace","createdAt":"2026-11-21T03:04:05.678Z",
        "lastActiveAt":"2026-11-21T03:04:06.120Z","idleExpiresAt":"2026-11-21T03:14:06.120Z",
        "expiresAt":"2026-11-21T05:04:05.678Z","gpus":[],"network":"None",
        "limits":{"cpu":1.0,"memoryBytes":536870912,"pids":128,"workspaceBytes":1073741824,
                  "tmpBytes":67108864}})"));
    out["claim"] = claimExample();
    return out;
}

Json executionExample() {
    Json out = {{"id", kExampleExecution}, {"workspaceId", kExampleWorkspace}};
    out.update(parseJson(R"({"language":null,"status":"ok","exitCode":0,"signal":null,
        "stdout":"3\n","stderr":"","truncated":false,"droppedBytes":0,"results":[],
        "droppedResults":0,"error":null,"artifacts":[],"artifactsTruncated":false,
        "background":false,"startedAt":"2026-11-21T03:04:06.100Z","durationMs":3.1,
        "usage":{"cpuMs":2,"peakMemoryBytes":1454080},"interpreter":null,"context":null,
        "contextKept":null})"));
    return out;
}

Json runningExample() {
    Json out = executionExample();
    out.update(parseJson(R"({"status":"running","exitCode":null,"stdout":"","durationMs":null,
        "usage":{"cpuMs":0,"peakMemoryBytes":0}})"));
    return out;
}

Json oneShotExample() {
    Json out = executionExample();
    out["claim"] = claimExample();
    return out;
}

Json contextExample() {
    return {{"id", kExampleContext}, {"workspaceId", kExampleWorkspace},
            {"language", "python"},  {"name", nullptr},
            {"cwd", nullptr},        {"createdAt", "2026-11-21T03:04:07.000Z"},
            {"executionId", nullptr}};
}

Json poolExample() {
    return parseJson(R"({"apiVersion":"hearth.dev/v1alpha1","kind":"SandboxPool",
        "metadata":{"name":"python","generation":1,"resourceVersion":"7",
                    "createdAt":"2026-11-21T03:00:00.000Z","deleting":false},
        "spec":{"template":{"image":"python","allowTags":false,
                    "resources":{"cpu":"1","memory":"512Mi","pids":128,"workspace":"1Gi",
                                 "tmp":"64Mi"},
                    "storage":"Disk","network":{"mode":"None","allow":[],"credentials":[]},
                    "prewarm":{"languages":["python"],"imports":["numpy"],"packages":[],
                               "command":[],"timeout":"1m"}},
                "warm":{"min":2,"max":20,"parallelCreates":2,"maxAge":"24h"},
                "sizing":{"mode":"Static","missRate":0.001},
                "onEmpty":{"action":"Queue","maxWait":"20s","maxQueue":64},
                "lifecycle":{"idleTimeout":"10m","maxLifetime":"2h","silenceTimeout":"5m",
                             "onIdle":"Reclaim","countRunningWork":true,"warnBefore":"30s"},
                "limits":{"members":60,"perTenant":50}},
        "status":{"observedGeneration":1,"ready":2,"claimed":1,"creating":0,"draining":0,
                  "failed":0,"desired":2,"waiting":0,"missRate":0.0,
                  "forecast":{"claimsPerSecond":0.2,"startSeconds":0.5,"target":2},
                  "conditions":[{"type":"Ready","status":"True","reason":"Filled",
                                 "message":"2 of 2 warm",
                                 "lastTransitionTime":"2026-11-21T03:00:02.000Z"}]}})");
}

Json sandboxExample() {
    Json out = {{"id", kExampleSandbox},
                {"pool", kExamplePool},
                {"phase", "Claimed"},
                {"generation", 1},
                {"workspaceId", kExampleWorkspace}};
    out.update(parseJson(R"({"tenant":"default","createdAt":"2026-11-21T03:00:01.000Z",
        "readyAt":"2026-11-21T03:00:02.000Z","image":"python","runtime":"oci"})"));
    return out;
}

Json eventExample() {
    return {{"id", 42},
            {"time", "2026-11-21T03:14:06.500Z"},
            {"type", "workspace.reclaimed"},
            {"resource", kExampleWorkspace},
            {"pool", kExamplePool},
            {"tenant", "default"},
            {"reason", "idle"},
            {"message", "a workspace ended"},
            {"traceId", nullptr}};
}

Json tokenExample() {
    return {{"id", kExampleToken},
            {"name", "ci"},
            {"tenant", "default"},
            {"role", "user"},
            {"createdAt", "2026-11-21T03:00:00.000Z"},
            {"expiresAt", nullptr},
            {"source", "store"}};
}

Json newTokenExample() {
    Json out = tokenExample();
    out["token"] = "hearth_0123456789abcdef";
    return out;
}

Json usageExample() {
    return parseJson(R"({"cpuMs":184,"memoryBytes":23068672,"memoryPeakBytes":41943040,
        "processes":2,"diskBytes":4096,"diskLimitBytes":1073741824,"gpus":[]})");
}

Json egressExample() {
    return parseJson(R"({"requests":1,"refused":0,"sentBytes":210,"receivedBytes":5120,
        "latest":[{"at":"2026-11-21T03:04:08.000Z","kind":"https",
                   "destination":"api.example.com:443","decision":"allowed","status":200,
                   "sentBytes":210,"receivedBytes":5120,"durationMs":82.5}]})");
}

Json packagesExample() {
    return {{"status", "done"},
            {"packages",
             {{"six", {{"state", "installed"}, {"version", "1.17.0"}, {"error", nullptr}}}}},
            {"error", nullptr},
            {"executionId", kExampleExecution}};
}

Json fileExample() {
    return {{"path", "out/plot.png"},
            {"type", "file"},
            {"size", 5120},
            {"mode", "0644"},
            {"modifiedAt", "2026-11-21T03:04:09.000Z"}};
}

Json linkExample() {
    return {{"url", "http://127.0.0.1:8080/v1/links/TOKEN/plot.png"},
            {"path", "plot.png"},
            {"expiresAt", "2026-11-21T04:04:09.000Z"}};
}

Json archiveExample() {
    return {{"files", 3}, {"directories", 1}, {"links", 0}, {"bytes", 10240}};
}

Json problemExample() {
    return parseJson(R"({"type":"urn:hearth:pool-exhausted","title":"No warm sandbox free",
        "status":429,"detail":"pool python has no free sandbox","instance":"/v1/workspaces",
        "errorCode":"POOL_EXHAUSTED","code":429,"message":"pool python has no free sandbox",
        "retryable":true,"retryAfterSeconds":3,"requestId":"req_0123456789abcdef"})");
}

Json capabilitiesExample() {
    return parseJson(R"({"version":"0.1.0","runtime":"oci","runtimeVersion":"runc version 1.1.5",
        "isolation":{"userNamespaces":true,"seccomp":true,"cgroup":"v2","network":"None",
                     "knownHoles":[]},
        "images":[{"name":"python","digest":"sha256:0000","reference":"",
                   "languages":["bash","javascript","python","sh"]}],
        "onDemand":{"allow":[],"maxSandboxes":20},"networks":["None","Mirror","Egress"],
        "mirrors":["pypi"],"gpus":[],"protocols":{"rest":"v1","mcp":["2025-11-25"]}})");
}

}  // namespace hearth::rest
