#include "api/rest/model/Requests.h"

#include <cmath>

#include "base/Ids.h"
#include "pool/spec/GpuUuid.h"

namespace hearth::rest {
namespace {

constexpr double kLongestLife = 30.0 * 24 * 3600;
constexpr double kLongestRun = 24.0 * 3600;
constexpr std::uint64_t kLeastPacedOutput = 1U << 20U;

using TextMap = std::map<std::string, std::string>;

Schema seconds(double least, double most, std::string description) {
    return Schema::number(least, most).describe(std::move(description));
}

Schema text(const Format& format, std::string description) {
    return Schema::string(format).describe(std::move(description));
}

std::optional<std::string> textOf(const Json& body, const char* name) {
    const auto at = body.find(name);
    if (at == body.end()) return std::nullopt;
    return at->get<std::string>();
}

TextMap textsOf(const Json& body, const char* name) {
    TextMap out;
    if (const auto at = body.find(name); at != body.end()) {
        for (const auto& [key, value] : at->items()) out.emplace(key, value.get<std::string>());
    }
    return out;
}

std::optional<std::chrono::milliseconds> durationOf(const Json& body, const char* name) {
    const auto at = body.find(name);
    if (at == body.end()) return std::nullopt;
    return secondsOf(*at);
}

std::vector<controller::InlineFile> filesOf(const Json& body) {
    std::vector<controller::InlineFile> files;
    const auto at = body.find("files");
    if (at == body.end()) return files;
    for (const Json& item : *at) {
        controller::InlineFile file{item.at("path").get<std::string>(), {}};
        if (const auto plain = item.find("text"); plain != item.end()) {
            file.bytes = plain->get<std::string>();
        } else {
            base64Decode(item.at("base64").get_ref<const std::string&>(), file.bytes);
        }
        files.push_back(std::move(file));
    }
    return files;
}

Schema fileSchema() {
    return Schema::object()
        .required("path", text(kPath, "The path, relative to the workspace's root"))
        .optional("text",
                  Schema::string().sizes(0, kLargestJson).describe("The content, as UTF-8 text"))
        .optional("base64", text(kBase64, "The content, any bytes"))
        .exactlyOne({"text", "base64"})
        .named("InlineFile");
}

Schema credentialSchema() {
    return Schema::object()
        .required("host", Schema::string().sizes(1, 300).describe(
                              "The host whose requests get it: api.example.com, with :port unless "
                              "it is the usual one; the workspace must be allowed to reach it"))
        .optional("scheme", Schema::oneOf({"https", "http"})
                                .describe("http only for a service that has no TLS; default https"))
        .optional("header", Schema::string().sizes(1, 128).describe(
                                "The header it goes into; without header, basic and query it is "
                                "Authorization"))
        .optional("template", Schema::string().sizes(2, 128).describe(
                                  "The header's value around {}; for Authorization \"Bearer {}\""))
        .optional("basic", Schema::string().sizes(0, 128).describe(
                               "The user's name, for Basic authentication"))
        .optional("query",
                  Schema::string().sizes(1, 128).describe("The parameter of the URL it goes into"))
        .optional("secret", Schema::string().sizes(1, 128).describe(
                                "The name of a secret that the operator keeps for your tenant"))
        .optional("value", Schema::string().sizes(8, 4096).describe(
                               "The secret itself; never logged or shown"))
        .exactlyOne({"secret", "value"})
        .named("Credential")
        .describe(
            "A secret that is added to the workspace's requests to one host, and that nothing "
            "inside can read");
}

Schema claimLimitsSchema() {
    constexpr std::int64_t kMiB = 1 << 20;
    const std::string disk =
        "The sizes of disk and /tmp are the pool's; GET /v1/pools shows them, and `pool` "
        "chooses";
    return Schema::object()
        .optional("cpu", Schema::number(0.01, 1000).describe("Processors; to a thousandth"))
        .optional("memoryBytes", Schema::bytes(32 * kMiB, (16 * kMiB) * kMiB))
        .optional("pids", Schema::integer(8, 32'768).describe("Processes and threads"))
        .fixed("workspaceBytes", disk)
        .fixed("tmpBytes", disk)
        .named("ClaimLimits")
        .describe(
            "Limits that the kernel enforces on the workspace; at most its pool's. Without "
            "`pool`, smaller pools are skipped. The pool's limit applies to what is left out");
}

controller::ClaimLimits limitsOf(const Json& body) {
    controller::ClaimLimits limits;
    const auto at = body.find("limits");
    if (at == body.end()) return limits;
    if (const auto cpu = at->find("cpu"); cpu != at->end()) {
        limits.milli_cpu = static_cast<std::uint32_t>(std::llround(cpu->get<double>() * 1000.0));
    }
    if (const auto bytes = at->find("memoryBytes"); bytes != at->end()) {
        limits.memory_bytes = bytes->get<std::uint64_t>();
    }
    if (const auto pids = at->find("pids"); pids != at->end()) {
        limits.pids = pids->get<std::uint32_t>();
    }
    return limits;
}

Schema gpuWishSchema() {
    return Schema::object()
        .optional("count", Schema::integer(0, pool::kMostGpus).fallback(1))
        .optional("product", Schema::string().sizes(1, 96).describe(
                                 "Words of the product, as \"H100\", or a MIG profile"))
        .named("GpuWish")
        .describe("Selects a pool whose sandboxes have exactly this many GPUs");
}

std::optional<controller::GpuWish> gpuWishOf(const Json& body) {
    const auto at = body.find("gpu");
    if (at == body.end()) return std::nullopt;
    controller::GpuWish wish{at->value("count", 1U), at->value("product", "")};
    return wish.count == 0 ? std::nullopt : std::optional(std::move(wish));
}

/// The fields that select a pool; a workspace and a one shot share them.
Schema placeSchema() {
    return Schema::object()
        .optional("pool", text(kPoolName, "The pool to claim from; without it the default pool")
                              .example("python"))
        .optional("name", text(kDisplayName, "A name for people"))
        .optional("labels", labelsSchema())
        .optional("secrets",
                  envSchema("Environment of everything that runs here; never logged or shown"))
        .optional(
            "files",
            Schema::array(fileSchema()).sizes(0, 256).describe("Written before the answer is sent"))
        .optional("idleTimeoutSeconds",
                  seconds(1, kLongestLife, "Ends after this long without activity"))
        .optional("maxLifetimeSeconds", seconds(1, kLongestLife, "Ends after this long at most"))
        .optional("image",
                  text(kImageName,
                       "Selects a pool by its image: a name, a reference or a digest. Where the "
                       "operator allows it, an image without a pool gets a cold sandbox"))
        .optional("network", Schema::oneOf(egress::kNetworkModes.all())
                                 .describe("Selects or narrows a pool, never widens it"))
        .optional(
            "allow",
            Schema::array(Schema::string().sizes(1, 300))
                .sizes(0, 256)
                .describe(
                    "With network Egress: the part of the pool's allow-list that this workspace "
                    "may reach, as api.example.com, *.example.com:443 or "
                    "203.0.113.0/24; default: all of it"))
        .optional("credentials", Schema::array(credentialSchema()).sizes(0, 16))
        .optional("limits", claimLimitsSchema())
        .optional("gpu", gpuWishSchema());
}

Schema ptySchema() {
    return Schema::object()
        .required("cols", Schema::integer(1, 1000))
        .required("rows", Schema::integer(1, 1000))
        .describe("Runs in a terminal of this size; stdout and stderr are then one");
}

}  // namespace

std::chrono::milliseconds secondsOf(const Json& value) {
    return std::chrono::milliseconds(std::llround(value.get<double>() * 1000.0));
}

Schema envSchema(const std::string& description) {
    return Schema::map(kEnvName, Schema::string(kEnvValue)).sizes(0, 128).describe(description);
}

Schema labelsSchema() {
    return Schema::map(kLabelKey, Schema::string(kLabelValue))
        .sizes(0, 64)
        .describe("Keys and values as in Kubernetes; lists select by them");
}

Schema workspaceRequestSchema() {
    Schema schema = Schema::object();
    schema.mergeFields(placeSchema())
        .optional("env", envSchema("Environment of everything that runs here"))
        .optional("language", text(kLanguage, "Selects a pool whose image has it"))
        .example({{"pool", "python"}, {"idleTimeoutSeconds", 600}})
        .named("WorkspaceRequest");
    return schema;
}

Schema workspacesRequestSchema() {
    Schema schema = Schema::object();
    schema.mergeFields(workspaceRequestSchema())
        .required("count", Schema::integer(1, 100).describe("How many workspaces"))
        .example({{"count", 3}, {"pool", "python"}})
        .named("WorkspacesRequest");
    return schema;
}

Schema workspacePatchSchema() {
    return Schema::object()
        .optional("labels", Schema::map(kLabelKey, Schema::string(kLabelValue).nullable())
                                .sizes(0, 64)
                                .describe("Added or replaced; null removes one"))
        .optional("idleTimeoutSeconds", seconds(1, kLongestLife, "The new idle timeout, from now"))
        .optional("maxLifetimeSeconds",
                  seconds(1, kLongestLife,
                          "The workspace ends this long from now; never past its pool's maximum"))
        .example({{"maxLifetimeSeconds", 3600}})
        .named("WorkspacePatch");
}

namespace {

/// The fields of every execution.
Schema executionFields() {
    return Schema::object()
        .optional("command", text(kArgument, "A shell command line").example("echo hi | wc -c"))
        .optional("argv", Schema::array(Schema::string(kArgument))
                              .sizes(1, 1024)
                              .describe("A program and its arguments, without a shell"))
        .optional("code",
                  Schema::string().sizes(0, kLargestJson).describe("A piece of code in `language`"))
        .exactlyOne({"command", "argv", "code"})
        .optional("language",
                  text(kLanguage,
                       "Of `code`; default: python, or else the image's first. Also by a common "
                       "name: py, js, node, ts, shell, golang"))
        .optional("cwd", text(kPath, "Working directory; default: the workspace's root"))
        .optional("env", envSchema("Environment of this execution, over the workspace's"))
        .optional("stdin", Schema::string()
                               .sizes(0, kLargestJson)
                               .describe("Standard input, given at once, then closed"))
        .optional(
            "stdinOpen",
            Schema::boolean().describe(
                "Keeps standard input open for POST /v1/executions/{execution}/stdin. Without "
                "it: true for a background or PTY execution that was given no `stdin`"))
        .optional("timeoutSeconds",
                  seconds(0.001, kLongestRun, "Kills the whole process tree").fallback(60))
        .optional(
            "outputLimitBytes",
            Schema::bytes(1024, 16 << 20).describe("Kept output: head and tail").fallback(1 << 20))
        .optional("background", Schema::boolean().describe("Answers 202 at once").fallback(false))
        .optional(
            "paced",
            Schema::boolean()
                .describe(
                    "With an event stream: the program waits while its output is not read, so that "
                    "the stream misses nothing. Not with an `outputLimitBytes` under 1 MiB")
                .fallback(false))
        .optional("pty", ptySchema())
        .optional("packages",
                  Schema::array(Schema::string().sizes(1, 300))
                      .sizes(0, 64)
                      .describe("Packages it needs: names of an index, with "
                                "versions or without. Missing ones are installed in the "
                                "workspace first, within the timeout; that needs network Mirror or "
                                "Egress, installed ones need none")
                      .example(Json::array({"numpy==2.1"})))
        .optional("autoPackages",
                  Schema::boolean()
                      .describe("With Python code: also installs missing imports whose "
                                "distribution is well known; "
                                "`notInstalled` lists the others")
                      .fallback(false))
        .optional("collect",
                  Schema::array(Schema::string(kPath).sizes(1, 256))
                      .sizes(0, 16)
                      .describe("Files to return as artifacts if the run made or changed them: "
                                "patterns with *, ? and **, relative to the workspace's root. "
                                "Names that begin with a dot, __pycache__ and node_modules only "
                                "where the pattern spells them. Without it: none")
                      .example(Json::array({"**"})))
        .example({{"command", "echo hi | wc -c"}})
        .example({{"code", "print(1)"}, {"language", "python"}});
}

}  // namespace

Schema executionRequestSchema() {
    return executionFields()
        .optional("context", text(kContextId,
                                  "With `code`, in a workspace: the context to run it in, which "
                                  "has its own language, cwd and env. 409 while it runs another"))
        .example({{"code", "x + 1"}, {"context", "cx_5f0c2c9a3d1e4b7f8a6b5c4d3e2f1a0b"}})
        .named("ExecutionRequest");
}

Schema packagesRequestSchema() {
    const Schema specs = Schema::array(Schema::string().sizes(1, 300)).sizes(0, 64);
    return Schema::object()
        .optional("manager", Schema::oneOf(controller::kPackageManagers.all())
                                 .describe("auto: npm for scoped names and package.json, else pip")
                                 .fallback("auto"))
        .optional("install", Schema(specs)
                                 .describe("Names of an index, with versions or without: "
                                           "numpy==2.1, @scope/name@^1. No options, URLs or paths")
                                 .example(Json::array({"numpy>=2"})))
        .optional("from", text(kPath,
                               "Instead of `install`: requirements.txt, pyproject.toml, a "
                               "program with a PEP 723 block, or package.json"))
        .optional("check", Schema(specs).describe("Names to check"))
        .optional("list", Schema::boolean().describe("Lists everything that is installed"))
        .optional("waitSeconds",
                  seconds(0, 60, "After this it answers with status running").fallback(5))
        .optional("timeoutSeconds", seconds(1, 3600, "Ends it after this").fallback(600))
        .example({{"install", {"six"}}})
        .named("PackagesRequest");
}

Schema contextRequestSchema() {
    return Schema::object()
        .optional("language", text(kLanguage, "Default: python, or else the image's first"))
        .optional("cwd", text(kPath, "Where it starts; default: the workspace's root"))
        .optional("env", envSchema("Environment of the interpreter, over the workspace's"))
        .optional("name", text(kDisplayName,
                               "The workspace's context of this name and language; "
                               "made if there is none"))
        .example({{"language", "python"}})
        .named("ContextRequest");
}

Schema oneShotRequestSchema() {
    Schema schema = executionFields();
    schema.mergeFields(placeSchema()).named("OneShotRequest");
    return schema;
}

controller::WorkspaceRequest readWorkspaceRequest(const Json& body) {
    controller::WorkspaceRequest request = readOneShotWorkspace(body);
    request.env = textsOf(body, "env");
    return request;
}

controller::WorkspaceRequest readOneShotWorkspace(const Json& body) {
    controller::WorkspaceRequest request;
    request.pool = textOf(body, "pool");
    request.language = textOf(body, "language");
    request.name = textOf(body, "name");
    request.image = textOf(body, "image");
    if (const auto mode = textOf(body, "network")) {
        request.network = egress::kNetworkModes.find(*mode);
    }
    if (const auto allow = body.find("allow"); allow != body.end()) {
        request.allow = allow->get<std::vector<std::string>>();
    }
    if (const auto found = body.find("credentials"); found != body.end()) {
        request.credentials = *found;
    }
    request.limits = limitsOf(body);
    request.gpu = gpuWishOf(body);
    request.labels = textsOf(body, "labels");
    request.secrets = textsOf(body, "secrets");
    request.files = filesOf(body);
    request.idle_timeout = durationOf(body, "idleTimeoutSeconds");
    request.max_lifetime = durationOf(body, "maxLifetimeSeconds");
    return request;
}

controller::PackagesRequest readPackagesRequest(const Json& body) {
    controller::PackagesRequest request;
    request.manager =
        controller::kPackageManagers.find(textOf(body, "manager").value_or("auto")).value();
    request.from = textOf(body, "from");
    request.list = body.value("list", false);
    request.install = body.value("install", std::vector<std::string>{});
    request.check = body.value("check", std::vector<std::string>{});
    request.wait = durationOf(body, "waitSeconds").value_or(request.wait);
    request.timeout = durationOf(body, "timeoutSeconds").value_or(request.timeout);
    return request;
}

controller::WorkspacePatch readWorkspacePatch(const Json& body) {
    controller::WorkspacePatch patch;
    if (const auto labels = body.find("labels"); labels != body.end()) {
        patch.labels.emplace();
        for (const auto& [key, value] : labels->items()) {
            patch.labels->emplace(
                key, value.is_null() ? std::nullopt : std::optional(value.get<std::string>()));
        }
    }
    patch.idle_timeout = durationOf(body, "idleTimeoutSeconds");
    patch.lifetime_from_now = durationOf(body, "maxLifetimeSeconds");
    return patch;
}

controller::ContextRequest readContextRequest(const Json& body) {
    controller::ContextRequest request;
    request.language = textOf(body, "language").value_or("");
    request.cwd = textOf(body, "cwd").value_or("");
    request.env = textsOf(body, "env");
    request.name = textOf(body, "name").value_or("");
    return request;
}

namespace {

/// A context has its own language, cwd and env: an execution in it cannot set them.
void checkContext(const Json& body) {
    Error error(ErrorCode::InvalidArgument, "a context runs code as it is");
    if (!body.contains("code")) error.field("/context", "goes with code only");
    for (const char* own : {"cwd", "env", "stdin", "stdinOpen", "pty"}) {
        const auto at = body.find(own);
        if (at == body.end() || *at == Json(false) || (at->is_object() && at->empty())) continue;
        error.field(std::string("/") + own, "must be absent: it is the context's own");
    }
    if (error.fields().empty()) return;
    error.hint("give cwd and env when the context is made; it has no standard input");
    throw error;
}

}  // namespace

controller::ExecutionRequest readExecutionRequest(const Json& body) {
    controller::ExecutionRequest request;
    request.command = textOf(body, "command");
    request.code = textOf(body, "code");
    if (const auto argv = body.find("argv"); argv != body.end()) {
        request.argv = argv->get<std::vector<std::string>>();
    }
    request.language = textOf(body, "language").value_or("");
    request.cwd = textOf(body, "cwd").value_or("");
    request.env = textsOf(body, "env");
    if (const auto context = textOf(body, "context")) {
        checkContext(body);
        request.context = *context;
    }
    request.stdin_bytes = textOf(body, "stdin");
    request.timeout = durationOf(body, "timeoutSeconds").value_or(request.timeout);
    if (const auto limit = body.find("outputLimitBytes"); limit != body.end()) {
        request.output_limit = limit->get<std::uint64_t>();
    }
    request.background = body.value("background", false);
    request.paced = body.value("paced", false);
    if (request.paced && request.output_limit < kLeastPacedOutput) {
        throw Error(ErrorCode::InvalidArgument, "`paced` needs room for output on its way")
            .field("/outputLimitBytes", "must be at least 1048576 with paced")
            .hint("Leave `outputLimitBytes` or `paced` out");
    }
    if (const auto pty = body.find("pty"); pty != body.end()) {
        request.pty = {pty->at("cols").get<unsigned>(), pty->at("rows").get<unsigned>()};
    }
    if (const auto collect = body.find("collect"); collect != body.end()) {
        request.collect = collect->get<std::vector<std::string>>();
    }
    request.packages = body.value("packages", std::vector<std::string>{});
    request.auto_packages = body.value("autoPackages", false);
    const bool interactive = (request.background || request.pty) && request.context.empty();
    request.stdin_open = body.value("stdinOpen", interactive && !request.stdin_bytes);
    if (request.stdin_open && request.stdin_bytes) {
        throw Error(ErrorCode::InvalidArgument, "`stdin` and `stdinOpen` exclude each other")
            .field("/stdinOpen", "must not be true together with stdin")
            .hint("Send the first bytes by POST /v1/executions/{execution}/stdin too");
    }
    return request;
}

}  // namespace hearth::rest
