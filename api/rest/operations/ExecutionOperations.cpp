#include <algorithm>
#include <array>
#include <charconv>

#include "api/http/RequestFacts.h"
#include "api/http/TaskAnswer.h"
#include "api/rest/model/Answers.h"
#include "api/rest/model/Requests.h"
#include "api/rest/operations/Pages.h"
#include "api/rest/operations/Tables.h"
#include "api/rest/streams/ExecutionAnswer.h"
#include "api/rest/streams/ExecutionPieces.h"
#include "api/rest/streams/ExecutionStream.h"
#include "api/rest/streams/Sse.h"
#include "base/http/Url.h"

namespace hearth::rest {
namespace {

using controller::Execution;
using controller::ExecutionView;
using controller::Services;

constexpr std::int64_t kLongestWait = 24L * 3600;

const std::vector<std::string> kSignals{"HUP",  "INT",  "QUIT", "ABRT", "KILL", "USR1", "USR2",
                                        "ALRM", "TERM", "STOP", "CONT", "TSTP", "WINCH"};

constexpr const char* kStreamText =
    "Events: `waiting` while the claim of a one shot waits in line, with its `place` of how many "
    "and `estimateSeconds` if known, and `problem`, as the last, if that wait ends "
    "without a sandbox, or if the execution's time limit passes and its sandbox does not answer; "
    "`started`; `stdout` and `stderr` with `{\"text\"}`, or `{\"base64\"}` "
    "if the bytes "
    "are not UTF-8, and `droppedBytes` where output before it was not kept; `result` with the "
    "Result, in order with the output; `error` with the uncaught exception; `exit`, always last, "
    "with the Execution. The id of an event counts the bytes of output, over both channels, and "
    "the results up to and with it, so `Last-Event-ID` resumes exactly after what was received, "
    "also after a restart of the server.";

Operation executionOperation(std::string method, std::string pattern, std::string id,
                             std::string summary) {
    Operation op(std::move(method), std::move(pattern), std::move(id), std::move(summary),
                 "Executions");
    op.problems = {ErrorCode::NotFound, ErrorCode::Gone};
    return op;
}

Parameter preferParameter(std::string description) {
    return headerParameter("Prefer", std::move(description));
}

/// The N of "Prefer: wait=N"; nullopt if absent or malformed: a preference is never an error.
std::optional<std::chrono::seconds> preferredWait(const api::Request& request) {
    const std::string prefer = request.header("Prefer").value_or("");
    std::string_view rest = prefer;
    while (!rest.empty()) {
        const std::size_t end = rest.find_first_of(",;");
        const std::string_view word = trim(rest.substr(0, end));
        rest = end == std::string_view::npos ? std::string_view{} : rest.substr(end + 1);
        const std::size_t equals = word.find('=');
        if (equals == std::string_view::npos ||
            !equalsIgnoreCase(trim(word.substr(0, equals)), "wait")) {
            continue;
        }
        std::string_view number = trim(word.substr(equals + 1));
        if (number.size() >= 2 && number.front() == '"' && number.back() == '"') {
            number = number.substr(1, number.size() - 2);
        }
        std::int64_t seconds = -1;
        const auto [stop, error] =
            std::from_chars(number.data(), number.data() + number.size(), seconds);
        if (error == std::errc{} && stop == number.data() + number.size() && seconds >= 0) {
            return std::chrono::seconds(std::min(seconds, kLongestWait));
        }
    }
    return std::nullopt;
}

PieceSource piecesOf(const std::shared_ptr<Execution>& execution, ExecutionView view,
                     const std::string& trace_id, const std::string& origin) {
    const auto pieces =
        std::make_shared<ExecutionPieces>(execution, std::move(view), trace_id, origin);
    return [pieces](std::string& out) { return pieces->next(out); };
}

/// The data that an answer with an execution needs in addition.
struct Telling {
    StreamedJson& answers;
    std::string trace_id;
    std::string origin;

