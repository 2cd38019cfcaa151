#include "api/rest/model/Answers.h"

#include "api/rest/model/Examples.h"
#include "base/Clock.h"
#include "base/Units.h"
#include "controller/contract/ResultForms.h"

namespace hearth::rest {
namespace {

/// Text from inside a sandbox may hold any bytes; a JSON document may not.
Json clean(const Json& untrusted) {
    if (untrusted.is_string()) return toUtf8(untrusted.get_ref<const std::string&>());
    if (untrusted.is_array()) {
        Json out = Json::array();
        for (const Json& item : untrusted) out.push_back(clean(item));
        return out;
    }
    if (!untrusted.is_object()) return untrusted;
    Json out = Json::object();
    for (const auto& [key, value] : untrusted.items()) out[toUtf8(key)] = clean(value);
    return out;
}

Json resultsJson(const std::vector<controller::ResultPtr>& results) {
    Json out = Json::array();
    for (const controller::ResultPtr& result : results) out.push_back(documentOf(*result));
    return out;
}

Schema claimSchema() {
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

}  // namespace

static void listFields(Shape<pool::SandboxLimits>& shape) {
    using View = pool::SandboxLimits;
    shape.schema().named("Limits");
    shape
        .field("cpu", &View::milli_cpu,
               {[](std::uint32_t milli) { return milli / 1000.0; }, "Cores"})
        .field("memoryBytes", &View::memory_bytes)
        .field("pids", &View::pids)
        .field("workspaceBytes", &View::workspace_bytes)
        .field("tmpBytes", &View::tmp_bytes);
}

void listFields(Shape<controller::WorkspaceView>& shape) {
    using View = controller::WorkspaceView;
    Json example = {
        {"id", kExampleWorkspace}, {"pool", kExamplePool}, {"sandboxId", kExampleSandbox}};
    example.update(parseJson(R"({"phase":"Active","tenant":"default","name":null,"labels":{},
        "root":"/workspace","createdAt":"2026-11-21T03:04:05.678Z",
        "lastActiveAt":"2026-11-21T03:04:06.120Z","idleExpiresAt":"2026-11-21T03:14:06.120Z",
        "expiresAt":"2026-11-21T05:04:05.678Z","gpus":[],"network":"None",
        "limits":{"cpu":1.0,"memoryBytes":536870912,"pids":128,"workspaceBytes":1073741824,
                  "tmpBytes":67108864},
        "claim":{"source":"warm","queueMs":0,"pickMs":0.01,"bindMs":0.2,"totalMs":0.3}})"));
    shape.schema().named("Workspace").example(example);
    shape.field("id", &View::id, Schema::string().example("ws_5f0c2c9a3d1e4b7f8a6b5c4d3e2f1a0b"))
        .field("pool", &View::pool)
        .field("sandboxId", &View::sandbox_id)
        .field("phase", &View::phase, controller::kWorkspacePhases)
        .field("tenant", &View::tenant)
        .orNull("name", &View::name)
        .field("labels", &View::labels, Schema::map(kLabelKey, Schema::string()))
        .field("root", &View::root)
        .field("createdAt", &View::created_at, Schema::string(kDateTime))
        .field("lastActiveAt", &View::last_active_at, Schema::string(kDateTime))
        .orNull("idleExpiresAt", &View::idle_expires_at,
                Schema::string(kDateTime).describe("null while something runs"))
        .orNull("expiresAt", &View::expires_at, Schema::string(kDateTime))
        .field("gpus", &View::gpus)
        .field("network", &View::network,
               {[](egress::NetworkMode mode) { return egress::kNetworkModes.of(mode); }})
        .optional("credentials", &View::credentials,
                  Schema::array(Schema::object().open())
                      .describe("What is added to requests to the outside, without the secrets"))
        .field("limits", &View::limits)
        .optional("claim", &View::claim, {controller::ledgerJson, claimSchema()});
    shape.schema().optional("traceId", Schema::string());
}

Json workspaceJson(const controller::WorkspaceView& view, const std::string& trace_id) {
    Json out = jsonOf(view);
    if (!trace_id.empty()) out["traceId"] = trace_id;
    return out;
}

Schema resultSchema() {
    return Schema::object()
        .required("main", Schema::boolean().describe("The value of the last expression"))
        .required("mime", Schema::map(kResultType, Schema::any())
                              .describe("Text by its type; base64 for image/png, jpeg, gif and "
                                        "webp; JSON for application/json and …+json"))
        .optional("leftOut",
                  Schema::array(Schema::object()
                                    .required("type", Schema::string())
                                    .required("reason", Schema::string())
                                    .named("LeftOutForm"))
                      .describe("Forms that do not fit: too large, too deep, an integer of more "
                                "than 64 bits, not of their type"))
        .example({{"main", true}, {"mime", {{"text/plain", "2"}}}})
        .named("Result");
}

Schema executionErrorSchema() {
    return Schema::object()
        .optional("name", Schema::string())
        .optional("message", Schema::string())
        .optional("traceback", Schema::string())
        .open()
        .describe("An uncaught exception of the code; untrusted text")
        .named("ExecutionError");
}

static void listFields(Shape<controller::Artifact>& shape) {
    using View = controller::Artifact;
    shape.schema().named("Artifact");
    shape.field("path", &View::path, {toUtf8})
        .field("size", &View::size)
        .field("mime", &View::mime)
        .orNull("sha256", &View::sha256, "null if it was not read")
        .orNull("url", &View::url, "Works without a token; null: no copy is kept")
        .orNull(
            "urlExpiresAt",
            [](const View& view) {
                return view.url.empty() ? "" : formatUnixMillis(view.expires_ms);
            },
            Schema::string(kDateTime))
        .optional("reason", &View::not_kept,
                  {controller::kNotKept,
                   "Why no copy is kept. changed: while it was copied; lost: its sandbox ended; "
                   "gone: the copy had to make room or has expired"});
}

static Json executionExample() {
    Json example = {{"id", kExampleExecution}, {"workspaceId", kExampleWorkspace}};
    example.update(parseJson(R"({"language":null,"status":"ok","exitCode":0,"signal":null,
        "stdout":"3\n","stderr":"","truncated":false,"droppedBytes":0,"results":[],
        "droppedResults":0,"error":null,"artifacts":[],"artifactsTruncated":false,
        "background":false,"startedAt":"2026-11-21T03:04:06.100Z","durationMs":3.1,
        "usage":{"cpuMs":2,"peakMemoryBytes":1454080},"interpreter":null,"context":null,
        "contextKept":null})"));
    return example;
}

void listFields(Shape<controller::ExecutionView>& shape) {
    using View = controller::ExecutionView;
    shape.schema().named("Execution").example(executionExample());
    Shape<View> usage;
    usage.schema().named("ExecutionUsage");
    usage.field("cpuMs", &View::cpu_ms).field("peakMemoryBytes", &View::peak_memory_bytes);
    const auto packages = [](auto member) {
        return [member](const View& view) {
            return view.packages ? std::optional(std::invoke(member, *view.packages))
                                 : std::nullopt;
        };
    };
    shape.field("id", &View::id, Schema::string().example("ex_5f0c2c9a3d1e4b7f8a6b5c4d3e2f1a0b"))
        .field("workspaceId", &View::workspace_id)
        .orNull("language", &View::language, "null for a command")
        .field("status", &View::status,
               {controller::kExecutionStatuses, "A program that fails is still HTTP 200"})
        .orNull("exitCode", &View::exit_code)
        .orNull("signal", &View::signal)
        .field("stdout", &View::stdout_bytes,
               {toUtf8,
                "Bytes that are not UTF-8 are U+FFFD; a line `[… N bytes were not kept …]` stands "
                "between head and tail of output that is cut"})
        .field("stderr", &View::stderr_bytes, {toUtf8})
        .field("truncated", &View::truncated)
        .field("droppedBytes", &View::dropped_bytes)
        .field(
            "results", &View::results,
            {resultsJson,
             Schema::array(resultSchema())
                 .describe("The results of the code, in order: its last value, figures, tables")})
        .field("droppedResults", &View::dropped_results,
               "Results that were too many, too large or malformed to keep")
        .orNull("error", &View::error, {clean, executionErrorSchema()})
        .field("artifacts", &View::artifacts)
        .field("artifactsTruncated", &View::artifacts_truncated,
               "The run may have made or changed more files than are listed: at most 256, of a "
               "tree of at most 200,000 entries and 64 levels")
        .field("background", &View::background)
        .field("startedAt", &View::started_at, Schema::string(kDateTime))
        .orNull("durationMs", &View::duration_ms)
        .field("usage", std::identity(), usage)
        .orNull("interpreter", &View::interpreter,
                "How code was run: zygote (a fresh interpreter that was forked ahead), cold (a "
                "process of its own), context; of a command: parked (a shell that was started "
                "ahead), else null")
        .orNull("context", &View::context, "The context it ran in")
        .orNull("contextKept", &View::context_kept,
                "After its end: whether its context is still alive")
        .optional("installed", packages(&controller::RunPackages::installed),
                  "The requested packages that are installed, with their versions. `error` is a "
                  "PackageError if the execution did not start because of them")
        .optional("installMs", packages(&controller::RunPackages::duration_ms),
                  "The part of `durationMs` that installing took")
        .optional(
            "notInstalled",
            [](const View& view) {
                return view.packages ? view.packages->not_installed
                                     : std::map<std::string, std::string>();
            },
            "With `autoPackages`: missing imports of the code without a known distribution, and "
            "what to do")
        .optional("claim", &View::claim, {controller::ledgerJson, claimSchema()});
    shape.schema().optional("traceId", Schema::string());
}

Json executionJson(const controller::ExecutionView& view, const std::string& trace_id,
                   const std::string& origin) {
    Json out = jsonOf(view);
    for (Json& artifact : out["artifacts"]) {
        Json& url = artifact["url"];
        if (url.is_string()) url = origin + url.get<std::string>();
    }
    if (!trace_id.empty()) out["traceId"] = trace_id;
    return out;
}

Json executionSummaryJson(const controller::ExecutionView& view, const std::string& origin) {
    Json out = executionJson(view, "", origin);
    for (const char* large : {"stdout", "stderr", "results"}) out.erase(large);
    out["outputBytes"] = view.kept_bytes;
    out["resultCount"] = view.result_count;
    return out;
}

Schema executionSummarySchema() {
    const auto execution = schemaOf<controller::ExecutionView>();
    Json example = execution.examples().front();
    for (const char* large : {"stdout", "stderr", "results"}) example.erase(large);
    example["outputBytes"] = 2;
    example["resultCount"] = 0;
    return Schema::object()
        .optional("stdout", Schema::string().describe("With `output=true`"))
        .optional("stderr", Schema::string().describe("With `output=true`"))
        .optional("results", Schema::array(resultSchema()).describe("With `output=true`"))
        .optional("outputBytes",
                  Schema::integer().describe("Kept output, over both channels; without `output`"))
        .optional("resultCount", Schema::integer().describe("Without `output`"))
        .mergeFields(execution)
        .describe("An execution as lists show it")
        .example(example)
        .named("ExecutionSummary");
}

void listFields(Shape<controller::ContextView>& shape) {
    using View = controller::ContextView;
    shape.schema().named("Context").example({{"id", kExampleContext},
                                             {"workspaceId", kExampleWorkspace},
                                             {"language", "python"},
                                             {"name", nullptr},
                                             {"cwd", nullptr},
                                             {"createdAt", "2026-11-21T03:04:07.000Z"},
                                             {"executionId", nullptr}});
    shape.field("id", &View::id, Schema::string().example("cx_5f0c2c9a3d1e4b7f8a6b5c4d3e2f1a0b"))
        .field("workspaceId", &View::workspace_id)
        .field("language", &View::language, Schema::string().example("python"))
        .orNull("name", &View::name)
        .orNull("cwd", &View::cwd, "null: the workspace's root")
        .field("createdAt", &View::created_at, Schema::string(kDateTime))
        .orNull("executionId", &View::running, "The execution it runs now");
}

void listFields(Shape<controller::SandboxView>& shape) {
    using View = controller::SandboxView;
    shape.schema().named("Sandbox").example({{"id", kExampleSandbox},
                                             {"pool", kExamplePool},
                                             {"phase", "Claimed"},
                                             {"generation", 1},
                                             {"workspaceId", kExampleWorkspace},
                                             {"tenant", "default"},
                                             {"createdAt", "2026-11-21T03:00:01.000Z"},
                                             {"readyAt", "2026-11-21T03:00:02.000Z"},
                                             {"image", "python"},
                                             {"runtime", "oci"}});
    shape.field("id", &View::id)
        .field("pool", &View::pool)
        .field("phase", &View::phase,
               Schema::oneOf({"Creating", "Warming", "Ready", "Claimed", "Suspect", "Draining",
                              "Failed", "Gone"}))
        .field("generation", &View::generation)
        .orNull("workspaceId", &View::workspace_id)
        .orNull("tenant", &View::tenant)
        .field("createdAt", &View::created_at, Schema::string(kDateTime))
        .orNull("readyAt", &View::ready_at, Schema::string(kDateTime))
        .field("image", &View::image)
        .field("runtime", &View::runtime);
}

void listFields(Shape<controller::Event>& shape) {
    using View = controller::Event;
    shape.schema().named("Event").example({{"id", 42},
                                           {"time", "2026-11-21T03:14:06.500Z"},
                                           {"type", "workspace.reclaimed"},
                                           {"resource", kExampleWorkspace},
                                           {"pool", kExamplePool},
                                           {"tenant", "default"},
                                           {"reason", "idle"},
                                           {"message", "a workspace ended"},
                                           {"traceId", nullptr}});
    shape.field("id", &View::id)
        .field("time", &View::time, Schema::string(kDateTime))
        .field("type", &View::type, Schema::string().example("workspace.reclaimed"))
        .field("resource", &View::resource)
        .orNull("pool", &View::pool)
        .orNull("tenant", &View::tenant)
        .orNull("reason", &View::reason)
        .field("message", &View::message, {toUtf8})
        .orNull("traceId", &View::trace_id, "The trace of the request that caused it");
}

void listFields(Shape<controller::TokenView>& shape) {
    using View = controller::TokenView;
    shape.schema().named("Token").example({{"id", kExampleToken},
                                           {"name", "ci"},
                                           {"tenant", "default"},
                                           {"role", "user"},
                                           {"createdAt", "2026-11-21T03:00:00.000Z"},
                                           {"expiresAt", nullptr},
                                           {"source", "store"}});
    shape.field("id", &View::id)
        .field("name", &View::name)
        .field("tenant", &View::tenant)
        .field("role", &View::role, controller::kRoles)
        .orNull("createdAt", &View::created_at)
        .orNull("expiresAt", &View::expires_at)
        .field("source", &View::source, controller::kTokenSources);
}

// Not "NewToken": a generator for Go makes a function of that name for "Token".
Schema newTokenSchema() {
    const Schema token = schemaOf<controller::TokenView>();
    Json example = token.examples().front();
    example["token"] = "hearth_0123456789abcdef";
    return Schema::object()
        .mergeFields(token)
        .required("token", Schema::string().describe("Shown this once; only its hash is kept"))
        .example(example)
        .named("IssuedToken");
}

void listFields(Shape<controller::WorkspaceUsage>& shape) {
    using View = controller::WorkspaceUsage;
    shape.schema().named("Usage").example(
        parseJson(R"({"cpuMs":184,"memoryBytes":23068672,"memoryPeakBytes":41943040,
        "processes":2,"diskBytes":4096,"diskLimitBytes":1073741824,"gpus":[]})"));
    shape.field("cpuMs", &View::cpu_ms)
        .field("memoryBytes", &View::memory_bytes)
        .field("memoryPeakBytes", &View::memory_peak_bytes)
        .field("processes", &View::processes)
        .field("diskBytes", &View::disk_bytes)
        .field("diskLimitBytes", &View::disk_limit_bytes)
        .field("gpus", &View::gpus);
}

static void listFields(Shape<egress::EgressEntry>& shape) {
    using View = egress::EgressEntry;
    shape.field("at", &View::at, {formatRfc3339, Schema::string(kDateTime)})
        .field("kind", &View::kind,
               {egress::kEgressKinds, "https: a request in a tunnel that got credentials"})
        .field("destination", &View::destination, Schema::string().example("api.example.com:443"))
        .field("decision", &View::decision, "allowed, hit, miss, or why it was refused")
        .field("status", &View::status, "0 where the outside answered")
        .field("sentBytes", &View::sent)
        .field("receivedBytes", &View::received)
        .field("durationMs", &View::duration_ms);
}

void listFields(Shape<egress::EgressReport>& shape) {
    using View = egress::EgressReport;
    shape.schema().named("Egress").example(
        parseJson(R"({"requests":1,"refused":0,"sentBytes":210,"receivedBytes":5120,
        "latest":[{"at":"2026-11-21T03:04:08.000Z","kind":"https",
                   "destination":"api.example.com:443","decision":"allowed","status":200,
                   "sentBytes":210,"receivedBytes":5120,"durationMs":82.5}]})"));
    shape.field("requests", &View::requests)
        .field("refused", &View::refused)
        .field("sentBytes", &View::sent)
        .field("receivedBytes", &View::received)
        .field("latest", &View::latest, "Newest first, at most 200");
}

static void listFields(Shape<controller::PackageState>& shape) {
    using View = controller::PackageState;
    shape.field("state", &View::state, controller::kPackageStages)
        .orNull("version", &View::version)
        .orNull("error", &View::error, "Why, in words");
}

void listFields(Shape<controller::PackagesView>& shape) {
    using View = controller::PackagesView;
    shape.schema()
        .named("Packages")
        .example({{"status", "done"},
                  {"packages",
                   {{"six", {{"state", "installed"}, {"version", "1.17.0"}, {"error", nullptr}}}}},
                  {"error", nullptr},
                  {"executionId", kExampleExecution}});
    shape.field("status", &View::status, controller::kPackagesStatuses)
        .field("packages", &View::packages)
        .orNull("error", &View::error, "Why nothing could be done at all")
        .field("executionId", &View::execution_id,
               "The execution whose output is the package manager's");
}

void listFields(Shape<agent::FileStat>& shape) {
    using View = agent::FileStat;
    shape.schema()
        .named("FileEntry")
        .example({{"path", "out/plot.png"},
                  {"type", "file"},
                  {"size", 5120},
                  {"mode", "0644"},
                  {"modifiedAt", "2026-11-21T03:04:09.000Z"}});
    shape.field("path", &View::path, {toUtf8})
        .field("type", &View::type, agent::kFileTypes)
        .field("size", &View::size)
        .field("mode", &View::mode, {formatFileMode, Schema::string().example("0644")})
        .field("modifiedAt", &View::modified_unix_ms, {formatUnixMillis, Schema::string(kDateTime)})
        .optional("target", &View::target, {toUtf8, "The target of a symbolic link"});
}

void listFields(Shape<agent::ArchiveCount>& shape) {
    using View = agent::ArchiveCount;
    shape.schema()
        .named("ArchiveCount")
        .example({{"files", 3}, {"directories", 1}, {"links", 0}, {"bytes", 10240}});
    shape.field("files", &View::files)
        .field("directories", &View::directories)
        .field("links", &View::links)
        .field("bytes", &View::bytes);
}

Schema problemSchema() {
    return Schema::object()
        .required("type", Schema::string().example("urn:hearth:pool-exhausted"))
        .required("title", Schema::string())
        .required("status", Schema::integer())
        .required("detail", Schema::string())
        .optional("instance", Schema::string())
        .required("errorCode", Schema::string().example("POOL_EXHAUSTED"))
        .required("code", Schema::integer())
        .required("message", Schema::string())
        .required("retryable", Schema::boolean())
        .optional("retryAfterSeconds", Schema::integer())
        .optional("hint", Schema::string())
        .optional("reason", Schema::string().describe("With 410: why it ended"))
        .optional("endedAt", Schema::string(kDateTime))
        .optional("requestId", Schema::string())
        .optional("traceId", Schema::string())
        .optional("errors", Schema::array(Schema::object()
                                              .required("pointer", Schema::string())
                                              .required("reason", Schema::string())))
        .describe("RFC 9457 problem details")
        .example(parseJson(R"({"type":"urn:hearth:pool-exhausted","title":"No warm sandbox free",
        "status":429,"detail":"pool python has no free sandbox","instance":"/v1/workspaces",
        "errorCode":"POOL_EXHAUSTED","code":429,"message":"pool python has no free sandbox",
        "retryable":true,"retryAfterSeconds":3,"requestId":"req_0123456789abcdef"})"))
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
        .required("nextCursor",
                  Schema::string().nullable().describe("For `cursor`; null at the end"))
        .named(std::move(name));
}

Json listJson(Json items, const std::string& next_cursor) {
    const Json next = next_cursor.empty() ? Json() : Json(next_cursor);
    return {{"items", std::move(items)}, {"nextCursor", next}};
}

Schema workspaceListSchema() {
    return listSchema<controller::WorkspaceView>("WorkspaceList")
        .required("unanswered",
                  Schema::integer().describe("How many are left out, because their sandboxes have "
                                             "not answered since the server's start"));
}

}  // namespace hearth::rest
