#include "tests/fake/runtime/FakeAgent.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "base/Error.h"

namespace hearth::pool {
namespace {

using agent::BindOutcome;
using agent::FrameType;

constexpr std::size_t kMaxKept = 64;
constexpr std::size_t kMaxRunning = 32;
constexpr std::size_t kMaxDataPeers = 8;

[[noreturn]] void refuse(const char* code, const char* message, Json details = Json::object()) {
    throw FakeRefusal{code, message, std::move(details)};
}

std::string text(const Json& json, const char* name) {
    return json.at(name).get<std::string>();
}

int signalNumber(const std::string& name) {
    static const std::map<std::string, int> numbers{
        {"HUP", 1}, {"INT", 2}, {"QUIT", 3}, {"KILL", 9}, {"USR1", 10}, {"USR2", 12}, {"TERM", 15}};
    const auto it = numbers.find(name.starts_with("SIG") ? name.substr(3) : name);
    if (it == numbers.end()) refuse("BAD_REQUEST", "the signal is unknown");
    return it->second;
}

}  // namespace

FakeAgent::FakeAgent(const Clock& clock, std::string sandbox, std::uint64_t capacity, bool plain,
                     std::shared_ptr<const FakeGroup> group)
    : clock_(clock),
      sandbox_(std::move(sandbox)),
      languages_(plain ? std::set<std::string>{"bash"} : std::set<std::string>{"bash", "python"}),
      group_(std::move(group)),
      files_(clock, capacity) {
    deadlines_.touch(now());
}

std::size_t FakeAgent::running() const {
    return static_cast<std::size_t>(std::count_if(executions_.begin(), executions_.end(),
                                                  [](const auto& e) { return e->running(); }));
}

bool FakeAgent::floods() const {
    return std::any_of(executions_.begin(), executions_.end(),
                       [](const auto& e) { return e->floods(); });
}

FakeExecution& FakeAgent::execution(const std::string& id) {
    for (const auto& known : executions_) {
        if (known->id() == id) return *known;
    }
    refuse("NOT_FOUND", "there is no such execution");
}

void FakeAgent::admit(const Json& json) {
    if (lock_.admit(json.at("epoch").get<std::uint64_t>())) return;
    refuse("STALE_EPOCH", "a newer server has been here", {{"highestEpoch", lock_.highestEpoch()}});
}

bool FakeAgent::frame(FakePeer& peer, const agent::FrameHeader& header, std::string_view payload) {
    const std::uint32_t stream = header.stream;
    const auto open = peer.streams.find(stream);
    if (header.type == FrameType::Request) {
        if (stream == 0 || open != peer.streams.end()) return false;
        try {
            request(peer, stream, parseJson(payload));
        } catch (const FakeRefusal& refusal) {
            peer.sendJson(FrameType::Error, stream, refusal.body());
        } catch (const std::exception& e) {  // a field is missing or has a wrong type
            peer.sendJson(FrameType::Error, stream,
                          {{"code", "BAD_REQUEST"}, {"message", e.what()}});
        }
        return true;
    }
    if (open == peer.streams.end()) return true;  // sent before this side's last frame arrived
    switch (header.type) {
        case FrameType::Data:
            input(peer, stream, open->second, payload);
            return true;
        case FrameType::Credit:
            if (payload.size() != 4) return false;
            open->second.credit +=
                agent::getU32(reinterpret_cast<const unsigned char*>(payload.data()));
            return true;
        case FrameType::End:
            endOfInput(peer, stream, open->second);
            return true;
        case FrameType::Cancel:
            peer.streams.erase(open);
            peer.sendJson(FrameType::Error, stream,
                          {{"code", "CANCELLED"}, {"message", "cancelled"}});
            return true;
        default:
            return false;
    }
}

void FakeAgent::request(FakePeer& peer, std::uint32_t stream, const Json& json) {
    const std::string op = text(json, "op");
    if (peer.kind == FakePeer::Kind::Unknown && op != "hello") {
        refuse("BAD_REQUEST", "a connection begins with hello");
    }
    static constexpr std::array kData{"list",    "stat",  "mkdir", "move",  "remove",
                                      "changes", "usage", "read",  "write", "attach"};
    const bool is_data = std::find(kData.begin(), kData.end(), op) != kData.end();
    if (peer.kind == FakePeer::Kind::Data && !is_data) {
        refuse("BAD_REQUEST", "not on a data connection");
    }
    const bool ahead = op == "exec" && json.value("prewarm", false);
    if ((ahead || op == "prewarm") && lock_.holder()) {
        refuse("BAD_REQUEST", "the sandbox is bound already");
    }
    if (((is_data && op != "usage") || (op == "exec" && !ahead) || op == "context" ||
         op == "contextEnd" || op == "contextRestart" || op == "interrupt" || op == "signal" ||
         op == "resize" || op == "forget") &&
        !lock_.holder()) {
        refuse("NOT_BOUND", "the sandbox is not bound");
    }
    if (op == "exec") {
        execute(peer, stream, json);
    } else if (op == "attach") {
        FakeStream from;
        from.position = json.at("offset").get<std::uint64_t>();
        from.results = json.value("results", std::uint64_t{0});
        from.owns_input = true;  // every follower of an execution may send input
        attach(peer, stream, execution(text(json, "id")), from, true);
    } else if (op == "read" || op == "write") {
        openFile(peer, stream, op, json);
    } else {
        const Json answer = simple(peer, op, json);
        peer.sendJson(FrameType::Reply, stream, answer);
    }
}

Json FakeAgent::usage() const {
    Json told{
        {"diskTotal", files_.capacity()}, {"diskUsed", files_.used()}, {"processes", running()}};
    if (group_->agents_tell) {
        const std::uint64_t set = group_->memory_bytes;
        const std::uint64_t memory = set > 0 ? set : (1U << 20U) + files_.used();
        told["group"] = {{"cpuNs", group_->cpu_ns.load()},
                         {"memoryBytes", memory},
                         {"memoryPeakBytes", memory},
                         {"oomKills", group_->oom_kills.load()}};
    }
    return told;
}

Json FakeAgent::simple(FakePeer& peer, const std::string& op, const Json& json) {
    Json done = Json::object();
    if (op == "hello") return hello(peer, json);
    if (op == "prewarm") return prewarm(json);
    if (std::optional<Json> answer = contextual(op, json)) return *std::move(answer);
    if (op == "bind") return bind(json);
    if (op == "deadlines") return deadlines(json);
    if (op == "touch") {
        deadlines_.touch(now());
        return {{"lastActivityNs", deadlines_.lastActivityNs()},
                {"idleAtNs", deadlines_.idleAtNs()}};
    }
    if (op == "signal") {
        FakeExecution& known = execution(text(json, "id"));
        const bool ran = known.running();
        known.kill(signalNumber(text(json, "signal")), now());
        if (ran && !known.running()) settle(known);
        return done;
    }
    if (op == "resize") {
        execution(text(json, "id"));
        return done;
    }
    if (op == "forget") {
        const std::string id = text(json, "id");
        std::erase_if(executions_, [&](const auto& e) { return e->id() == id && !e->running(); });
        return done;
    }
    if (op == "drain") {
        admit(json);
        for (const auto& known : executions_) known->kill(9, now());
        alive_ = false;
        return done;
    }
    if (op == "usage") return usage();
    if (op == "stat") return {{"stat", files_.stat(text(json, "path"))}};
    if (op == "list") {
        return files_.list(text(json, "path"), json.value("recursive", false),
                           std::min<std::size_t>(json.value("limit", std::size_t{1000}), 1000),
                           json.value("after", ""));
    }
    if (op == "changes") {
        return files_.changes(json.at("sinceNs").get<std::int64_t>(),
                              std::min<std::size_t>(json.value("limit", std::size_t{1000}), 1000),
                              json.value("globs", std::vector<std::string>()));
    }
    deadlines_.touch(now());
    if (op == "mkdir") {
        files_.makeDirectory(text(json, "path"));
    } else if (op == "move") {
        files_.move(text(json, "from"), text(json, "to"));
    } else if (op == "remove") {
        files_.remove(text(json, "path"), json.value("recursive", false));
    } else {
        refuse("UNSUPPORTED", "the operation is unknown");
    }
    return done;
}

Json FakeAgent::hello(FakePeer& peer, const Json& json) {
    if (json.at("protocol").get<int>() != agent::kProtocolVersion) {
        refuse("UNSUPPORTED", "the protocol is of another version");
    }
    const auto& holder = lock_.holder();
    if (peer.kind != FakePeer::Kind::Unknown) refuse("BAD_REQUEST", "a second hello");
    if (text(json, "kind") == "data") {
        if (!holder) refuse("NOT_BOUND", "the sandbox is not bound");
        if (text(json, "claimId") != holder->claim_id)
            refuse("BOUND_ELSEWHERE", "another claim holds it");
        if (data_peers_ == kMaxDataPeers) refuse("TOO_MANY", "too many data connections");
        peer.kind = FakePeer::Kind::Data;
        ++data_peers_;
    } else {
        admit(json);
        if (control_) control_->ended = true;
        control_ = &peer;
        peer.kind = FakePeer::Kind::Control;
    }
    Json executions = Json::array();
    for (const auto& known : executions_) {
        executions.push_back({{"id", known->id()},
                              {"fingerprint", known->fingerprint()},
                              {"state", known->running() ? "running" : "exited"},
                              {"startedAtNs", known->startedAtNs()},
                              {"background", known->background()}});
    }
    Json contexts = Json::array();
    for (const auto& each : contexts_) {
        contexts.push_back(
            {{"id", each->id}, {"language", each->language}, {"running", each->busy}});
    }
    Json bound;
    if (holder) {
        bound = {{"claimId", holder->claim_id},
                 {"attempt", holder->attempt},
                 {"epoch", holder->epoch},
                 {"tenant", holder->tenant},
                 {"workspaceId", holder->workspace_id},
                 {"fingerprint", holder->fingerprint},
                 {"labels", parseJson(holder->labels)},
                 {"note", parseJson(holder->note)},
                 {"boundAtNs", holder->bound_at_ns}};
    }
    Json languages = Json::object();
    for (const std::string& language : languages_) languages[language] = Json::object();
    return {{"protocol", agent::kProtocolVersion},
            {"agent", "fake"},
            {"sandbox", sandbox_},
            {"languages", std::move(languages)},
            {"nowNs", now()},
            {"highestEpoch", lock_.highestEpoch()},
            {"bound", bound},
            {"deadlines",
             {{"expiresAtNs", deadlines_.expiresAtNs()},
              {"idleTimeoutMs", deadlines_.idleTimeoutMs()},
              {"idleAtNs", deadlines_.idleAtNs()}}},
            {"lastActivityNs", deadlines_.lastActivityNs()},
            {"running", running()},
            {"executions", executions},
            {"contexts", contexts}};
}

std::optional<Json> FakeAgent::contextual(const std::string& op, const Json& json) {
    if (op == "context") {
        const std::string id = text(json, "id");
        const std::string language = text(json, "language");
        deadlines_.touch(now());
        for (const auto& known : contexts_) {
            if (known->id != id) continue;
            if (known->language != language) refuse("BAD_REQUEST", "it has another language");
            return Json{{"id", id}, {"language", language}, {"repeated", true}};
        }
        if (language != "python") refuse("UNSUPPORTED", "the language keeps no contexts");
        if (contexts_.size() == agent::kMaxContexts) refuse("TOO_MANY", "too many contexts");
        contexts_.push_back(std::make_shared<FakeContext>(FakeContext{id, language}));
        return Json{{"id", id}, {"language", language}, {"repeated", false}};
    }
    if (op != "contextEnd" && op != "contextRestart" && op != "interrupt") return std::nullopt;
    const std::shared_ptr<FakeContext> known = context(text(json, "id"));
    FakeExecution* running = runningIn(*known);
    deadlines_.touch(now());
    if (op == "interrupt") {
        if (running == nullptr) refuse("NOT_FOUND", "the context runs nothing");
        running->interrupt(now());
        if (!running->running()) settle(*running);
        return Json::object();
    }
    if (running != nullptr) {
        running->kill(9, now());
        deadlines_.ended(now());
    }
    known->variables.clear();
    if (op == "contextEnd") std::erase(contexts_, known);
    return Json::object();
}

/// Modules whose names begin with "missing" do not exist.
Json FakeAgent::prewarm(const Json& json) const {
    Json ready = Json::array();
    Json failed = Json::object();
    for (const auto& [language, wanted] : json.at("languages").items()) {
        if (!languages_.contains(language)) {
            failed[language] = "the image has no such language";
            continue;
        }
        ready.push_back(language);
        for (const Json& module : wanted.value("imports", Json::array())) {
            const auto name = module.get<std::string>();
            if (name.starts_with("missing")) failed[language] = "No module named '" + name + "'";
        }
    }
    return {{"ready", std::move(ready)}, {"failed", std::move(failed)}};
}

std::shared_ptr<FakeContext>& FakeAgent::context(const std::string& id) {
    for (auto& known : contexts_) {
        if (known->id == id) return known;
    }
    refuse("NOT_FOUND", "there is no such context");
}

std::shared_ptr<FakeContext> FakeAgent::contextOf(const Json& json) {
    if (!json.contains("context")) return nullptr;
    for (const char* own : {"cwd", "env", "pty"}) {
        if (json.contains(own)) refuse("BAD_REQUEST", "that is the context's own");
    }
    if (json.value("stdin", false) || !json.contains("code")) {
        refuse("BAD_REQUEST", "a context runs code without input");
    }
    std::shared_ptr<FakeContext> known = context(text(json, "context"));
    if (json.value("language", known->language) != known->language) {
        refuse("BAD_REQUEST", "the context has another language");
    }
    if (known->busy) refuse("BUSY", "the context runs another execution");
    return known;
}

FakeExecution* FakeAgent::runningIn(const FakeContext& wanted) {
    for (const auto& known : executions_) {
        if (known->running() && known->context() == &wanted) return known.get();
    }
    return nullptr;
}

void FakeAgent::settle(const FakeExecution& known) {
    deadlines_.ended(now());
    if (!known.tookContext()) return;
    std::erase_if(contexts_, [&](const auto& each) { return each.get() == known.context(); });
}

Json FakeAgent::bind(const Json& json) {
    agent::Binding wanted;
    wanted.claim_id = text(json, "claimId");
    wanted.attempt = json.at("attempt").get<std::int64_t>();
    wanted.epoch = json.at("epoch").get<std::uint64_t>();
    wanted.tenant = text(json, "tenant");
    wanted.workspace_id = text(json, "workspaceId");
    wanted.fingerprint = text(json, "fingerprint");
    wanted.labels = dumpJson(json.at("labels"));
    wanted.note = dumpJson(json.at("note"));
    if (wanted.claim_id.empty()) refuse("BAD_REQUEST", "the claim has no id");
    const Json& limits = json.at("deadlines");
    const auto expires = limits.at("expiresAtNs").get<std::int64_t>();
    const auto idle = limits.at("idleTimeoutMs").get<std::int64_t>();
    const std::int64_t bound_at = now();
    const BindOutcome outcome = lock_.bind(std::move(wanted), bound_at);
    const auto& holder = lock_.holder();
    switch (outcome) {
        case BindOutcome::StaleEpoch:
            refuse("STALE_EPOCH", "a newer server has been here",
                   {{"highestEpoch", lock_.highestEpoch()}});
        case BindOutcome::FingerprintMismatch:
            refuse("FINGERPRINT_MISMATCH", "the claim was bound with another body");
        case BindOutcome::Held:
            refuse("BOUND_ELSEWHERE", "another claim holds the sandbox",
                   {{"holder",
                     {{"claimId", holder->claim_id},
                      {"attempt", holder->attempt},
                      {"workspaceId", holder->workspace_id}}}});
        case BindOutcome::Bound:
            deadlines_.setExpiresAt(expires);
            deadlines_.setIdleTimeout(idle);
            deadlines_.setIdleEnds(limits.value("idleEnds", true));
            deadlines_.touch(bound_at);
            break;
        case BindOutcome::Repeated:
            break;
    }
    return {{"repeated", outcome == BindOutcome::Repeated},
            {"claimId", holder->claim_id},
            {"attempt", holder->attempt},
            {"workspaceId", holder->workspace_id},
            {"boundAtNs", holder->bound_at_ns}};
}

Json FakeAgent::deadlines(const Json& json) {
    admit(json);
    if (json.contains("expiresAtNs"))
        deadlines_.setExpiresAt(json["expiresAtNs"].get<std::int64_t>());
    if (json.contains("idleTimeoutMs"))
        deadlines_.setIdleTimeout(json["idleTimeoutMs"].get<std::int64_t>());
    return {{"expiresAtNs", deadlines_.expiresAtNs()},
            {"idleTimeoutMs", deadlines_.idleTimeoutMs()},
            {"idleAtNs", deadlines_.idleAtNs()}};
}

void FakeAgent::execute(FakePeer& peer, std::uint32_t stream, const Json& json) {
    const std::string id = text(json, "id");
    for (const auto& known : executions_) {
        if (known->id() != id) continue;
        if (known->fingerprint() != text(json, "fingerprint")) {
            refuse("FINGERPRINT_MISMATCH", "the execution is known with another body");
        }
        attach(peer, stream, *known, {}, true);
        return;
    }
    if (running() >= kMaxRunning) refuse("TOO_MANY", "too many executions run");
    auto fresh = std::make_unique<FakeExecution>(json, contextOf(json), now());
    makeRoom();
    deadlines_.started(now());
    if (!fresh->running()) settle(*fresh);
    executions_.push_back(std::move(fresh));
    FakeStream from;
    from.owns_input = json.value("stdin", false);
    attach(peer, stream, *executions_.back(), from, false);
}

void FakeAgent::makeRoom() {
    if (executions_.size() < kMaxKept) return;
    const auto oldest = std::find_if(executions_.begin(), executions_.end(),
                                     [](const auto& known) { return !known->running(); });
    if (oldest == executions_.end()) refuse("TOO_MANY", "too many executions are kept");
    executions_.erase(oldest);
}

void FakeAgent::attach(FakePeer& peer, std::uint32_t stream, FakeExecution& known,
                       const FakeStream& from, bool repeated) {
    peer.sendJson(FrameType::Note, stream, known.started(repeated));
    FakeStream open = from;
    open.name = known.id();
    peer.streams.emplace(stream, std::move(open));
}

void FakeAgent::closed(FakePeer& peer) {
    if (control_ == &peer) control_ = nullptr;
    if (peer.kind == FakePeer::Kind::Data) --data_peers_;
}

void FakeAgent::work() {
    for (const auto& known : executions_) {
        if (!known->running()) continue;
        known->work(now());
        if (!known->running()) settle(*known);
    }
}

}  // namespace hearth::pool