    api::Response operator()(const std::shared_ptr<Execution>& execution, int status = 200) const {
        ExecutionView view = execution->viewUpTo(kLongOutput);
        const bool replayed = view.replayed;
        const std::optional<controller::ClaimLedger> claim = view.claim;
        api::Response response =
            view.withheld
                ? answers.stream(piecesOf(execution, std::move(view), trace_id, origin), status)
                : jsonResponse(executionJson(view, trace_id, origin), status);
        if (claim) sayTimed(response, *claim);
        if (replayed) sayReplayed(response);
        return response;
    }
};

/// Reports how long the client's own wait was honoured.
void sayWaited(api::Response& response, std::optional<std::chrono::seconds> patience) {
    if (!patience) return;
    response.headers.add("Preference-Applied", "wait=" + std::to_string(patience->count()));
}

/// The header of every answer to a POST that starts an execution.
void describe(api::Response& response, const std::string& id) {
    response.headers.add("Location", "/v1/executions/" + id);
}

/// The execution as the final answer to a foreground request: 200 if it has ended, else 202.
api::Response foregroundAnswer(const Telling& tell, const std::shared_ptr<Execution>& execution,
                               std::optional<std::chrono::seconds> patience) {
    const bool ended = execution->wait(std::chrono::milliseconds(0));
    api::Response response = tell(execution, ended ? 200 : 202);
    sayWaited(response, patience);
    describe(response, execution->id());
    return response;
}

api::Response streamResponse(StreamedJson& answers, const std::shared_ptr<Execution>& execution,
                             const ExecutionStream::Options& options) {
    // A paced program waits for readers only while there are any: this reader is on its way.
    std::shared_ptr<void> coming = execution->reading();
    return sseResponse([&answers, execution, options,
                        coming = std::move(coming)](std::shared_ptr<api::Stream> stream) {
        ExecutionStream::start(execution, std::move(stream), options, answers);
    });
}

/// The answer to a POST that starts an execution: a stream, 202, or its result.
struct Answering {
    const Services& services;
    Telling tell;
    bool streams = false;
    bool background = false;
    std::optional<std::chrono::seconds> patience{};

    /// Waits for its end until the client's patience is over. It continues in any case.
    Task<api::Response> whenEnded(const std::shared_ptr<Execution>& execution) const {
        const TimePoint until =
            patience ? services.clock.now() + *patience : TimePoint(TimePoint::max());
        return whenFinished(services.clock, execution, until, early(execution));
    }
    /// The answer at this moment.
    std::function<api::Response()> early(const std::shared_ptr<Execution>& execution) const {
        return [execution, tell = tell, patience = patience] {
            return foregroundAnswer(tell, execution, patience);
        };
    }
    /// The answer that waits for nothing.
    api::Response atOnce(const std::shared_ptr<Execution>& execution) const {
        api::Response response = streams
                                     ? streamResponse(tell.answers, execution,
                                                      {std::nullopt, tell.trace_id, tell.origin})
                                     : Telling{tell.answers, tell.trace_id, ""}(execution, 202);
        if (streams && execution->viewUpTo(0).replayed) sayReplayed(response);
        describe(response, execution->id());
        return response;
    }
};

Answering answeringOf(const Services& services, StreamedJson& answers, const api::Request& request,
                      bool background) {
    return {services,
            {answers, request.traceId(), api::originOf(request)},
            wantsEventStream(request),
            background,
            preferredWait(request)};
}

/// Answers a one shot that is to be started, which becomes `begun`.
Task<api::Response> oneShotAnswer(Answering answering, Task<std::shared_ptr<Execution>> start,
                                  std::shared_ptr<std::shared_ptr<Execution>> begun) {
    const std::shared_ptr<Execution> execution = co_await start;
    *begun = execution;
    if (answering.streams || answering.background) co_return answering.atOnce(execution);
    Task<api::Response> ending = answering.whenEnded(execution);
    co_return co_await ending;
}

/// The JSON of a list of executions; each is read when its turn comes. With `output` they show a
/// limited amount of output in total, and later ones none; without, each is a summary.
class ListPieces {
public:
    ListPieces(controller::Executions& executions, controller::Principal who,
               Page<controller::ListedExecution> page, std::string origin, bool output)
        : executions_(executions),
          who_(std::move(who)),
          page_(std::move(page)),
          origin_(std::move(origin)),
          output_(output) {}

