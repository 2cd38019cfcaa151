#include <limits>
#include <nlohmann/json.hpp>

#include "controller/workspaces/BindNote.h"
#include "tests/support/Support.h"

using namespace hearth;
using namespace hearth::controller;
using hearth::test::errorOf;
using namespace std::chrono_literals;

namespace {

const egress::ClaimSeal kSeal("server's key");

WorkspaceFacts noted() {
    WorkspaceFacts facts;
    facts.id = "ws_1";
    facts.claim_id = "cl_1";
    facts.pool = "python";
    facts.name = "work";
    facts.created = fromUnixMillis(1'795'000'000'123);
    facts.max_lifetime = 1h;
    facts.one_shot = true;
    facts.count_running_work = false;
    facts.warn_before = 5s;
    facts.pause_when_idle = true;
    facts.limits = {.milli_cpu = 250,
                    .memory_bytes = 1ULL << 40U,
                    .pids = 9,
                    .workspace_bytes = 3,
                    .tmp_bytes = 4};
    facts.sealed = "s";
    return facts;
}

WorkspaceFacts readAgain(Json note, const std::string& claim = "cl_1") {
    agent::Binding binding;
    binding.workspace_id = "ws_1";
    binding.claim_id = claim;
    binding.note = std::move(note);
    return factsFrom(binding, "sb_1", kSeal);
}

/// Reads a note that this server has written with another value, or without the key for null.
std::string wrongIn(const char* key, const Json& value) {
    Json note = bindNote(noted(), kSeal);
    note.erase("proof");
    note[key] = value;
    if (value.is_null()) note.erase(key);
    note["proof"] = kSeal.prove(dumpJson(note), "cl_1");
    const Error error = errorOf([&] { readAgain(note); });
    CHECK(error.code() == ErrorCode::InvalidArgument);
    return error.what();
}

}  // namespace

TEST_CASE("a note comes back as the facts it was made of", "[unit][controller]") {
    const WorkspaceFacts before = noted();
    const WorkspaceFacts facts = readAgain(bindNote(before, kSeal));
    CHECK(facts.pool == before.pool);
    CHECK(facts.name == before.name);
    CHECK(facts.created == before.created);
    CHECK(facts.max_lifetime == before.max_lifetime);
    CHECK(facts.one_shot);
    CHECK_FALSE(facts.count_running_work);
    CHECK(facts.warn_before == before.warn_before);
    CHECK(facts.pause_when_idle);
    CHECK(facts.limits == before.limits);
    CHECK(facts.sealed == "s");
}

TEST_CASE("a note that was changed, or is another claim's, is refused", "[unit][controller]") {
    const auto changed = [](const char* key, const Json& value) {
        Json note = bindNote(noted(), kSeal);
        note[key] = value;
        return errorOf([&] { readAgain(note); }).what() ==
               std::string("the agent's note was changed");
    };
    CHECK(changed("memory", 1ULL << 41U));
    CHECK(changed("maxLifetimeMs", 0));
    CHECK(changed("later", true));
    CHECK(changed("proof", "00"));
    CHECK(changed("proof", 1));
    CHECK(changed("proof", nullptr));
    CHECK(errorOf([] { readAgain(bindNote(noted(), kSeal), "cl_2"); }).code() ==
          ErrorCode::InvalidArgument);
    CHECK(errorOf([] { readAgain(bindNote(noted(), egress::ClaimSeal("another key"))); }).code() ==
          ErrorCode::InvalidArgument);
}

TEST_CASE("a foreign note of an agent is refused with its field", "[unit][controller]") {
    CHECK(wrongIn("pool", 1) == "the agent's note is none of ours: /pool must be a string");
    CHECK(wrongIn("name", nullptr).find("/name is missing") != std::string::npos);
    CHECK(wrongIn("oneShot", "yes").find("/oneShot must be true or false") != std::string::npos);
    CHECK(wrongIn("pauseWhenIdle", 1).find("/pauseWhenIdle") != std::string::npos);
    CHECK(wrongIn("sealed", Json::array()).find("/sealed") != std::string::npos);
    CHECK(wrongIn("sealed", nullptr).find("/sealed is missing") != std::string::npos);
    CHECK(errorOf([] { readAgain(Json("text")); }).code() == ErrorCode::InvalidArgument);
}

TEST_CASE("numbers of a note that do not fit are refused, not cut", "[unit][controller]") {
    CHECK(wrongIn("milliCpu", 1ULL << 32U).find("/milliCpu") != std::string::npos);
    CHECK(wrongIn("pids", -1).find("/pids") != std::string::npos);
    CHECK(wrongIn("memory", 1.5).find("/memory") != std::string::npos);
    CHECK(wrongIn("maxLifetimeMs", -1).find("/maxLifetimeMs") != std::string::npos);
    // In nanoseconds, this value would overflow to another moment.
    CHECK(wrongIn("createdMs", std::numeric_limits<std::int64_t>::max()).find("/createdMs") !=
          std::string::npos);
}
