#include "pool/agent/Messages.h"

#include <algorithm>
#include <array>
#include <limits>

#include "pool/agent/Connection.h"
#include "pool/agent/Frame.h"
#include "pool/spec/LanguageName.h"

namespace hearth::agent {
namespace {

constexpr std::size_t kMaxId = 256;
constexpr std::size_t kMaxText = 64U << 10U;
constexpr std::size_t kMaxPath = 16U << 10U;  // PATH_MAX, and what escaping may make of it
constexpr std::size_t kMaxExecutions = 64;
constexpr std::size_t kMaxLanguages = pool::kMostLanguages;
constexpr std::size_t kMaxLabels = 256;
constexpr std::size_t kMaxWhy = 4096;
constexpr std::uint64_t kMaxNumber = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kMaxUnixMillis = 8'640'000'000'000'000;

/// Reads the members of one foreign object.
class Fields {
public:
    explicit Fields(const Json& json) : json_(json) {
        if (!json.is_object()) throw ProtocolError("an object was expected");
    }

    const Json* find(const char* name) const {
        const auto it = json_.find(name);
        return it == json_.end() || it->is_null() ? nullptr : &*it;
    }
    const Json& get(const char* name) const {
        if (const Json* value = find(name)) return *value;
        wrong(name);
    }
    std::string text(const char* name, std::size_t max) const {
        return textOf(get(name), name, max);
    }
    std::string textOr(const char* name, std::size_t max) const {
        const Json* value = find(name);
        return value ? textOf(*value, name, max) : std::string();
    }
    std::uint64_t number(const char* name, std::uint64_t max = kMaxNumber) const {
        const Json& value = get(name);
        if (!value.is_number_integer() ||
            (!value.is_number_unsigned() && value.get<std::int64_t>() < 0)) {
            wrong(name);
        }
        const auto n = value.get<std::uint64_t>();
        if (n > max) wrong(name);
        return n;
    }
    std::int64_t integer(const char* name, std::int64_t least, std::int64_t most) const {
        const Json& value = get(name);
        if (!value.is_number_integer() ||
            (value.is_number_unsigned() && value.get<std::uint64_t>() > kMaxNumber)) {
            wrong(name);
        }
        const auto n = value.get<std::int64_t>();
        if (n < least || n > most) wrong(name);
        return n;
    }
    bool flag(const char* name) const {
        const Json& value = get(name);
        if (!value.is_boolean()) wrong(name);
        return value.get<bool>();
    }
    TimePoint time(const char* name) const {
        return TimePoint(std::chrono::nanoseconds(static_cast<std::int64_t>(number(name))));
    }
    Fields object(const char* name) const {
        const Json& value = get(name);
        if (!value.is_object()) wrong(name);
        return Fields(value);
    }
    const Json& array(const char* name, std::size_t max) const {
        const Json& value = get(name);
        if (!value.is_array() || value.size() > max) wrong(name);
        return value;
    }
    const Json& json() const { return json_; }

    [[noreturn]] static void wrong(const char* name) {
        throw ProtocolError(std::string("the field ") + name + " is missing or wrong");
    }

private:
    static std::string textOf(const Json& value, const char* name, std::size_t max) {
        if (!value.is_string()) wrong(name);
        const auto& text = value.get_ref<const std::string&>();
        if (text.size() > max) wrong(name);
        return text;
    }