    bool next(std::string& out) {
        if (current_) {
            if (!current_->next(out)) current_.reset();
            return true;
        }
        if (next_ == 0) out.append("{\"items\":[");
        if (next_ == page_.items.size()) {
            out.append("],\"nextCursor\":");
            out.append(page_.next_cursor.empty() ? "null}" : "\"" + page_.next_cursor + "\"}");
            return false;
        }
        const std::shared_ptr<Execution> execution =
            executions_.listed(who_, page_.items[next_++].id);
        if (!execution) return true;
        if (std::exchange(any_, true)) out.push_back(',');
        if (!output_) {
            out.append(dumpJson(executionSummaryJson(execution->viewUpTo(0), origin_)));
            return true;
        }
        ExecutionView view = execution->viewUpTo(std::min<std::uint64_t>(kLongOutput, room_));
        const std::uint64_t size = view.kept_bytes + view.result_bytes;
        if (view.withheld && size <= room_) {
            current_ = std::make_unique<ExecutionPieces>(execution, std::move(view), "", origin_);
        } else {
            if (view.withheld) view.truncated = true;
            out.append(dumpJson(executionJson(view, "", origin_)));
        }
        room_ -= std::min(room_, size);
        return true;
    }

private:
    static constexpr std::uint64_t kListedOutput = 4U << 20U;

