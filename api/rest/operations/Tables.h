#pragma once

#include "api/rest/gate/Operation.h"
#include "api/rest/streams/ClaimStreams.h"
#include "api/rest/streams/StreamedJson.h"
#include "controller/Services.h"

namespace hearth::rest {

// The table of operations, one part per kind of resource. The handlers keep a reference to the
// services, which must outlive them.

Operations poolOperations(const controller::Services& services);
Operations workspaceOperations(const controller::Services& services);
/// `answers` sends long answers, `claims` streams requests that wait for a sandbox. Both must also
/// outlive the handlers.
Operations executionOperations(const controller::Services& services, StreamedJson& answers,
                               ClaimStreams& claims);
/// GET /v1/executions: the running executions.
Operations runningOperations(const controller::Services& services);
Operations contextOperations(const controller::Services& services);
Operations packageOperations(const controller::Services& services);
Operations fileOperations(const controller::Services& services);
Operations archiveOperations(const controller::Services& services);
Operations linkOperations(const controller::Services& services);
/// Quotas of tenants, and their use.
Operations quotaOperations(const controller::Services& services);
/// The machine's GPUs.
Operations gpuOperations(const controller::Services& services);
Operations timelineOperations(const controller::Services& services);
Operations usageOperations(const controller::Services& services);
/// The server's own log, and its level.
Operations logOperations(const controller::Services& services);
/// Events, capabilities, tokens, the start page.
Operations systemOperations(const controller::Services& services);

/// An answer with this document and this status.
api::Response jsonResponse(const Json& document, int status = 200);
/// An answer with the status 204.
api::Response emptyResponse();
/// 415 with this title and message: the body's type or encoding is not supported.
api::Response wrongMedia(const api::Request& request, std::string title, std::string message,
                         std::string hint);
/// Marks the answer to a repeated Idempotency-Key as a replay of the first one.
void sayReplayed(api::Response& response);
/// Adds the stages of a claim as Server-Timing, which browsers and tools read.
void sayTimed(api::Response& response, const controller::ClaimLedger& claim);

Parameter queryParameter(std::string name, Schema schema, std::string description);
Parameter headerParameter(std::string name, Schema schema, std::string description);
/// A header with any text that fits in a line of a request's head.
Parameter headerParameter(std::string name, std::string description);
/// `limit` and `cursor`.
std::vector<Parameter> pageParameters();
Parameter idempotencyKeyParameter();

/// The resourceVersion of an If-Match header; nullopt without one or with "*". Throws
/// Error(InvalidArgument) if it is not an ETag of a pool.
std::optional<std::int64_t> ifMatch(const api::Request& request);

}  // namespace hearth::rest
