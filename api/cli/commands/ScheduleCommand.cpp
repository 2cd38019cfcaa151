#include <nlohmann/json.hpp>

#include "api/cli/commands/Commands.h"
#include "api/cli/remote/Remote.h"
#include "api/command/OutputFormat.h"
#include "api/config/TextFile.h"
#include "base/http/Url.h"
#include "controller/schedule/ParseTime.h"
#include "controller/schedule/Schedule.h"
#include "controller/spec/PoolSpec.h"

namespace hearth::cli {
namespace {

using controller::InForce;
using controller::Schedule;
using controller::Schedules;
using controller::TimeZone;
using controller::WarmRange;

constexpr std::size_t kMostManifest = 1U << 20U;
constexpr int kMostHours = 24 * 31;
constexpr std::size_t kMostRows = 1000;

/// One moment of a pool's schedules.
struct Moment {
    WallTime at;
    TimeZone zone;
    std::string entry;
    WarmRange range;
    std::string why;
};

std::string scheduleName(const Schedules& schedules, const InForce& state) {
    return state.entry ? schedules[*state.entry].name : "";
}

std::string fired(const Schedule& one, const InForce& now, const Schedules& schedules) {
    std::string why;
    const bool holds = one.warm && scheduleName(schedules, now) == one.name;
    if (holds) why = one.duration.count() > 0 ? "its window begins" : "it is in force from here";
    if (one.warm && !holds) why = "it fires, but is overridden by " + scheduleName(schedules, now);
    if (one.sweep) why += std::string(why.empty() ? "" : "; ") + "warm sandboxes are replaced";
    return why;
}

std::vector<Moment> momentsOf(const controller::PoolSpec& spec, WallTime from, WallTime to) {
    const Schedules& schedules = spec.schedules;
    const WarmRange own = controller::ownRange(spec);
    InForce state = controller::inForce(schedules, from);
    const TimeZone first = state.entry         ? schedules[*state.entry].zone
                           : schedules.empty() ? TimeZone()
                                               : schedules.front().zone;
    std::vector<Moment> all{{from, first, scheduleName(schedules, state),
                             controller::warmRange(schedules, own, from),
                             state.entry ? "in force" : "the pool's own numbers"}};
    for (auto at = controller::nextMoment(schedules, from); at && *at <= to;
         at = controller::nextMoment(schedules, *at)) {
        const InForce now = controller::inForce(schedules, *at);
        const WarmRange range = controller::warmRange(schedules, own, *at);
        const std::size_t before = all.size();
        for (const Schedule& one : schedules) {
            if (one.cron.last(one.zone, *at) != *at) continue;
            // An entry that is active already and fires again changes nothing.
            const bool again = one.warm && !one.sweep && now.entry && now.entry == state.entry &&
                               &schedules[*now.entry] == &one;
            if (!again) all.push_back({*at, one.zone, one.name, range, fired(one, now, schedules)});
        }
        if (all.size() == before && now.entry != state.entry) {
            const Schedule& over = schedules[state.entry.value_or(0)];
            all.push_back({*at, over.zone, scheduleName(schedules, now), range,
                           "the window of " + over.name + " ends"});
        }
        state = now;
        if (all.size() >= kMostRows) break;
    }
    return all;
}

/// The pool in the file or on the server that the call names.
controller::Pool poolOf(const Options& options) {
    const std::vector<std::string>& words = options.positional();
    const std::string name = words.size() > 1 ? words[1] : "";
    if (const auto file = options.get("file")) {
        auto pools = controller::parsePoolYaml(readTextFile(*file, kMostManifest), *file);
        if (name.empty() && pools.size() == 1) return pools.front();
        std::vector<std::string> names;
        for (controller::Pool& pool : pools) {
            if (pool.name == name) return std::move(pool);
            names.push_back(pool.name);
        }
        if (pools.empty()) throw UsageError(*file + " declares no pool");
        if (name.empty()) {
            throw UsageError(*file + " declares " + std::to_string(names.size()) + " pools",
                             "name one: hearth schedule explain POOL -f FILE");
        }
        throw unknownWord(*file + " declares no pool \"" + name + "\"", name, names);
    }
    if (name.empty()) {
        throw UsageError("which pool?", "hearth schedule explain POOL, or -f FILE");
    }
    Remote remote(options);
    const Json answer = remote.get("/v1/pools/" + percentEncode(name));
    return controller::parsePool({{"apiVersion", answer.at("apiVersion")},
                                  {"kind", answer.at("kind")},
                                  {"metadata", {{"name", name}}},
                                  {"spec", answer.at("spec")}});
}

int hoursOf(const Options& options) {
    const std::string text = options.get("hours", "24");
    const bool digits = !text.empty() && text.size() < 5 &&
                        text.find_first_not_of("0123456789") == std::string::npos;
    const int hours = digits ? std::stoi(text) : 0;
    if (hours < 1 || hours > kMostHours) {
        throw UsageError("--hours \"" + text + "\" is not from 1 to " + std::to_string(kMostHours),
                         "hearth schedule explain POOL --hours 48");
    }
    return hours;
}

int schedule(const Invocation& call) {
    const Options& options = call.options;
    const std::string& verb = options.positional()[0];
    if (verb != "explain") {
        throw unknownWord("schedule \"" + verb + "\" is unknown", verb, {"explain"});
    }
    WallTime from = std::chrono::floor<std::chrono::seconds>(SystemClock().wall());
    if (const auto text = options.get("at")) {
        const std::optional<WallTime> at = controller::parseTime(*text);
        if (!at) {
            throw UsageError(
                "--at \"" + *text + "\" is not a time",
                "2026-11-25T20:00:00Z, or with an offset such as +08:00; before the year 2250");
        }
        from = *at;
    }
    const int hours = hoursOf(options);
    const bool json = wantsJson(options);
    const controller::Pool pool = poolOf(options);
    const std::vector<Moment> moments =
        momentsOf(pool.spec, from, from + std::chrono::hours(hours));
    Table table({"TIME", "UTC", "ENTRY", "WARM", "WHY"});
    Json rows = Json::array();
    for (const Moment& one : moments) {
        const std::string range =
            std::to_string(one.range.min) + ".." + std::to_string(one.range.max);
        table.add({one.zone.show(one.at), TimeZone().show(one.at).substr(0, 16),
                   one.entry.empty() ? "-" : one.entry, range, one.why});
        rows.push_back({{"at", formatRfc3339(one.at)},
                        {"timeZone", one.zone.name()},
                        {"entry", one.entry.empty() ? Json(nullptr) : Json(one.entry)},
                        {"min", one.range.min},
                        {"max", one.range.max},
                        {"why", one.why}});
    }
    if (json) {
        call.console.out << jsonText({{"pool", pool.name}, {"moments", rows}}) << '\n';
        return kOk;
    }
    call.console.out << table.text();
    if (pool.spec.schedules.empty()) call.console.note("pool " + pool.name + " has no schedules");
    if (moments.size() >= kMostRows) call.console.note("there are more; ask for fewer --hours");
    return kOk;
}

}  // namespace

Command makeSchedule() {
    return {{.name = "schedule",
             .arguments = "explain [POOL]",
             .summary = "Show what the schedules of a pool will do.",
             .details =
                 "  hearth schedule explain python\n"
                 "  hearth schedule explain -f pool.yaml --at 2026-03-08T00:00:00Z --hours 48\n\n"
                 "The first line is the state at that time; then one line for each moment, in the\n"
                 "entry's time zone and in UTC, with the numbers of warm sandboxes from there on.\n"
                 "With -f no server is asked.",
             .flags = withClientFlags(withOutputFlags(
                 {ownFlag("file", 'f', "FILE", "A manifest, instead of the server's pool"),
                  ownFlag("at", 0, "TIME", "From when, instead of now"),
                  ownFlag("hours", 0, "N", "How far ahead; without it 24")})),
             .least = 1,
             .most = 2,
             .operands = {"explain", "@pool"}},
            schedule};
}

}  // namespace hearth::cli
