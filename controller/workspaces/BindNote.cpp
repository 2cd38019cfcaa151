#include "controller/workspaces/BindNote.h"

#include <chrono>
#include <cstdint>
#include <nlohmann/json.hpp>

#include "base/Clock.h"
#include "base/Error.h"

namespace hearth::controller {

Json bindNote(const WorkspaceFacts& facts) {
    Json note{{"pool", facts.pool},
              {"name", facts.name},
              {"createdMs", toUnixMillis(facts.created)},
              {"maxLifetimeMs", facts.max_lifetime.count()},
              {"oneShot", facts.one_shot},
              {"countRunningWork", facts.count_running_work},
              {"warnBeforeMs", facts.warn_before.count()},
              {"pauseWhenIdle", facts.pause_when_idle},
              {"milliCpu", facts.limits.milli_cpu},
              {"memory", facts.limits.memory_bytes},
              {"pids", facts.limits.pids},
              {"workspace", facts.limits.workspace_bytes},
              {"tmp", facts.limits.tmp_bytes}};
    if (!facts.sealed.empty()) note["sealed"] = facts.sealed;
    if (facts.trace.sampled) note["traceparent"] = traceParent(facts.trace);
    return note;
}

WorkspaceFacts factsFrom(const agent::Binding& binding, const pool::SandboxId& sandbox) {
    try {
        const Json& note = binding.note;
        WorkspaceFacts facts;
        facts.id = binding.workspace_id;
        facts.tenant = binding.tenant;
        facts.sandbox = sandbox;
        facts.claim_id = binding.claim_id;
        facts.fingerprint = binding.fingerprint;
        facts.pool = note.at("pool").get<std::string>();
        facts.name = note.at("name").get<std::string>();
        facts.created = fromUnixMillis(note.at("createdMs").get<std::int64_t>());
        facts.created_at = binding.bound_at;
        facts.max_lifetime =
            std::chrono::milliseconds(note.at("maxLifetimeMs").get<std::int64_t>());
        facts.one_shot = note.at("oneShot").get<bool>();
        // A claim of an earlier version has none of these.
        facts.count_running_work = note.value("countRunningWork", true);
        facts.warn_before = std::chrono::milliseconds(note.value("warnBeforeMs", std::int64_t{0}));
        facts.pause_when_idle = note.value("pauseWhenIdle", false);
        facts.limits = {
            note.at("milliCpu").get<std::uint32_t>(), note.at("memory").get<std::uint64_t>(),
            note.at("pids").get<std::uint32_t>(), note.at("workspace").get<std::uint64_t>(),
            note.at("tmp").get<std::uint64_t>()};
        facts.sealed = note.value("sealed", "");
        facts.trace = parseTraceContext(note.value("traceparent", ""), "").value_or(TraceContext());
        return facts;
    } catch (const Json::exception&) {
        throw Error(ErrorCode::InvalidArgument, "the agent's note is none of ours");
    }
}

}  // namespace hearth::controller
