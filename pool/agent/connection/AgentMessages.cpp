#include "pool/agent/connection/AgentMessages.h"

#include <algorithm>
#include <array>
#include <limits>

#include "base/Fields.h"
#include "pool/agent/connection/AgentConnection.h"
#include "pool/agent/protocol/Frame.h"
#include "pool/spec/LanguageName.h"

namespace hearth::agent {
namespace {

constexpr std::size_t kMaxId = 256;
constexpr std::size_t kMaxText = 64U << 10U;
constexpr std::size_t kMaxPath = 16U << 10U;  // PATH_MAX, enlarged by escaping
constexpr std::size_t kMaxExecutions = 64;
constexpr std::size_t kMaxLanguages = pool::kMostLanguages;
constexpr std::size_t kMaxLabels = 256;
constexpr std::size_t kMaxWhy = 4096;
constexpr std::uint64_t kMaxNumber = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kMaxUnixMillis = 8'640'000'000'000'000;

Fields fieldsOf(const Json& json) {
    static const Fields::Wrong wrong = [](const FieldError& error) {
        throw ProtocolError("the field " + error.pointer + " " + error.reason);
    };
    return {json, "", wrong};
}

std::string textOr(Fields& fields, const char* key, std::size_t most) {
    return fields.find(key) == nullptr ? std::string() : *fields.text(key, most);
}

std::uint64_t numberOf(Fields& fields, const char* key, std::uint64_t most = kMaxNumber) {
    return *fields.number(key, 0, most);
}

TimePoint timeOf(Fields& fields, const char* key) {
    return TimePoint(std::chrono::nanoseconds(static_cast<std::int64_t>(numberOf(fields, key))));
}

std::int64_t nanos(TimePoint at) {
    return at.time_since_epoch().count();
}

/// Checks that it is a word of A-Z, 0-9 and `_`: a code of the protocol.
bool isCode(const std::string& text) {
    return !text.empty() && text.size() <= 64 && std::all_of(text.begin(), text.end(), [](char c) {
        return (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    });
}

Binding decodeBinding(Fields fields) {
    Binding binding;
    binding.claim_id = *fields.text("claimId", kMaxId);
    binding.attempt = static_cast<std::uint32_t>(
        numberOf(fields, "attempt", std::numeric_limits<std::uint32_t>::max()));
    binding.epoch = numberOf(fields, "epoch");
    binding.tenant = *fields.text("tenant", kMaxId);
    binding.workspace_id = *fields.text("workspaceId", kMaxId);
    binding.fingerprint = *fields.text("fingerprint", kMaxId);
    Fields labels = fields.object("labels");
    if (labels.json().size() > kMaxLabels) fields.complain("labels", "is wrong");
    for (const auto& [key, value] : labels.json().items()) {
        if (!value.is_string()) fields.complain("labels", "is wrong");
        binding.labels.emplace(key, value.get<std::string>());
    }
    binding.note = fields.object("note").json();
    binding.bound_at = timeOf(fields, "boundAtNs");
    if (binding.claim_id.empty()) fields.complain("claimId", "is wrong");
    return binding;
}

FileStat decodeItem(const Json& json) {
    Fields fields = fieldsOf(json);
    FileStat stat;
    stat.path = *fields.text("path", kMaxPath);
    const auto type = kFileTypes.find(*fields.text("type", 16));
    if (!type) fields.complain("type", "is wrong");
    stat.type = *type;
    stat.size = numberOf(fields, "size");
    stat.mode = static_cast<unsigned>(numberOf(fields, "mode", 0177777));
    stat.modified_unix_ms = *fields.integer("modifiedAtMs", -kMaxUnixMillis, kMaxUnixMillis);
    stat.target = textOr(fields, "target", kMaxPath);
    stat.etag = textOr(fields, "etag", kMaxId);
    return stat;
}

/// A language's name in an image's table.
std::string languageName(const std::string& name, const char* field) {
    if (!pool::isLanguageName(name)) {
        throw ProtocolError(std::string("the field ") + field +
                            " has a name that no language may have, which is " +
                            pool::kLanguageNameRule);
    }
    return name;
}

std::string decodeInterpreter(Fields& fields) {
    static constexpr std::array kInterpreters{"", "zygote", "context", "cold", "parked"};
    std::string interpreter = textOr(fields, "interpreter", 16);
    if (std::find(kInterpreters.begin(), kInterpreters.end(), interpreter) == kInterpreters.end()) {
        fields.complain("interpreter", "is wrong");
    }
    return interpreter;
}

std::vector<KnownContext> decodeContexts(Fields& fields) {
    std::vector<KnownContext> contexts;
    if (!fields.find("contexts")) return contexts;
    for (const Json& item : *fields.array("contexts", kMaxContexts)) {
        Fields entry = fieldsOf(item);
        contexts.push_back({*entry.text("id", kMaxId),
                            languageName(*entry.text("language", 32), "language"),
                            *entry.flag("running")});
    }
    return contexts;
}

}  // namespace

std::string encodeControlHello(std::uint64_t epoch) {
    return dumpJson(
        {{"op", "hello"}, {"protocol", kProtocolVersion}, {"kind", "control"}, {"epoch", epoch}});
}

std::string encodeDataHello(std::uint64_t epoch, const std::string& claim_id) {
    return dumpJson({{"op", "hello"},
                     {"protocol", kProtocolVersion},
                     {"kind", "data"},
                     {"epoch", epoch},
                     {"claimId", claim_id}});
}

std::string encodeBind(const BindRequest& request, const ClockShift& clocks) {
    Json json{{"op", "bind"},
              {"protocol", kProtocolVersion},
              {"epoch", request.epoch},
              {"claimId", request.claim_id},
              {"attempt", request.attempt},
              {"tenant", request.tenant},
              {"workspaceId", request.workspace_id},
              {"fingerprint", request.fingerprint},
              {"labels", request.labels},
              {"note", request.note.is_object() ? request.note : Json::object()},
              {"env", request.env},
              {"secrets", request.secrets},
              {"deadlines",
               {{"expiresAtNs", nanos(clocks.theirs(request.deadlines.expires_at))},
                {"idleTimeoutMs", request.deadlines.idle_timeout.count()}}}};
    if (!request.deadlines.idle_ends) json["deadlines"]["idleEnds"] = false;
    if (request.cpus > 0) json["cpus"] = request.cpus;
    if (!request.trust.empty()) json["trust"] = request.trust;
    return dumpJson(json);
}

std::string encodeDeadlines(std::uint64_t epoch, std::optional<TimePoint> expires_at,
                            std::optional<std::chrono::milliseconds> idle_timeout) {
    Json json{{"op", "deadlines"}, {"epoch", epoch}};
    if (expires_at) json["expiresAtNs"] = nanos(*expires_at);
    if (idle_timeout) json["idleTimeoutMs"] = idle_timeout->count();
    return dumpJson(json);
}

std::string encodeExec(const ExecRequest& request) {
    const int ways = (request.argv.empty() ? 0 : 1) + (request.command.empty() ? 0 : 1) +
                     (request.language.empty() ? 0 : 1);
    if (ways != 1) {
        throw Error(ErrorCode::InvalidArgument,
                    "exactly one of argv, command, and language with code is needed");
    }
    Json json{{"op", "exec"}, {"id", request.id}, {"fingerprint", request.fingerprint}};
    if (!request.argv.empty()) json["argv"] = request.argv;
    if (!request.command.empty()) json["command"] = request.command;
    if (!request.language.empty()) {
        json["language"] = request.language;
        json["code"] = request.code;
    }
    if (!request.context.empty()) json["context"] = request.context;
    if (!request.cwd.empty()) json["cwd"] = request.cwd;
    if (!request.env.empty()) json["env"] = request.env;
    json["stdin"] = request.stdin_open;
    if (request.pty) json["pty"] = {{"cols", request.pty->first}, {"rows", request.pty->second}};
    json["timeoutMs"] = request.timeout.count();
    json["outputLimit"] = request.output_limit;
    json["background"] = request.background;
    if (request.paced) json["paced"] = true;
    if (request.prewarm) json["prewarm"] = true;
    if (request.prepare) {
        json["prepare"] = {{"argv", request.prepare->argv},
                           {"input", request.prepare->input},
                           {"code", request.prepare->with_code}};
    }
    if (!request.note.empty()) json["note"] = request.note;
    return dumpJson(json);
}

std::string encodeContext(const ContextRequest& request) {
    Json json{{"op", "context"}, {"id", request.id}, {"language", request.language}};
    if (!request.cwd.empty()) json["cwd"] = request.cwd;
    if (!request.env.empty()) json["env"] = request.env;
    return dumpJson(json);
}

bool decodeContext(const Json& json, const ContextRequest& request) {
    Fields fields = fieldsOf(json);
    if (*fields.text("id", kMaxId) != request.id) fields.complain("id", "is wrong");
    if (*fields.text("language", 32) != request.language) fields.complain("language", "is wrong");
    return *fields.flag("repeated");
}

std::string encodePrewarm(const PrewarmRequest& request) {
    Json languages = Json::object();
    for (const auto& [language, imports] : request.languages) {
        languages[language] = {{"imports", imports}};
    }
    return dumpJson(
        {{"op", "prewarm"}, {"languages", std::move(languages)}, {"waitMs", request.wait.count()}});
}

PrewarmReply decodePrewarm(const Json& json, const PrewarmRequest& request) {
    Fields fields = fieldsOf(json);
    PrewarmReply reply;
    for (const Json& item : *fields.array("ready", kMaxLanguages)) {
        if (!item.is_string() || !request.languages.contains(item.get<std::string>())) {
            fields.complain("ready", "is wrong");
        }
        reply.ready.push_back(item.get<std::string>());
    }
    if (!fields.find("failed")) return reply;
    for (const auto& [language, why] : fields.object("failed").json().items()) {
        if (!request.languages.contains(language) || !why.is_string())
            fields.complain("failed", "is wrong");
        const auto& text = why.get_ref<const std::string&>();
        reply.failed[language] = toUtf8(std::string_view(text).substr(0, kMaxWhy));
    }
    return reply;
}

Json parseObject(std::string_view payload) {
    static constexpr JsonLimits kLimits{
        .bytes = kMaxPayload, .depth = 16, .values = 20'000, .members = 1'000};
    Json json;
    try {
        json = parseJson(payload, kLimits);
    } catch (const Error& e) {
        throw ProtocolError(e.what());
    }
    if (!json.is_object()) throw ProtocolError("an object was expected");
    return json;
}

AgentError decodeError(std::string_view payload) {
    Json json = parseObject(payload);
    Fields fields = fieldsOf(json);
    std::string code = *fields.text("code", 64);
    if (!isCode(code)) fields.complain("code", "is wrong");
    std::string message = *fields.text("message", kMaxText);
    if (message.size() > 1024) message = toUtf8(std::string_view(message).substr(0, 1024));
    json.erase("code");
    json.erase("message");
    return {std::move(code), message, std::move(json)};
}

void checkHello(const Json& json) {
    Fields fields = fieldsOf(json);
    if (numberOf(fields, "protocol") != kProtocolVersion) fields.complain("protocol", "is wrong");
}

Hello decodeHello(const Json& json) {
    checkHello(json);
    Fields fields = fieldsOf(json);
    Hello hello;
    hello.version = *fields.text("agent", 64);
    hello.highest_epoch = numberOf(fields, "highestEpoch");
    if (fields.find("bound")) hello.binding = decodeBinding(fields.object("bound"));
    hello.deadlines = decodeDeadlines(fields.object("deadlines").json());
    hello.last_activity = timeOf(fields, "lastActivityNs");
    hello.now = timeOf(fields, "nowNs");
    hello.running = static_cast<std::uint32_t>(numberOf(fields, "running", kMaxExecutions));
    for (const Json& item : *fields.array("executions", kMaxExecutions)) {
        Fields entry = fieldsOf(item);
        KnownExecution known;
        known.id = *entry.text("id", kMaxId);
        known.fingerprint = *entry.text("fingerprint", kMaxId);
        const std::string state = *entry.text("state", 16);
        if (state != "running" && state != "exited") entry.complain("state", "is wrong");
        known.running = state == "running";
        known.background = *entry.flag("background");
        known.started_at = timeOf(entry, "startedAtNs");
        hello.executions.push_back(std::move(known));
    }
    Fields languages = fields.object("languages");
    if (languages.json().size() > kMaxLanguages) fields.complain("languages", "is wrong");
    for (const auto& [name, ignored] : languages.json().items()) {
        hello.languages.push_back(languageName(name, "languages"));
    }
    hello.contexts = decodeContexts(fields);
    return hello;
}

BindReply decodeBind(const Json& json, const BindRequest& request) {
    Fields fields = fieldsOf(json);
    BindReply reply;
    reply.repeated = *fields.flag("repeated");
    if (*fields.text("claimId", kMaxId) != request.claim_id) fields.complain("claimId", "is wrong");
    reply.attempt = static_cast<std::uint32_t>(
        numberOf(fields, "attempt", std::numeric_limits<std::uint32_t>::max()));
    reply.workspace_id = *fields.text("workspaceId", kMaxId);
    if (!reply.repeated &&
        (reply.workspace_id != request.workspace_id || reply.attempt != request.attempt)) {
        fields.complain("workspaceId", "is wrong");
    }
    reply.bound_at = timeOf(fields, "boundAtNs");
    return reply;
}

Deadlines decodeDeadlines(const Json& json) {
    Fields fields = fieldsOf(json);
    Deadlines deadlines;
    deadlines.expires_at = timeOf(fields, "expiresAtNs");
    deadlines.idle_timeout = std::chrono::milliseconds(
        static_cast<std::int64_t>(numberOf(fields, "idleTimeoutMs", kMaxNumber / 1'000'000)));
    deadlines.idle_at = timeOf(fields, "idleAtNs");
    return deadlines;
}

TimePoint decodeTouch(const Json& json) {
    Fields fields = fieldsOf(json);
    return timeOf(fields, "lastActivityNs");
}

ExecStart decodeStarted(const Json& json, const std::string& id) {
    Fields fields = fieldsOf(json).object("started");
    if (*fields.text("id", kMaxId) != id) fields.complain("id", "is wrong");
    ExecStart started{timeOf(fields, "startedAtNs"), *fields.flag("repeated"),
                      decodeInterpreter(fields), textOr(fields, "context", kMaxId)};
    if (fields.find("note")) started.note = fields.object("note").json();
    return started;
}

OutputGap decodeGap(const Json& json) {
    Fields fields = fieldsOf(json);
    const std::uint64_t end = numberOf(fields, "to");
    return {end, numberOf(fields, "stderr", end)};
}

ExecResult decodeResult(const Json& json, const std::string& id) {
    Fields fields = fieldsOf(json).object("result");
    if (*fields.text("id", kMaxId) != id) fields.complain("id", "is wrong");
    ExecResult result;
    const auto status = kExecutionStatuses.find(*fields.text("status", 16));
    if (!status || *status > ExecutionStatus::Killed) fields.complain("status", "is wrong");
    result.status = *status;
    result.exit_code = static_cast<int>(*fields.integer("exitCode", -1, 255));
    result.signal = static_cast<int>(*fields.integer("signal", 0, 128));
    result.started_at = timeOf(fields, "startedAtNs");
    result.ended_at = timeOf(fields, "endedAtNs");
    if (result.ended_at < result.started_at) fields.complain("endedAtNs", "is wrong");
    result.cpu_ms = numberOf(fields, "cpuMs");
    result.max_rss_bytes = numberOf(fields, "maxRssBytes");
    result.output_bytes = numberOf(fields, "outputBytes");
    result.dropped_bytes = numberOf(fields, "droppedBytes", result.output_bytes);
    result.interpreter = decodeInterpreter(fields);
    if (fields.find("resultBytes")) {
        result.result_bytes = numberOf(fields, "resultBytes", kMaxResultBytes + 4 * kMaxResults);
    }
    if (fields.find("droppedResults")) result.dropped_results = numberOf(fields, "droppedResults");
    if (fields.find("contextKept")) result.context_kept = *fields.flag("contextKept");
    if (fields.find("prepared")) {
        Fields prepared = fields.object("prepared");
        result.prepared = {*prepared.flag("ok"), numberOf(prepared, "durationMs"),
                           *prepared.text("output", kMaxText), *prepared.text("errors", kMaxText)};
    }
    result.report = textOr(fields, "report", kMaxText);
    return result;
}

FileStat decodeStat(const Json& json) {
    return decodeItem(fieldsOf(json).object("stat").json());
}

FileList decodeList(const Json& json, std::size_t limit) {
    Fields fields = fieldsOf(json);
    FileList list;
    for (const Json& item : *fields.array("items", limit)) list.items.push_back(decodeItem(item));
    list.next = textOr(fields, "next", kMaxPath);
    return list;
}

FileChanges decodeChanges(const Json& json, std::size_t limit) {
    Fields fields = fieldsOf(json);
    FileChanges changes;
    for (const Json& item : *fields.array("items", limit)) {
        changes.items.push_back(decodeItem(item));
    }
    changes.more = fields.find("more") != nullptr && *fields.flag("more");
    return changes;
}

std::uint64_t decodeBytes(const Json& json) {
    return *fieldsOf(json).number("bytes", 0, kMaxNumber);
}

ArchiveCount decodeArchiveCount(const Json& json) {
    Fields fields = fieldsOf(json);
    return {numberOf(fields, "files"), numberOf(fields, "directories"), numberOf(fields, "links"),
            numberOf(fields, "bytes")};
}

AgentUsage decodeUsage(const Json& json) {
    Fields fields = fieldsOf(json);
    AgentUsage usage;
    usage.disk_total = numberOf(fields, "diskTotal");
    usage.disk_used = numberOf(fields, "diskUsed", usage.disk_total);
    usage.processes = numberOf(fields, "processes");
    if (fields.find("group") == nullptr) return usage;
    Fields group = fields.object("group");
    AgentUsage::Group counted;
    counted.cpu_ns = numberOf(group, "cpuNs");
    counted.memory_bytes = numberOf(group, "memoryBytes");
    if (group.find("memoryPeakBytes") != nullptr) {
        counted.memory_peak_bytes = numberOf(group, "memoryPeakBytes");
    }
    counted.oom_kills = numberOf(group, "oomKills");
    usage.group = counted;
    return usage;
}

}  // namespace hearth::agent
