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

/// One request that has passed everything its operation declares: caller, role, parameters, body.
struct Call {
    api::Request& request;
    const api::RouteParams& path;
    controller::Principal who;
    Json query = Json::object();  ///< declared query parameters that were sent, typed
    Json body;                    ///< of a JSON operation; null otherwise
    std::string idempotency_key;  ///< empty: none
    std::string fingerprint;      ///< of route and body, when there is a key

    std::string param(std::string_view name) const { return path.param(name); }
    /// A query parameter, or `fallback` where it was not sent.
    template <typename T>
    T queryOr(const char* name, T fallback) const {
        const auto at = query.find(name);
        return at == query.end() ? fallback : at->template get<T>();
    }
};

/// A parameter outside the body. Query parameters are parsed and validated by it, headers are only
/// described here (their syntax is their reader's affair).
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
    std::optional<Schema> schema;  ///< of JSON
    std::string media;             ///< of anything else: "text/event-stream"
    EventShapes events = {};       ///< of a stream
    Json example = nullptr;        ///< instead of the schema's own
};

enum class Body {
    None,
    Json,          ///< must be there
    OptionalJson,  ///< an absent one is `{}`
    Raw,
};

/// One line of the table that router, validation and OpenAPI document are made from.
struct Operation {
    Operation() = default;
    /// The words it is known by; the rest is set one by one.
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
    /// With `open`: the tenant that the URL itself authorizes (a signed link). The call is counted
    /// as that tenant's.
    std::function<controller::Principal(const api::RouteParams&)> speaks_for;
    bool idempotent = false;  ///< takes an Idempotency-Key
    /// With `idempotent`: the handler knows nothing of the key; its answer is kept for it
    /// (Replays).
    bool replayed = false;
    bool hidden = false;  ///< of the contract, but not of this version: answers Unsupported
    Body body_kind = Body::None;
    Schema body = Schema::any();
    std::vector<Parameter> parameters;
    std::vector<Answer> answers;
    std::vector<ErrorCode> problems;  ///< beyond those that every operation may answer
    std::function<api::Response(Call&)> handle;
};

using Operations = std::vector<Operation>;

}  // namespace hearth::rest
