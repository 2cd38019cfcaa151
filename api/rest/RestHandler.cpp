#include "api/rest/RestHandler.h"

#include <iterator>

#include "api/rest/docs/DocsPage.h"
#include "api/rest/docs/OpenApi.h"
#include "api/rest/operations/Tables.h"
#include "base/Version.h"

namespace hearth::rest {
namespace {

void append(Operations& all, Operations more) {
    all.insert(all.end(), std::make_move_iterator(more.begin()),
               std::make_move_iterator(more.end()));
}

Operation page(std::string pattern, std::string id, std::string summary, std::string media) {
    Operation op;
    op.method = "GET";
    op.pattern = std::move(pattern);
    op.id = std::move(id);
    op.summary = std::move(summary);
    op.tag = "Documentation";
    op.open = true;
    op.answers = {{200, "The document", {}, std::move(media)}};
    return op;
}

api::Response textResponse(const std::string& text, const char* type) {
    api::Response response;
    response.headers = {{"Content-Type", type}, {"Cache-Control", "no-cache"}};
    response.body = text;
    return response;
}

/// The pages that describe the API, made from the whole table, including their own entries.
Operations pages(const RestHandler& rest, const std::string& docs) {
    Operations all;
    Operation document = page("/openapi.json", "getOpenApi", "This document", "application/json");
    document.handle = [&rest](Call&) { return textResponse(rest.openApi(), "application/json"); };
    all.push_back(std::move(document));

    Operation readable = page("/docs", "getDocs", "This document as a page", "text/html");
    readable.handle = [&docs](Call&) {
        api::Response response = textResponse(docs, "text/html; charset=utf-8");
        response.headers.add(
            "Content-Security-Policy",
            "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'");
        return response;
    };
    all.push_back(std::move(readable));

    Operation root = page("/", "getRoot", "The entry points", "application/json");
    root.handle = [](Call&) {
        return jsonResponse({{"name", "hearth"},
                             {"version", kHearthVersion},
                             {"api", "/v1"},
                             {"docs", "/docs"},
                             {"openapi", "/openapi.json"},
                             {"mcp", "/mcp"}});
    };
    all.push_back(std::move(root));
    return all;
}

}  // namespace

RestHandler::RestHandler(const controller::Services& services,
                         const auth::Authenticator& authenticator, const auth::WorkerShares& shares,
                         const auth::RateLimits& limits)
    : authenticator_(authenticator),
      gate_(services, authenticator, shares, limits),
      claims_(services.clock) {
    append(operations_, workspaceOperations(services));
    append(operations_, executionOperations(services, answers_, claims_));
    append(operations_, runningOperations(services));
    append(operations_, contextOperations(services));
    append(operations_, packageOperations(services));
    append(operations_, fileOperations(services));
    append(operations_, archiveOperations(services));
    append(operations_, linkOperations(services));
    append(operations_, poolOperations(services));
    append(operations_, quotaOperations(services));
    append(operations_, gpuOperations(services));
    append(operations_, timelineOperations(services));
    append(operations_, usageOperations(services));
    append(operations_, logOperations(services));
    append(operations_, systemOperations(services));
    append(operations_, pages(*this, docs_));

    Json document = openApiDocument(operations_);
    open_api_with_tokens_ = dumpJson(document);
    docs_ = docsPage(document);
    open_api_ = dumpJson(withoutCredentials(std::move(document)));
    for (const Operation& operation : operations_) {
        router_.add(operation.method, operation.pattern,
                    [this, &operation](api::Request& request, const api::RouteParams& path) {
                        return gate_.pass(operation, request, path);
                    });
    }
}

api::Response RestHandler::handle(api::Request& request) {
    return router_.handle(request);
}

}  // namespace hearth::rest