    controller::Executions& executions_;
    const controller::Principal who_;
    const Page<controller::ListedExecution> page_;
    const std::string origin_;
    const bool output_;
    std::size_t next_ = 0;
    bool any_ = false;
    std::uint64_t room_ = kListedOutput;
    std::unique_ptr<ExecutionPieces> current_;
};

controller::ExecutionRequest readRequest(const Call& call) {
    controller::ExecutionRequest request = readExecutionRequest(call.body);
    request.idempotency_key = call.idempotency_key;
    request.fingerprint = call.fingerprint;
    request.started_at = call.request.startedAt();
    if (request.paced && !wantsEventStream(call.request)) {
        throw Error(ErrorCode::InvalidArgument, "`paced` is for executions that are streamed")
            .field("/paced", "needs the header Accept: text/event-stream")
            .hint("Without a stream nobody reads while the program runs: leave `paced` out");
    }
    return request;
}

/// The example of an execution, with other values in some fields.
Json exampleWith(const char* values) {
    Json out = schemaOf<ExecutionView>().examples().front();
    out.update(parseJson(values));
    return out;
}

/// The declarations shared by both ways to start an execution; `ended`: an example of its end.
Operation startOperation(std::string pattern, std::string id, std::string summary, Json ended) {
    Operation op =
        executionOperation("POST", std::move(pattern), std::move(id), std::move(summary));
    op.description = std::string(
                         "Waits for the end; a program that fails is still 200 with its status. "
                         "With `background`, or when `Prefer: wait=N` runs out, 202; the execution "
                         "goes on then, and also when the client hangs up. With `Accept: "
                         "text/event-stream` the answer streams. ") +
                     kStreamText;
    op.idempotent = true;
    op.body_kind = Body::Json;
    op.parameters = {idempotencyKeyParameter(), preferParameter("wait=N: 202 after N seconds")};
    op.answers = {{200, "It has ended", schemaOf<ExecutionView>(), {}, {}, std::move(ended)},
                  {200, "The stream", {}, "text/event-stream", executionEvents()},
                  {202,
                   "It runs; Location names it",
                   schemaOf<ExecutionView>(),
                   {},
                   {},
                   exampleWith(
                       R"({"status":"running","exitCode":null,"stdout":"","durationMs":null,
                 "usage":{"cpuMs":0,"peakMemoryBytes":0}})")}};
    op.problems = {
        ErrorCode::NotFound,    ErrorCode::IdempotencyInFlight, ErrorCode::Gone,
        ErrorCode::Conflict,    ErrorCode::PayloadTooLarge,     ErrorCode::IdempotencyMismatch,
        ErrorCode::Unsupported, ErrorCode::SandboxLost,         ErrorCode::Deadline};
    return op;
}

Operations startOperations(const Services& services, StreamedJson& answers, ClaimStreams& claims) {
    Operations all;
    Operation in_workspace =
        startOperation("/v1/workspaces/{workspace}/executions", "execute",
                       "Run a command or code in a workspace", exampleWith("{}"));
    in_workspace.body = executionRequestSchema();
    in_workspace.handle = [&services, &answers](Call& call) {
        const controller::ExecutionRequest request = readRequest(call);
        const Answering answering =
            answeringOf(services, answers, call.request, request.background);
        const std::shared_ptr<Execution> execution =
            services.executions.start(call.who, call.param("workspace"), request);
        if (answering.streams || answering.background) return answering.atOnce(execution);
        return api::answerOf(call.request, answering.whenEnded(execution),
                             answering.early(execution));
    };
    all.push_back(std::move(in_workspace));

    Operation one_shot = startOperation(
        "/v1/executions", "executeOnce", "Run in a workspace of its own, which ends with it",
        exampleWith(R"({"claim":{"source":"warm","queueMs":0,"pickMs":0.01,"bindMs":0.2,
                                        "totalMs":0.3}})"));
    one_shot.body = oneShotRequestSchema();
    one_shot.problems.insert(
        one_shot.problems.end(),
        {ErrorCode::InvalidSpec, ErrorCode::PoolExhausted, ErrorCode::QuotaExceeded,
         ErrorCode::PoolDegraded, ErrorCode::DiskFull});
    one_shot.handle = [&services, &answers, &claims](Call& call) {
        controller::ExecutionRequest work = readRequest(call);
        const Answering answering = answeringOf(services, answers, call.request, work.background);
        Task<std::shared_ptr<Execution>> start = services.executions.startOneShot(
            call.who, readOneShotWorkspace(call.body), std::move(work));
        if (!answering.streams) {
            const auto begun = std::make_shared<std::shared_ptr<Execution>>();
            return api::answerOf(call.request, oneShotAnswer(answering, std::move(start), begun),
                                 [answering, begun]() -> std::optional<api::Response> {
                                     if (!*begun) return std::nullopt;
                                     return answering.early(*begun)();
                                 });
        }
        if (start.run()) return answering.atOnce(start.result());
        const ExecutionStream::Options options{std::nullopt, answering.tell.trace_id,
                                               answering.tell.origin};
        return claims.answer(call.request, call.who.tenant, std::move(start),
                             [&answers, options](std::shared_ptr<Execution> execution,
                                                 const std::shared_ptr<api::Stream>& stream) {
                                 ExecutionStream::start(std::move(execution), stream, options,
                                                        answers);
                             });
    };
    all.push_back(std::move(one_shot));
    return all;
}

Operation stdinOperation(const Services& services) {
    Operation op = executionOperation("POST", "/v1/executions/{execution}/stdin", "writeStdin",
                                      "Send bytes to standard input");
    op.description =
        "The raw body. 409 unless the execution runs and its input is open; only to close it is no "
        "error when it has ended.";
    op.body_kind = Body::Raw;
    op.parameters = {queryParameter("close", Schema::boolean().fallback(false),
                                    "Closes standard input after these bytes")};
    op.answers = {{204, "Handed over", {}, {}}};
    op.problems = {ErrorCode::NotFound, ErrorCode::Conflict, ErrorCode::SandboxLost,
                   ErrorCode::Deadline};
    op.handle = [&services](Call& call) {
        const std::string id = call.param("execution");
        const bool close = call.queryOr("close", false);
        std::string piece(64U << 10U, '\0');
        bool any = false;
        while (const std::size_t size = call.request.readSome(piece.data(), piece.size())) {
            any = true;
            services.executions.writeStdin(call.who, id, std::string_view(piece.data(), size),
                                           false);
        }
        if (close || !any) services.executions.writeStdin(call.who, id, "", close);
        return emptyResponse();
    };
    return op;
}

Operations controlOperations(const Services& services) {
    Operations all;
    all.push_back(stdinOperation(services));

    Operation signal = executionOperation("POST", "/v1/executions/{execution}/signal",
                                          "signalExecution", "Send a signal");
    signal.body_kind = Body::Json;
    signal.body = Schema::object()
                      .required("signal", Schema::oneOf(kSignals))
                      .example({{"signal", "INT"}})
                      .named("SignalRequest");
    signal.answers = {{204, "Sent", {}, {}}};
    signal.problems = {ErrorCode::NotFound, ErrorCode::Conflict, ErrorCode::SandboxLost,
                       ErrorCode::Deadline};
    signal.handle = [&services](Call& call) {
        services.executions.signal(call.who, call.param("execution"),
                                   call.body.at("signal").get_ref<const std::string&>());
        return emptyResponse();
    };
    all.push_back(std::move(signal));

    Operation resize = executionOperation("POST", "/v1/executions/{execution}/resize",
                                          "resizeExecution", "Change the size of its terminal");
    resize.body_kind = Body::Json;
    resize.body = Schema::object()
                      .required("cols", Schema::integer(1, 1000))
                      .required("rows", Schema::integer(1, 1000))
                      .example({{"cols", 100}, {"rows", 30}})
                      .named("ResizeRequest");
    resize.answers = {{204, "Changed", {}, {}}};
    resize.problems = {ErrorCode::NotFound, ErrorCode::Conflict, ErrorCode::SandboxLost,
                       ErrorCode::Deadline};
    resize.handle = [&services](Call& call) {
        services.executions.resize(call.who, call.param("execution"),
                                   call.body.at("cols").get<unsigned>(),
                                   call.body.at("rows").get<unsigned>());
        return emptyResponse();
    };
    all.push_back(std::move(resize));

    Operation kill = executionOperation("DELETE", "/v1/executions/{execution}", "killExecution",
                                        "Kill the whole process tree");
    kill.description = "Idempotent.";
    kill.answers = {{204, "Killed, or it had ended before", {}, {}}};
    kill.handle = [&services](Call& call) {
        services.executions.kill(call.who, call.param("execution"));
        return emptyResponse();
    };
    all.push_back(std::move(kill));
    return all;
}

}  // namespace

Operations executionOperations(const Services& services, StreamedJson& answers,
                               ClaimStreams& claims) {
    Operations all = startOperations(services, answers, claims);

    Operation list =
        executionOperation("GET", "/v1/workspaces/{workspace}/executions", "listExecutions",
                           "The executions of a workspace, newest first");
    list.parameters = wholeListParameters();
    list.parameters.push_back(queryParameter("output", Schema::boolean().fallback(false),
                                             "Also stdout, stderr and results of each"));
    list.answers = {{200, "Every execution that is kept",
                     listSchema(executionSummarySchema(), "ExecutionList")}};
    list.description =
        "Without output and results, which GET of one execution brings. With `output=true` the "
        "list has at most 4 MiB of them; later executions are `truncated` and have none.";
    list.handle = [&services, &answers](Call& call) {
        const auto newest = [](const controller::ListedExecution& one) {
            return one.started_at + " " + one.id;
        };
        const auto pieces = std::make_shared<ListPieces>(
            services.executions, call.who,
            pageOf(call, services.executions.list(call.who, call.param("workspace")), newest, true),
            api::originOf(call.request), call.queryOr("output", false));
        return answers.respond([pieces](std::string& out) { return pieces->next(out); });
    };
    all.push_back(std::move(list));

    Operation get =
        executionOperation("GET", "/v1/executions/{execution}", "getExecution", "One execution");
    get.description = "Kept for an hour after its workspace's end, also across restarts.";
    get.parameters = {preferParameter("wait=N: answers at its end, or after N seconds")};
    get.answers = {{200, "The execution", schemaOf<ExecutionView>()}};
    get.handle = [&services, &answers](Call& call) {
        const Telling tell{answers, "", api::originOf(call.request)};
        const auto execution = services.executions.find(call.who, call.param("execution"));
        const std::optional<std::chrono::seconds> patience = preferredWait(call.request);
        if (!patience) return tell(execution);
        const auto answer = [tell, execution, patience] {
            api::Response response = tell(execution);
            sayWaited(response, patience);
            return response;
        };
        return api::answerOf(
            call.request,
            whenFinished(services.clock, execution, services.clock.now() + *patience, answer),
            answer);
    };
    all.push_back(std::move(get));

    Operation events = executionOperation("GET", "/v1/executions/{execution}/events",
                                          "followExecution", "Follow or resume its output");
    events.description = kStreamText;
    events.parameters = {
        headerParameter("Last-Event-ID", Schema::string(kDecimal), "The last id received"),
        queryParameter("since", Schema::string(kDecimal), "The same, for clients without headers")};
    events.answers = {{200, "The stream", {}, "text/event-stream", executionEvents()}};
    events.handle = [&services, &answers](Call& call) {
        const std::optional<std::uint64_t> after = lastEventId(call.request);
        return streamResponse(answers, services.executions.find(call.who, call.param("execution")),
                              {after, "", api::originOf(call.request)});
    };
    all.push_back(std::move(events));

    for (Operation& op : controlOperations(services)) all.push_back(std::move(op));
    return all;
}

}  // namespace hearth::rest
