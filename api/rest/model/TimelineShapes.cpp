#include <cmath>

#include "api/rest/model/Answers.h"

namespace hearth::rest {
namespace {

/// Rounds to a thousandth: more digits would be noise.
double rounded(double ms) {
    return std::round(ms * 1000) / 1000;
}

}  // namespace

static void listFields(Shape<controller::Timeline::Stage>& shape) {
    using View = controller::Timeline::Stage;
    shape.schema().named("TimelineStage");
    shape.field("stage", &View::name).field("ms", &View::ms, {rounded});
}

static void listFields(Shape<controller::PoolThen>& shape) {
    using View = controller::PoolThen;
    shape.schema().named("PoolThen").describe("The pool when the claim asked for its sandbox");
    shape.field("ready", &View::ready)
        .field("claimed", &View::claimed)
        .field("creating", &View::creating, "Being made")
        .field("waiting", &View::waiting, "Claims in line, with it")
        .field("unpackingImage", &View::unpacking,
               "Its image was unpacked while the claim stood in line");
}

static void listFields(Shape<HostPressure>& shape) {
    using View = HostPressure;
    shape.schema()
        .named("HostPressure")
        .describe(
            "For operators, for claims that waited or took over 50 ms: how busy the machine was, "
            "as the percent of ten seconds in which some task waited for the resource (Linux's "
            "pressure stall information)");
    shape.field("cpu", &View::cpu).field("memory", &View::memory).field("io", &View::io);
}

void listFields(Shape<controller::Timeline>& shape) {
    using View = controller::Timeline;
    shape.schema()
        .named("Timeline")
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
                   "sandbox (4 claimed, 1 being made), and it was number 3 in line."}});
    shape.field("id", &View::id)
        .field("kind", &View::execution,
               {[](bool execution) { return execution ? "execution" : "workspace"; },
                Schema::oneOf({"workspace", "execution"})})
        .field("pool", &View::pool)
        .orNull("traceId", &View::trace_id)
        .field("startedAt", &View::started_at, Schema::string(kDateTime))
        .field("totalMs", &View::total_ms, {rounded, "So far, while it runs"})
        .field("running", &View::running)
        .field("stages", &View::stages,
               "In their order. Of a claim: server (before it asks), pull, unpack, queue, create, "
               "warm, pick, bind; of an execution: those of its claim, if it is a one shot, then "
               "start, packages, run")
        .orNull("firstOutputMs", &View::first_output_ms, {rounded, "After the request"})
        .orNull(
            "queuePlace",
            [](const View& view) {
                const bool queued = view.scene && view.scene->place > 0;
                return queued ? std::optional(view.scene->place) : std::nullopt;
            },
            "The place in line; null: it did not wait in line")
        .orNull("poolThen",
                [](const View& view) {
                    return view.scene ? std::optional(view.scene->pool) : std::nullopt;
                })
        .orNull("pressureThen",
                [](const View& view) { return view.scene ? view.scene->pressure : std::nullopt; })
        .orNull("largest", &View::largest, "The stage that took longest")
        .field("sentence", &View::sentence, "Names the largest cause");
}

}  // namespace hearth::rest
