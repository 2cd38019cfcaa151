#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "controller/contract/Timeline.h"

using namespace hearth;
using namespace hearth::controller;
using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;

namespace {

Timeline timelineOf(std::vector<Timeline::Stage> stages) {
    Timeline timeline;
    timeline.pool = "p";
    timeline.stages = std::move(stages);
    for (const Timeline::Stage& stage : timeline.stages) timeline.total_ms += stage.ms;
    timeline.scene.emplace();
    timeline.scene->pool = {0, 4, 1, 3};
    return timeline;
}

std::string sentenceOf(Timeline timeline) {
    explain(timeline);
    return timeline.sentence;
}

}  // namespace

TEST_CASE("one sentence names the largest cause of a claim's time", "[unit][controller]") {
    Timeline line = timelineOf({{"queue", 398}, {"bind", 14}});
    line.scene->place = 3;
    CHECK(
        sentenceOf(line) ==
        "Almost all of its 412 ms was the wait in line: pool p had no ready sandbox (4 claimed, 1 "
        "being made), and it was number 3 in line.");
    line.scene->pool.unpacking = true;
    CHECK_THAT(sentenceOf(line),
               Contains("no ready sandbox, because its image was being unpacked"));
    CHECK_THAT(sentenceOf(timelineOf({{"create", 60}, {"warm", 40}})),
               StartsWith("Most of it, 60 ms of 100 ms, was the making of a sandbox"));
    CHECK_THAT(sentenceOf(timelineOf({{"pull", 30}, {"unpack", 30}, {"create", 40}})),
               StartsWith("The largest part, 40 ms of 100 ms, was "));
    CHECK_THAT(sentenceOf(timelineOf({{"bind", 100}})), Contains("agent answered late"));
    CHECK_THAT(sentenceOf(timelineOf({{"unknown to this version", 100}})), Contains("server"));
}

TEST_CASE("the sentence of a fast claim names no cause, and a missing record is said to be unknown",
          "[unit][controller]") {
    CHECK(sentenceOf(timelineOf({{"pick", 0.02}, {"bind", 0.28}})) ==
          "Nothing held it up: a sandbox of pool p was ready and was bound after 0.3 ms.");
    CHECK_THAT(sentenceOf(timelineOf({})), StartsWith("Nothing is known"));
}

TEST_CASE("the sentence of a slow claim names a busy machine, the scarcest resource first",
          "[unit][controller]") {
    Timeline line = timelineOf({{"bind", 100}});
    line.scene->pressure = {90, 0, 0};
    CHECK_THAT(sentenceOf(line), Contains("in 90 % of the ten seconds before, some task waited "
                                          "for a processor"));
    line.scene->pressure = {90, 0, 20};
    CHECK_THAT(sentenceOf(line), Contains("the disk"));
    line.scene->pressure = {90, 11, 20};
    CHECK_THAT(sentenceOf(line), Contains("for memory"));
    line.scene->pressure = {5, 1, 1};
    CHECK_THAT(sentenceOf(line), !Contains("busy"));
}

TEST_CASE("the sentence of an execution says whether its program computed or waited",
          "[unit][controller]") {
    Timeline line = timelineOf({{"start", 2}, {"run", 1000}});
    line.execution = true;
    line.scene.reset();
    line.cpu_ms = 990;
    CHECK_THAT(sentenceOf(line), Contains("the program itself: it used processors for 990 ms"));
    line.cpu_ms = 10;
    CHECK_THAT(sentenceOf(line), Contains("mostly waited"));
    line.out_of_memory = true;
    CHECK_THAT(sentenceOf(line), Contains("was killed because it ran out of memory"));
    line.running = true;
    CHECK_THAT(sentenceOf(line), Contains("still running"));
    CHECK(line.largest.empty());
    explain(line);
    CHECK(line.largest == "run");
}

TEST_CASE("a claim's timeline survives its way through JSON", "[unit][controller]") {
    ClaimStory story;
    story.ledger.source = ClaimSource::Queued;
    story.ledger.queue_ms = 398;
    story.ledger.total_ms = 412;
    story.scene.place = 3;
    story.scene.pool = {0, 4, 1, 3, true};
    SECTION("with what the machine was like") {
        story.scene.pressure = {1, 2, 3};
    }
    SECTION("without") {}
    story.trace_id = "0af7651916cd43dd8448eb211c80319c";
    const ClaimStory again = storyFrom(storyJson(story));
    CHECK(again.ledger.queue_ms == 398);
    CHECK(again.ledger.source == ClaimSource::Queued);
    CHECK(again.scene.place == 3);
    CHECK(again.scene.pool.claimed == 4);
    CHECK(again.scene.pool.waiting == 3);
    CHECK(again.scene.pool.unpacking);
    CHECK(again.scene.pressure.has_value() == story.scene.pressure.has_value());
    CHECK(again.trace_id == story.trace_id);
}
