#include "api/rest/model/Answers.h"

#include "api/rest/model/Examples.h"
#include "api/rest/model/PoolSpecShape.h"
#include "controller/contract/Executions.h"
#include "controller/contract/Pools.h"
#include "controller/contract/RoleName.h"
#include "controller/contract/Tokens.h"
#include "controller/services/PackageService.h"

namespace hearth::rest {
namespace {

Schema text() {
    return Schema::string();
}
Schema textOrNull() {
    return Schema::string().nullable();
}
Schema time() {
    return Schema::string(kDateTime);
}
Schema timeOrNull() {
    return Schema::string(kDateTime).nullable();
}

Schema ledgerSchema() {
    return Schema::object()
        .required(
            "source",
            Schema::oneOf(controller::kClaimSources.all())
                .describe(
                    "Warm: a sandbox was ready; queued: the claim waited in line for one that was "
                    "in use or being made; cold: the sandbox was made after the request"))
        .optional("pullMs", Schema::number().describe("Pulling its image from a registry"))
        .optional("unpackMs", Schema::number().describe("Making its image ready"))
        .optional("createMs", Schema::number().describe("Cold: making the sandbox"))
        .optional("warmMs", Schema::number().describe("Cold: waiting for its agent"))
        .required("queueMs", Schema::number().describe("The wait for other work, in addition"))
        .required("pickMs", Schema::number())
        .required("bindMs", Schema::number())
        .required("totalMs", Schema::number())
        .describe("How long each stage of the claim took")
        .named("ClaimLedger");
}

Schema limitsSchema() {
    return Schema::object()
        .required("cpu", Schema::number().describe("Cores"))
        .required("memoryBytes", Schema::integer())
        .required("pids", Schema::integer())
        .required("workspaceBytes", Schema::integer())
        .required("tmpBytes", Schema::integer())
        .named("Limits");
}

Schema forecastSchema() {
    return Schema::object()
        .required("claimsPerSecond", Schema::number().describe("Expected"))
        .required("startSeconds", Schema::number().describe("The mean time of a start"))
        .required("target",
                  Schema::integer().describe("Warm sandboxes that spec.sizing.missRate needs"))
        .named("PoolForecast");
}

Schema poolScheduleSchema() {
    return Schema::object()
        .required("entry", textOrNull().describe("In force now; null: the pool's own numbers"))
        .required("min", Schema::integer())
        .required("max", Schema::integer())
        .required("since", textOrNull())
        .required("nextChange", textOrNull().describe("null: none is near"))
        .required("nextEntry", textOrNull().describe("null: the pool's own numbers"))
        .describe("The schedule state of a pool that has schedules")
        .named("PoolScheduleStatus");
}

Schema poolPackagesSchema() {
    Schema installed = Schema::object();
    installed.open().describe("Version by name");
    return Schema::object()
        .required("digest",
                  Schema::string().describe("The digest of the layer that all its sandboxes share"))
        .required("lock", Schema::string().describe(
                              "The file in state/layers of the data directory; once removed, the "
                              "packages are resolved again"))
        .required("installed", installed)
        .named("PoolPackages");
}

Schema conditionSchema() {
    return Schema::object()
        .required("type", Schema::oneOf(controller::kConditionTypes.all()))
        .required("status", Schema::oneOf({"True", "False"}))
        .required("reason", text())
        .required("message", text())
        .required("lastTransitionTime", timeOrNull())
        .named("Condition");
}

Schema tokenFields() {
    return Schema::object()
        .required("id", text())
        .required("name", text())
        .required("tenant", text())
        .required("role", Schema::oneOf(controller::kRoles.all()))
        .required("createdAt", textOrNull())
        .required("expiresAt", textOrNull())
        .required("source", Schema::oneOf(controller::kTokenSources.all()));
}

}  // namespace

Schema workspaceSchema() {
    return Schema::object()
        .required("id", text().example("ws_5f0c2c9a3d1e4b7f8a6b5c4d3e2f1a0b"))
        .required("pool", text())
        .required("sandboxId", text())
        .required("phase", Schema::oneOf(controller::kWorkspacePhases.all()))
        .required("tenant", text())
        .required("name", textOrNull())
        .required("labels", Schema::map(kLabelKey, text()))
        .required("root", text())
        .required("createdAt", time())
        .required("lastActiveAt", time())
        .required("idleExpiresAt", timeOrNull().describe("null while something runs"))
        .required("expiresAt", timeOrNull())
        .required("gpus", Schema::array(text()))
        .required("network", text())
        .optional("credentials",
                  Schema::array(Schema::object().open())
                      .describe("What is added to requests to the outside, without the secrets"))
        .required("limits", limitsSchema())
        .optional("claim", ledgerSchema())
        .optional("traceId", text())
        .example(workspaceExample())
        .named("Workspace");
}

Schema resultSchema() {
    return Schema::object()
        .required("main", Schema::boolean().describe("The value of the last expression"))
        .required("mime", Schema::map(kResultType, Schema::any())
                              .describe("Text by its type; base64 for image/png, jpeg, gif and "
                                        "webp; JSON for application/json and …+json"))
        .optional("leftOut",
                  Schema::array(Schema::object()
                                    .required("type", text())
                                    .required("reason", text())
                                    .named("LeftOutForm"))
                      .describe("Forms that do not fit: too large, too deep, an integer of more "
                                "than 64 bits, not of their type"))
        .example({{"main", true}, {"mime", {{"text/plain", "2"}}}})
        .named("Result");
}

Schema executionErrorSchema() {
    return Schema::object()
        .optional("name", text())
        .optional("message", text())
        .optional("traceback", text())
        .open()
        .describe("An uncaught exception of the code; untrusted text")
        .named("ExecutionError");
}

Schema artifactSchema() {
    return Schema::object()
        .required("path", text())
        .required("size", Schema::integer())
        .required("mime", text())
        .required("sha256", textOrNull().describe("null if it was not read"))
        .required("url", textOrNull().describe("Works without a token; null: no copy is kept"))
        .required("urlExpiresAt", timeOrNull())
        .optional(
            "reason",
            Schema::oneOf(controller::kNotKept.all())
                .describe("Why no copy is kept. changed: while it was copied; lost: its sandbox "
                          "ended; gone: the copy had to make room or has expired"))
        .named("Artifact");
}

Schema executionSchema() {
    return Schema::object()
        .required("id", text().example("ex_5f0c2c9a3d1e4b7f8a6b5c4d3e2f1a0b"))
        .required("workspaceId", text())
        .required("language", textOrNull().describe("null for a command"))
        .required("status", Schema::oneOf(controller::kExecutionStatuses.all())
                                .describe("A program that fails is still HTTP 200"))
        .required("exitCode", Schema::integer().nullable())
        .required("signal", textOrNull())
        .required("stdout",
                  text().describe("Bytes that are not UTF-8 are U+FFFD; a line `[… N bytes "
                                  "were not kept …]` stands between head and tail of "
                                  "output that is cut"))
        .required("stderr", text())
        .required("truncated", Schema::boolean())
        .required("droppedBytes", Schema::integer())
        .required(
            "results",
            Schema::array(resultSchema())
                .describe("The results of the code, in order: its last value, figures, tables"))
        .required("droppedResults",
                  Schema::integer().describe(
                      "Results that were too many, too large or malformed to keep"))
        .required("error", executionErrorSchema().nullable())
        .required("artifacts", Schema::array(artifactSchema()))
        .required("artifactsTruncated",
                  Schema::boolean().describe("The run may have made or changed more files than "
                                             "are listed: at most 256, of a tree of at most "
                                             "200,000 entries and 64 levels"))
        .required("background", Schema::boolean())
        .required("startedAt", time())
        .required("durationMs", Schema::number().nullable())
        .required("usage", Schema::object()
                               .required("cpuMs", Schema::integer())
                               .required("peakMemoryBytes", Schema::integer())
                               .named("ExecutionUsage"))
        .required("interpreter",
                  textOrNull().describe("How code was run: zygote (a fresh interpreter that was "
                                        "forked ahead), cold (a process of its own), context; of "
                                        "a command: parked (a shell that was started ahead), else "
                                        "null"))
        .required("context", textOrNull().describe("The context it ran in"))
        .required("contextKept", Schema::boolean().nullable().describe(
                                     "After its end: whether its context is still alive"))
        .optional("installed",
                  Schema::map(kDisplayName, text())
                      .describe("The requested packages that are installed, with their "
                                "versions. `error` is a PackageError if the execution did not "
                                "start because of them"))
        .optional("installMs",
                  Schema::integer().describe("The part of `durationMs` that installing took"))
        .optional("notInstalled",
                  Schema::map(kDisplayName, text())
                      .describe("With `autoPackages`: missing imports of the code without a "
                                "known distribution, and what to do"))
        .optional("claim", ledgerSchema())
        .optional("traceId", text())
        .example(executionExample())
        .named("Execution");
}

Schema contextSchema() {
    return Schema::object()
        .required("id", text().example("cx_5f0c2c9a3d1e4b7f8a6b5c4d3e2f1a0b"))
        .required("workspaceId", text())
        .required("language", text().example("python"))
        .required("name", textOrNull())
        .required("cwd", textOrNull().describe("null: the workspace's root"))
        .required("createdAt", time())
        .required("executionId", textOrNull().describe("The execution it runs now"))
        .example(contextExample())
        .named("Context");
}

Schema poolSchema() {
    Schema metadata = Schema::object();
    metadata.required("name", text())
        .required("generation", Schema::integer())
        .required("resourceVersion", text().describe("Also the ETag; for If-Match"))
        .required("createdAt", time())
        .required("deleting", Schema::boolean())
        .optional("onDemand",
                  text().describe("The image that claims named; only of pools that the server "
                                  "made for them"))
        .open();
    Schema count = Schema::integer();
    return Schema::object()
        .required("apiVersion", text())
        .required("kind", text())
        .required("metadata", metadata)
        .required("spec", poolSpecSchema())
        .required("status", Schema::object()
                                .required("observedGeneration", count)
                                .required("ready", count)
                                .required("claimed", count)
                                .required("creating", count)
                                .required("draining", count)
                                .required("failed", count)
                                .required("desired", count)
                                .required("waiting", count)
                                .optional("missRate", Schema::number().describe(
                                                          "Of recent claims, the share that found "
                                                          "no ready sandbox"))
                                .optional("forecast", forecastSchema())
                                .required("conditions", Schema::array(conditionSchema()))
                                .optional("schedule", poolScheduleSchema())
                                .optional("packages", poolPackagesSchema()))
        .example(poolExample())
        .named("Pool");
}

Schema sandboxSchema() {
    return Schema::object()
        .required("id", text())
        .required("pool", text())
        .required("phase", Schema::oneOf({"Creating", "Warming", "Ready", "Claimed", "Suspect",
                                          "Draining", "Failed", "Gone"}))
        .required("generation", Schema::integer())
        .required("workspaceId", textOrNull())
        .required("tenant", textOrNull())
        .required("createdAt", time())
        .required("readyAt", timeOrNull())
        .required("image", text())
        .required("runtime", text())
        .example(sandboxExample())
        .named("Sandbox");
}

Schema eventSchema() {
    return Schema::object()
        .required("id", Schema::integer())
        .required("time", time())
        .required("type", text().example("workspace.reclaimed"))
        .required("resource", text())
        .required("pool", textOrNull())
        .required("tenant", textOrNull())
        .required("reason", textOrNull())
        .required("message", text())
        .required("traceId", textOrNull().describe("The trace of the request that caused it"))
        .example(eventExample())
        .named("Event");
}

Schema tokenSchema() {
    return tokenFields().example(tokenExample()).named("Token");
}

// Not "NewToken": a generator for Go makes a function of that name for "Token".
Schema newTokenSchema() {
    return tokenFields()
        .required("token", text().describe("Shown this once; only its hash is kept"))
        .example(newTokenExample())
        .named("IssuedToken");
}

Schema usageSchema() {
    return Schema::object()
        .required("cpuMs", Schema::integer())
        .required("memoryBytes", Schema::integer())
        .required("memoryPeakBytes", Schema::integer())
        .required("processes", Schema::integer())
        .required("diskBytes", Schema::integer())
        .required("diskLimitBytes", Schema::integer())
        .required("gpus", Schema::array(text()))
        .example(usageExample())
        .named("Usage");
}

Schema egressSchema() {
    const Schema entry =
        Schema::object()
            .required("at", time())
            .required("kind", Schema::oneOf(egress::kEgressKinds.all())
                                  .describe("https: a request in a tunnel that got credentials"))
            .required("destination", text().example("api.example.com:443"))
            .required("decision", text().describe("allowed, hit, miss, or why it was refused"))
            .required("status", Schema::integer().describe("0 where the outside answered"))
            .required("sentBytes", Schema::integer())
            .required("receivedBytes", Schema::integer())
            .required("durationMs", Schema::number());
    return Schema::object()
        .required("requests", Schema::integer())
        .required("refused", Schema::integer())
        .required("sentBytes", Schema::integer())
        .required("receivedBytes", Schema::integer())
        .required("latest", Schema::array(entry).describe("Newest first, at most 200"))
        .example(egressExample())
        .named("Egress");
}

Schema packagesSchema() {
    const Schema package = Schema::object()
                               .required("state", Schema::oneOf(controller::kPackageStages.all()))
                               .required("version", textOrNull())
                               .required("error", textOrNull().describe("Why, in words"));
    return Schema::object()
        .required("status", Schema::oneOf(controller::kPackagesStatuses.all()))
        .required("packages", Schema::map(kDisplayName, package))
        .required("error", textOrNull().describe("Why nothing could be done at all"))
        .required("executionId",
                  text().describe("The execution whose output is the package manager's"))
        .example(packagesExample())
        .named("Packages");
}

Schema fileEntrySchema() {
    return Schema::object()
        .required("path", text())
        .required("type", Schema::oneOf(agent::kFileTypes.all()))
        .required("size", Schema::integer())
        .required("mode", text().example("0644"))
        .required("modifiedAt", time())
        .optional("target", text().describe("The target of a symbolic link"))
        .example(fileExample())
        .named("FileEntry");
}

Schema problemSchema() {
    return Schema::object()
        .required("type", text().example("urn:hearth:pool-exhausted"))
        .required("title", text())
        .required("status", Schema::integer())
        .required("detail", text())
        .optional("instance", text())
        .required("errorCode", text().example("POOL_EXHAUSTED"))
        .required("code", Schema::integer())
        .required("message", text())
        .required("retryable", Schema::boolean())
        .optional("retryAfterSeconds", Schema::integer())
        .optional("hint", text())
        .optional("reason", text().describe("With 410: why it ended"))
        .optional("endedAt", time())
        .optional("requestId", text())
        .optional("traceId", text())
        .optional(
            "errors",
            Schema::array(Schema::object().required("pointer", text()).required("reason", text())))
        .describe("RFC 9457 problem details")
        .example(problemExample())
        .named("Problem");
}

Schema endedSchema() {
    return Schema::object()
        .required("ended", Schema::integer().describe("How many sandboxes were ended"))
        .named("Ended");
}

Schema listSchema(Schema item, std::string name) {
    return Schema::object()
        .required("items", Schema::array(std::move(item)))
        .required("nextCursor", textOrNull().describe("For `cursor`; null at the end"))
        .named(std::move(name));
}

Schema workspaceListSchema() {
    return listSchema(workspaceSchema(), "WorkspaceList")
        .required("unanswered",
                  Schema::integer().describe("How many are left out, because their sandboxes have "
                                             "not answered since the server's start"));
}

}  // namespace hearth::rest
