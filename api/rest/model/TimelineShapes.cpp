#include "api/rest/model/TimelineShapes.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "api/rest/model/Views.h"

namespace hearth::rest {
namespace {

/// Rounds to a thousandth: more digits would be noise.
double rounded(double ms) {
    return std::round(ms * 1000) / 1000;
}

Schema poolThenSchema() {
    Schema shape =
        Schema::object()
            .required("ready", Schema::integer())
            .required("claimed", Schema::integer())
            .required("creating", Schema::integer().describe("Being made"))
            .required("waiting", Schema::integer().describe("Claims in line, with it"))
            .required("unpackingImage", Schema::boolean().describe(
                                            "Its image was unpacked while the claim stood in line"))
            .describe("The pool when the claim asked for its sandbox")
            .named("PoolThen");
    return shape.nullable();
}

Schema pressureSchema() {
    Schema shape = Schema::object()
                       .required("cpu", Schema::number())
                       .required("memory", Schema::number())
                       .required("io", Schema::number())
                       .describe(
                           "For operators, for claims that waited or took over 50 ms: how busy the "
                           "machine was, as the percent of ten seconds in which some task waited "
                           "for the resource (Linux's pressure stall information)")
                       .named("HostPressure");
    return shape.nullable();
}

}  // namespace

Schema timelineSchema() {
    const Schema stage = Schema::object()
                             .required("stage", Schema::string())
                             .required("ms", Schema::number())
                             .named("TimelineStage");
    return Schema::object()
        .required("id", Schema::string())
        .required("kind", Schema::oneOf({"workspace", "execution"}))
        .required("pool", Schema::string())
        .required("traceId", Schema::string().nullable())
        .required("startedAt", Schema::string(kDateTime))
        .required("totalMs", Schema::number().describe("So far, while it runs"))
        .required("running", Schema::boolean())
        .required("stages",
                  Schema::array(stage).describe(
                      "In their order. Of a claim: server (before it asks), pull, unpack, queue, "
                      "create, warm, pick, bind; of an execution: those of its claim, if it is a "
                      "one shot, then start, packages, run"))
        .required("firstOutputMs", Schema::number().nullable().describe("After the request"))
        .required("queuePlace", Schema::integer().nullable().describe(
                                    "The place in line; null: it did not wait in line"))
        .required("poolThen", poolThenSchema())
        .required("pressureThen", pressureSchema())
        .required("largest", Schema::string().nullable().describe("The stage that took longest"))
        .required("sentence", Schema::string().describe("Names the largest cause"))
        .example({{"id", "ws_5f0c2c9a3d1e4b7f8a6b5c4d3e2f1a0b"},
                  {"kind", "workspace"},
                  {"pool", "python"},
                  {"traceId", nullptr},
                  {"startedAt", "2026-11-27T10:00:00.000Z"},
                  {"totalMs", 412.3},
                  {"running", false},
                  {"stages",
                   {{{"stage", "queue"}, {"ms", 398.2}},
                    {{"stage", "pick"}, {"ms", 0.02}},
                    {{"stage", "bind"}, {"ms", 14.08}}}},
                  {"firstOutputMs", nullptr},
                  {"queuePlace", 3},
                  {"poolThen",
                   {{"ready", 0},
                    {"claimed", 4},
                    {"creating", 1},
                    {"waiting", 3},
                    {"unpackingImage", false}}},
                  {"pressureThen", {{"cpu", 12.5}, {"memory", 0.0}, {"io", 3.1}}},
                  {"largest", "queue"},
                  {"sentence",
                   "Almost all of its 412 ms was the wait in line: pool python had no ready "
                   "sandbox (4 claimed, 1 being made), and it was number 3 in line."}})
        .named("Timeline");
}

Json timelineJson(const controller::Timeline& timeline) {
    Json stages = Json::array();
    for (const controller::Timeline::Stage& stage : timeline.stages) {
        stages.push_back({{"stage", stage.name}, {"ms", rounded(stage.ms)}});
    }
    Json out = {{"id", timeline.id},
                {"kind", timeline.execution ? "execution" : "workspace"},
                {"pool", timeline.pool},
                {"traceId", orNull(timeline.trace_id)},
                {"startedAt", timeline.started_at},
                {"totalMs", rounded(timeline.total_ms)},
                {"running", timeline.running},
                {"stages", std::move(stages)},
                {"firstOutputMs", nullptr},
                {"queuePlace", nullptr},
                {"poolThen", nullptr},
                {"pressureThen", nullptr},
                {"largest", orNull(timeline.largest)},
                {"sentence", timeline.sentence}};
    if (timeline.first_output_ms) out["firstOutputMs"] = rounded(*timeline.first_output_ms);
    if (!timeline.scene) return out;
    const controller::ClaimScene& scene = *timeline.scene;
    if (scene.place > 0) out["queuePlace"] = scene.place;
    out["poolThen"] = {{"ready", scene.pool.ready},
                       {"claimed", scene.pool.claimed},
                       {"creating", scene.pool.creating},
                       {"waiting", scene.pool.waiting},
                       {"unpackingImage", scene.pool.unpacking}};
    if (scene.pressure) {
        out["pressureThen"] = {{"cpu", scene.pressure->cpu},
                               {"memory", scene.pressure->memory},
                               {"io", scene.pressure->io}};
    }
    return out;
}

}  // namespace hearth::rest
