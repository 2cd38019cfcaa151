#include "controller/contract/Timeline.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>

namespace hearth::controller {
namespace {

/// A claim faster than this is what a warm pool promises: nothing delayed it.
constexpr double kFastMs = 5;
/// From this percentage of the last ten seconds on, a resource was scarce.
constexpr double kBusyCpu = 40;
constexpr double kBusyOther = 10;
constexpr double kAlmostAll = 0.95;
constexpr double kMost = 0.5;
/// A program that used a processor for less than this share of its time mostly waited.
constexpr double kMostlyWaited = 0.25;

std::string ms(double value) {
    std::array<char, 48> text{};
    const char* form = value < 10 ? "%.1f ms" : value < 10'000 ? "%.0f ms" : "%.1f s";
    std::snprintf(text.data(), text.size(), form, value < 10'000 ? value : value / 1000);
    return text.data();
}

std::string count(std::uint32_t number, const char* what) {
    return std::to_string(number) + " " + what;
}

/// Returns "; the machine was busy: in 80 % of the ten seconds before, some task …", or nothing.
std::string busy(const std::optional<HostPressure>& pressure) {
    if (!pressure) return "";
    const auto say = [](const char* resource, double percent) {
        return "; the machine was busy: in " + std::to_string(static_cast<int>(percent)) +
               " % of the ten seconds before, some task waited for " + resource;
    };
    if (pressure->memory >= kBusyOther) return say("memory", pressure->memory);
    if (pressure->io >= kBusyOther) return say("the disk", pressure->io);
    if (pressure->cpu >= kBusyCpu) return say("a processor", pressure->cpu);
    return "";
}

std::string inLine(const Timeline& timeline) {
    std::string text = "the wait in line: pool " + timeline.pool + " had no ready sandbox";
    if (!timeline.scene) return text;
    const PoolThen& pool = timeline.scene->pool;
    if (pool.unpacking) text += ", because its image was being unpacked";
    text += " (" + count(pool.claimed, "claimed") + ", " + count(pool.creating, "being made") + ")";
    if (timeline.scene->place > 1) {
        text += ", and it was number " + std::to_string(timeline.scene->place) + " in line";
    }
    return text;
}

std::string ofProgram(const Timeline& timeline) {
    if (timeline.running) return "the program itself, which is still running";
    const auto run = std::find_if(timeline.stages.begin(), timeline.stages.end(),
                                  [](const Timeline::Stage& each) { return each.name == "run"; });
    const std::string used =
        "it used processors for " + ms(timeline.cpu_ms) +
        (timeline.out_of_memory ? " and was killed because it ran out of memory" : "");
    if (run != timeline.stages.end() && timeline.cpu_ms < kMostlyWaited * run->ms) {
        return "the program itself, which mostly waited: " + used;
    }
    return "the program itself: " + used;
}

std::string causeOf(const Timeline& timeline) {
    const std::string& stage = timeline.largest;
    if (stage == "queue") return inLine(timeline);
    if (stage == "pull") return "the fetch of the image from its registry";
    if (stage == "unpack") return "the unpacking of the image on this machine";
    if (stage == "create") return "the making of a sandbox: none was ready, so one was made for it";
    if (stage == "warm") {
        return "the start of the agent and the interpreters in a sandbox that was made for it";
    }
    if (stage == "pick") return "the choice of a sandbox, which means that the server was busy";
    if (stage == "bind") return "the bind: the sandbox's agent answered late";
    if (stage == "packages") return "the installation of the packages that it asked for";
    if (stage == "start") return "the start of the program in its sandbox";
    if (stage == "run") return ofProgram(timeline);
    return "work of the server itself";
}

}  // namespace

Json storyJson(const ClaimStory& story) {
    const PoolThen& pool = story.scene.pool;
    Json out = {{"claim", ledgerJson(story.ledger)},
                {"place", story.scene.place},
                {"pool", {pool.ready, pool.claimed, pool.creating, pool.waiting}}};
    if (pool.unpacking) out["unpacking"] = true;
    if (const auto& pressure = story.scene.pressure) {
        out["pressure"] = {pressure->cpu, pressure->memory, pressure->io};
    }
    if (!story.trace_id.empty()) out["trace"] = story.trace_id;
    return out;
}

ClaimStory storyFrom(const Json& json) {
    ClaimStory story;
    story.ledger = ledgerFrom(json.at("claim"));
    story.scene.place = json.at("place").get<std::uint32_t>();
    const Json& pool = json.at("pool");
    story.scene.pool = {pool.at(0), pool.at(1), pool.at(2), pool.at(3),
                        json.value("unpacking", false)};
    if (const auto pressure = json.find("pressure"); pressure != json.end()) {
        story.scene.pressure = {pressure->at(0), pressure->at(1), pressure->at(2)};
    }
    story.trace_id = json.value("trace", "");
    return story;
}

void explain(Timeline& timeline) {
    const auto largest = std::max_element(
        timeline.stages.begin(), timeline.stages.end(),
        [](const Timeline::Stage& a, const Timeline::Stage& b) { return a.ms < b.ms; });
    if (largest == timeline.stages.end()) {
        timeline.sentence = "Nothing is known of its claim: its record is lost, or too old.";
        return;
    }
    timeline.largest = largest->name;
    if (!timeline.execution && timeline.total_ms < kFastMs) {
        timeline.sentence = "Nothing held it up: a sandbox of pool " + timeline.pool +
                            " was ready and was bound after " + ms(timeline.total_ms) + ".";
        return;
    }
    const double share = timeline.total_ms > 0 ? largest->ms / timeline.total_ms : 1;
    std::string text = share > kAlmostAll
                           ? "Almost all of its " + ms(timeline.total_ms)
                           : (share > kMost ? "Most of it, " : "The largest part, ") +
                                 ms(largest->ms) + " of " + ms(timeline.total_ms) + ",";
    const bool of_claim = timeline.largest != "run" && timeline.scene.has_value();
    timeline.sentence =
        text + " was " + causeOf(timeline) + (of_claim ? busy(timeline.scene->pressure) : "") + ".";
}

}  // namespace hearth::controller
