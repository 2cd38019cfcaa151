#include "api/rest/model/EventShapes.h"

#include "api/rest/model/Answers.h"

namespace hearth::rest {
namespace {

Schema eventOf(const char* shape, Schema event, Schema data) {
    return Schema::object()
        .required("id", Schema::string(kDecimal))
        .required("event", std::move(event))
        .required("data", std::move(data))
        .named(shape);
}

Schema kindOf(const char* event) {
    return Schema::oneOf({event});
}

Schema waitingSchema() {
    return Schema::object()
        .required("for", Schema::string().describe("What it waits for, in words"))
        .required("place", Schema::integer().nullable())
        .required("of", Schema::integer().nullable())
        .required("estimateSeconds", Schema::integer().nullable())
        .named("WaitingData");
}

Schema startedSchema() {
    return Schema::object()
        .required("id", Schema::string())
        .required("workspaceId", Schema::string())
        .required("startedAt", Schema::string(kDateTime))
        .optional("traceId", Schema::string())
        .named("StartedData");
}

Schema outputSchema() {
    return Schema::object()
        .optional("text", Schema::string())
        .optional("base64", Schema::string(kBase64).describe("Where the bytes are not UTF-8"))
        .exactlyOne({"text", "base64"})
        .optional("droppedBytes", Schema::integer().describe("Output before it was not kept"))
        .named("OutputData");
}

}  // namespace

EventShapes executionEvents() {
    return {"ExecutionEvent",
            {eventOf("WaitingEvent", kindOf("waiting"), waitingSchema()),
             eventOf("ProblemEvent", kindOf("problem"), problemSchema()),
             eventOf("StartedEvent", kindOf("started"), startedSchema()),
             eventOf("StdoutEvent", kindOf("stdout"), outputSchema()),
             eventOf("StderrEvent", kindOf("stderr"), outputSchema()),
             eventOf("ResultEvent", kindOf("result"), resultSchema()),
             eventOf("ErrorEvent", kindOf("error"), executionErrorSchema()),
             eventOf("ExitEvent", kindOf("exit"), schemaOf<controller::ExecutionView>())}};
}

EventShapes systemEvents() {
    return {"EventMessage",
            {eventOf("EventMessage", Schema::string().describe("The type of the event"),
                     schemaOf<controller::Event>())}};
}

EventShapes logEvents(Schema line) {
    return {"LogMessage", {eventOf("LogMessage", kindOf("line"), std::move(line))}};
}

}  // namespace hearth::rest