    const Json& json_;
};

std::int64_t nanos(TimePoint at) {
    return at.time_since_epoch().count();
}

/// A word of A-Z, 0-9 and `_`: a code of the protocol.
bool isCode(const std::string& text) {
    return !text.empty() && text.size() <= 64 && std::all_of(text.begin(), text.end(), [](char c) {
        return (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    });
}

Binding decodeBinding(const Fields& fields) {
    Binding binding;
    binding.claim_id = fields.text("claimId", kMaxId);
    binding.attempt = static_cast<std::uint32_t>(
        fields.number("attempt", std::numeric_limits<std::uint32_t>::max()));
    binding.epoch = fields.number("epoch");
    binding.tenant = fields.text("tenant", kMaxId);
    binding.workspace_id = fields.text("workspaceId", kMaxId);
    binding.fingerprint = fields.text("fingerprint", kMaxId);
    const Fields labels = fields.object("labels");
    if (labels.json().size() > kMaxLabels) Fields::wrong("labels");
    for (const auto& [key, value] : labels.json().items()) {
        if (!value.is_string()) Fields::wrong("labels");
        binding.labels.emplace(key, value.get<std::string>());
    }
    binding.note = fields.object("note").json();
    binding.bound_at = fields.time("boundAtNs");
    if (binding.claim_id.empty()) Fields::wrong("claimId");
    return binding;
}

FileStat decodeItem(const Json& json) {
    static constexpr std::array kTypes{"file", "directory", "symlink", "other"};
    const Fields fields(json);
    FileStat stat;
    stat.path = fields.text("path", kMaxPath);
    stat.type = fields.text("type", 16);
    if (std::find(kTypes.begin(), kTypes.end(), stat.type) == kTypes.end()) Fields::wrong("type");
    stat.size = fields.number("size");
    stat.mode = static_cast<unsigned>(fields.number("mode", 0177777));
    stat.modified_unix_ms = fields.integer("modifiedAtMs", -kMaxUnixMillis, kMaxUnixMillis);
    stat.target = fields.textOr("target", kMaxPath);
    stat.etag = fields.textOr("etag", kMaxId);
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

std::string decodeInterpreter(const Fields& fields) {
    static constexpr std::array kInterpreters{"", "zygote", "context", "cold", "parked"};
    std::string interpreter = fields.textOr("interpreter", 16);
    if (std::find(kInterpreters.begin(), kInterpreters.end(), interpreter) == kInterpreters.end()) {
        Fields::wrong("interpreter");
    }
    return interpreter;
}

std::vector<KnownContext> decodeContexts(const Fields& fields) {
    std::vector<KnownContext> contexts;
    if (!fields.find("contexts")) return contexts;
    for (const Json& item : fields.array("contexts", kMaxContexts)) {
        const Fields entry(item);
        contexts.push_back({entry.text("id", kMaxId),
                            languageName(entry.text("language", 32), "language"),
                            entry.flag("running")});
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
    if (request.cpus > 0) json["cpus"] = request.cpus;
    if (!request.trust.empty()) json["trust"] = request.trust;
    for (const AptArchive& archive : request.apt) {
        Json one{{"source", archive.source}};
        if (!archive.keyring.empty()) one["keyring"] = archive.keyring;
        if (archive.keyring_optional) one["keyringOptional"] = true;
        json["apt"].push_back(std::move(one));
    }
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
    const Fields fields(json);
    if (fields.text("id", kMaxId) != request.id) Fields::wrong("id");
    if (fields.text("language", 32) != request.language) Fields::wrong("language");
    return fields.flag("repeated");
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
    const Fields fields(json);
    PrewarmReply reply;
    for (const Json& item : fields.array("ready", kMaxLanguages)) {
        if (!item.is_string() || !request.languages.contains(item.get<std::string>())) {
            Fields::wrong("ready");
        }
        reply.ready.push_back(item.get<std::string>());
    }
    if (!fields.find("failed")) return reply;
    for (const auto& [language, why] : fields.object("failed").json().items()) {
        if (!request.languages.contains(language) || !why.is_string()) Fields::wrong("failed");
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
    const Fields fields(json);
    std::string code = fields.text("code", 64);
    if (!isCode(code)) Fields::wrong("code");
    std::string message = fields.text("message", kMaxText);
    if (message.size() > 1024) message = toUtf8(std::string_view(message).substr(0, 1024));
    json.erase("code");
    json.erase("message");
    return {std::move(code), message, std::move(json)};
}

void checkHello(const Json& json) {
    const Fields fields(json);
    if (fields.number("protocol") != kProtocolVersion) Fields::wrong("protocol");
}

Hello decodeHello(const Json& json) {
    checkHello(json);
    const Fields fields(json);
    Hello hello;
    hello.version = fields.text("agent", 64);
    hello.highest_epoch = fields.number("highestEpoch");
    if (fields.find("bound")) hello.binding = decodeBinding(fields.object("bound"));
    hello.deadlines = decodeDeadlines(fields.object("deadlines").json());
    hello.last_activity = fields.time("lastActivityNs");
    hello.now = fields.time("nowNs");
    hello.running = static_cast<std::uint32_t>(fields.number("running", kMaxExecutions));
    for (const Json& item : fields.array("executions", kMaxExecutions)) {
        const Fields entry(item);
        KnownExecution known;
        known.id = entry.text("id", kMaxId);
        known.fingerprint = entry.text("fingerprint", kMaxId);
        const std::string state = entry.text("state", 16);
        if (state != "running" && state != "exited") Fields::wrong("state");
        known.running = state == "running";
        known.background = entry.flag("background");
        known.started_at = entry.time("startedAtNs");
        hello.executions.push_back(std::move(known));
    }
    const Fields languages = fields.object("languages");
    if (languages.json().size() > kMaxLanguages) Fields::wrong("languages");
    for (const auto& [name, ignored] : languages.json().items()) {
        hello.languages.push_back(languageName(name, "languages"));
    }
    hello.contexts = decodeContexts(fields);
    return hello;
}

BindReply decodeBind(const Json& json, const BindRequest& request) {
    const Fields fields(json);
    BindReply reply;
    reply.repeated = fields.flag("repeated");
    if (fields.text("claimId", kMaxId) != request.claim_id) Fields::wrong("claimId");
    reply.attempt = static_cast<std::uint32_t>(
        fields.number("attempt", std::numeric_limits<std::uint32_t>::max()));
    reply.workspace_id = fields.text("workspaceId", kMaxId);
    if (!reply.repeated &&
        (reply.workspace_id != request.workspace_id || reply.attempt != request.attempt)) {
        Fields::wrong("workspaceId");
    }
    reply.bound_at = fields.time("boundAtNs");
    return reply;
}

Deadlines decodeDeadlines(const Json& json) {
    const Fields fields(json);
    Deadlines deadlines;
    deadlines.expires_at = fields.time("expiresAtNs");
    deadlines.idle_timeout = std::chrono::milliseconds(
        static_cast<std::int64_t>(fields.number("idleTimeoutMs", kMaxNumber / 1'000'000)));
    deadlines.idle_at = fields.time("idleAtNs");
    return deadlines;
}

TimePoint decodeTouch(const Json& json) {
    return Fields(json).time("lastActivityNs");
}

ExecStart decodeStarted(const Json& json, const std::string& id) {
    const Fields fields = Fields(json).object("started");
    if (fields.text("id", kMaxId) != id) Fields::wrong("id");
    ExecStart started{fields.time("startedAtNs"), fields.flag("repeated"),
                      decodeInterpreter(fields), fields.textOr("context", kMaxId)};
    if (fields.find("note")) started.note = fields.object("note").json();
    return started;
}

ExecResult decodeResult(const Json& json, const std::string& id) {
    static constexpr std::array kStates{"ok", "failed", "timeout", "killed"};
    const Fields fields = Fields(json).object("result");
    if (fields.text("id", kMaxId) != id) Fields::wrong("id");
    ExecResult result;
    result.status = fields.text("status", 16);
    if (std::find(kStates.begin(), kStates.end(), result.status) == kStates.end()) {
        Fields::wrong("status");
    }
    result.exit_code = static_cast<int>(fields.integer("exitCode", -1, 255));
    result.signal = static_cast<int>(fields.integer("signal", 0, 128));
    result.started_at = fields.time("startedAtNs");
    result.ended_at = fields.time("endedAtNs");
    if (result.ended_at < result.started_at) Fields::wrong("endedAtNs");
    result.cpu_ms = fields.number("cpuMs");
    result.max_rss_bytes = fields.number("maxRssBytes");
    result.output_bytes = fields.number("outputBytes");
    result.dropped_bytes = fields.number("droppedBytes", result.output_bytes);
    result.interpreter = decodeInterpreter(fields);
    if (fields.find("resultBytes")) {
        result.result_bytes = fields.number("resultBytes", kMaxResultBytes + 4 * kMaxResults);
    }
    if (fields.find("droppedResults")) result.dropped_results = fields.number("droppedResults");
    if (fields.find("contextKept")) result.context_kept = fields.flag("contextKept");
    if (fields.find("prepared")) {
        const Fields prepared = fields.object("prepared");
        result.prepared = {prepared.flag("ok"), prepared.number("durationMs"),
                           prepared.text("output", kMaxText), prepared.text("errors", kMaxText)};
    }
    result.report = fields.textOr("report", kMaxText);
    return result;
}

FileStat decodeStat(const Json& json) {
    return decodeItem(Fields(json).object("stat").json());
}

FileList decodeList(const Json& json, std::size_t limit) {
    const Fields fields(json);
    FileList list;
    for (const Json& item : fields.array("items", limit)) list.items.push_back(decodeItem(item));
    list.next = fields.textOr("next", kMaxPath);
    return list;
}

FileChanges decodeChanges(const Json& json, std::size_t limit) {
    const Fields fields(json);
    FileChanges changes;
    for (const Json& item : fields.array("items", limit)) {
        changes.items.push_back(decodeItem(item));
    }
    changes.more = fields.find("more") != nullptr && fields.flag("more");
    return changes;
}

std::uint64_t decodeBytes(const Json& json) {
    return Fields(json).number("bytes");
}

ArchiveCount decodeArchiveCount(const Json& json) {
    const Fields fields(json);
    return {fields.number("files"), fields.number("directories"), fields.number("links"),
            fields.number("bytes")};
}

std::pair<std::uint64_t, std::uint64_t> decodeUsage(const Json& json) {
    const Fields fields(json);
    const std::uint64_t total = fields.number("diskTotal");
    return {total, fields.number("diskUsed", total)};
}

}  // namespace hearth::agent
