#include "controller/workspaces/BindNote.h"

#include <chrono>
#include <cstdint>
#include <nlohmann/json.hpp>

#include "base/Clock.h"
#include "base/Error.h"
#include "base/Fields.h"
#include "base/Ids.h"

namespace hearth::controller {
namespace {

/// The longest time whose nanoseconds fit into the clock.
constexpr std::int64_t kMostMillis = INT64_MAX / 1'000'000;
constexpr const char* kProof = "proof";

/// Returns the proof of a note without one. An agent returns a note with its keys in their order.
std::string proofOf(const Json& note, const std::string& claim, const egress::ClaimSeal& seal) {
    return seal.prove(dumpJson(note), claim);
}

/// Throws Error(InvalidArgument) if the note's proof is missing or false.
void requireProof(const agent::Binding& binding, const egress::ClaimSeal& seal) {
    Json rest = binding.note;
    const Json proof = rest.is_object() ? rest.value(kProof, Json()) : Json();
    if (rest.is_object()) rest.erase(kProof);
    if (!proof.is_string() || !constantTimeEqual(proof.get_ref<const std::string&>(),
                                                 proofOf(rest, binding.claim_id, seal))) {
        throw Error(ErrorCode::InvalidArgument, "the agent's note was changed");
    }
}

}  // namespace

Json bindNote(const WorkspaceFacts& facts, const egress::ClaimSeal& seal) {
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
              {"tmp", facts.limits.tmp_bytes},
              {"sealed", facts.sealed}};
    if (facts.trace.sampled) note["traceparent"] = traceParent(facts.trace);
    note[kProof] = proofOf(note, facts.claim_id, seal);
    return note;
}

WorkspaceFacts factsFrom(const agent::Binding& binding, const pool::SandboxId& sandbox,
                         const egress::ClaimSeal& seal) {
    static const Fields::Wrong wrong = [](const FieldError& error) {
        throw Error(ErrorCode::InvalidArgument,
                    "the agent's note is none of ours: " + error.pointer + " " + error.reason);
    };
    Fields note(binding.note, "", wrong);
    const auto millis = [&note](const char* key) {
        return std::chrono::milliseconds(*note.integer(key, 0, kMostMillis));
    };
    const auto bytes = [&note](const char* key) { return *note.number(key, 0, UINT64_MAX); };
    const auto small = [&note](const char* key) {
        return static_cast<std::uint32_t>(*note.number(key, 0, UINT32_MAX));
    };
    requireProof(binding, seal);
    WorkspaceFacts facts;
    facts.id = binding.workspace_id;
    facts.tenant = binding.tenant;
    facts.sandbox = sandbox;
    facts.claim_id = binding.claim_id;
    facts.fingerprint = binding.fingerprint;
    facts.pool = *note.text("pool");
    facts.name = *note.text("name");
    facts.created = fromUnixMillis(millis("createdMs").count());
    facts.created_at = binding.bound_at;
    facts.max_lifetime = millis("maxLifetimeMs");
    facts.one_shot = *note.flag("oneShot");
    facts.count_running_work = *note.flag("countRunningWork");
    facts.warn_before = millis("warnBeforeMs");
    facts.pause_when_idle = *note.flag("pauseWhenIdle");
    facts.limits = {small("milliCpu"), bytes("memory"), small("pids"), bytes("workspace"),
                    bytes("tmp")};
    facts.sealed = *note.text("sealed");
    if (note.find("traceparent") != nullptr) {
        facts.trace = parseTraceContext(*note.text("traceparent"), "").value_or(TraceContext());
    }
    return facts;
}

}  // namespace hearth::controller
