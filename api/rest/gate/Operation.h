#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/http/Handler.h"
#include "api/http/Routes.h"
#include "api/rest/model/EventShapes.h"
#include "api/rest/schema/Schema.h"
#include "controller/contract/Principal.h"

namespace hearth::rest {

/// One request that has passed all checks of its operation: caller, role, parameters, body.
struct Call {
    api::Request& request;
    const api::RouteParams& path;
    controller::Principal who;
    Json query = Json::object();  ///< declared query parameters of the request, typed
    Json body;                    ///< only of a JSON operation; else null
    std::string idempotency_key;  ///< empty: none
    std::string fingerprint;      ///< covers route and body, if there is a key

    std::string param(std::string_view name) const { return path.param(name); }
    /// Returns a query parameter, or `fallback` if it was not sent.
    template <typename T>
    T queryOr(const char* name, T fallback) const {
        const auto at = query.find(name);
        return at == query.end() ? fallback : at->template get<T>();
    }
};

/// A parameter outside the body. It parses and validates query parameters; it only describes
/// headers (their readers check the syntax).
struct Parameter {
    enum class In { Query, Header };
    In in = In::Query;
    std::string name;
    Schema schema;
    std::string description;
};

/// One way in which an operation can succeed.
struct Answer {
    int status = 200;
    std::string description;
    std::optional<Schema> schema;  ///< if it is JSON
    std::string media = {};        ///< if it is not JSON: "text/event-stream"
    EventShapes events = {};       ///< if it is a stream
    Json example = nullptr;        ///< used instead of the schema's own
};

enum class Body {
    None,
    Json,          ///< required
    OptionalJson,  ///< an absent body is `{}`
    Raw,
};

/// One row of the table from which router, validation and OpenAPI document are made.
struct Operation {
    Operation() = default;
    /// The names and texts that describe it; the other fields are set one by one.
    Operation(std::string its_method, std::string its_pattern, std::string its_id,
              std::string its_summary, std::string its_tag)
        : method(std::move(its_method)),
          pattern(std::move(its_pattern)),
          id(std::move(its_id)),
          tag(std::move(its_tag)),
          summary(std::move(its_summary)) {}

    std::string method;
    std::string pattern;
    std::string id;  ///< operationId
    std::string tag;
    std::string summary;
    std::string description;
    controller::Role role = controller::Role::User;
    bool open = false;  ///< served without authentication
    /// With `open`: returns the tenant that the URL itself authorizes (a signed link). The call
    /// counts for that tenant.
    std::function<controller::Principal(const api::RouteParams&)> speaks_for;
    bool idempotent = false;  ///< takes an Idempotency-Key
    /// With `idempotent`: the handler ignores the key; its answer is kept for the key
    /// (IdempotencyCache).
    bool replayed = false;
    bool hidden = false;  ///< belongs to the contract, but not to this version: answers Unsupported
    Body body_kind = Body::None;
    Schema body = Schema::any();
    std::vector<Parameter> parameters;
    std::vector<Answer> answers;
    std::vector<ErrorCode> problems;  ///< in addition to the errors of every operation
    std::function<api::Response(Call&)> handle;
};

using Operations = std::vector<Operation>;

}  // namespace hearth::rest
