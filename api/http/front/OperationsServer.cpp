#include "api/http/front/OperationsServer.h"

#include "api/http/Problem.h"
#include "metrics/OpenMetrics.h"

namespace hearth::api {
namespace {

FrontOptions operationsOptions(const std::string& listen) {
    FrontOptions options;
    options.listen = listen;
    options.flag = "--ops-listen";
    options.name = "ops";
    options.workers = 2;
    options.check_host = false;
    options.connections = 256;
    options.queue = 64;
    return options;
}

Response text(int status, std::string body, const char* type = "text/plain; charset=utf-8") {
    Response response;
    response.status = status;
    response.headers = {{"Content-Type", type}, {"Cache-Control", "no-store"}};
    response.body = std::move(body);
    return response;
}

}  // namespace

Response OperationsHandler::handle(Request& request) {
    const std::string& path = request.path();
    if (path != "/metrics" && path != "/healthz" && path != "/readyz") {
        throw Error(ErrorCode::NotFound, "there is nothing at this path")
            .hint("This listener serves /metrics, /healthz and /readyz");
    }
    request.tookRoute(path);
    if (request.method() != "GET" && request.method() != "HEAD") {
        HttpProblem why;
        why.status = 405;
        why.error_code = "METHOD_NOT_ALLOWED";
        why.title = "Method not allowed";
        why.message = "this path answers GET and HEAD only";
        Response response = problem(why, problemContext(request));
        response.headers.add("Allow", "GET, HEAD");
        return response;
    }
    if (path == "/metrics") {
        const bool open = metrics::asksForOpenMetrics(request.header("Accept").value_or(""));
        Response response =
            open ? text(200, metrics_.renderOpen(), metrics::kOpenMetricsType)
                 : text(200, metrics_.render(), "text/plain; version=0.0.4; charset=utf-8");
        response.headers.add("Vary", "Accept");
        return response;
    }
    if (path == "/healthz") return text(200, "ok\n");
    const auto [ready, why] = ready_();
    const std::string words = ready ? (why.empty() ? "ready" : why) : "not ready: " + why;
    return text(ready ? 200 : 503, words + "\n");
}

OperationsServer::OperationsServer(const std::string& listen, metrics::Metrics& metrics,
                                   metrics::Log& log, const Clock& clock, ReadyCheck ready)
    : handler_(metrics, std::move(ready)),
      front_(operationsOptions(listen), handler_, metrics, log, clock) {}

}  // namespace hearth::api
