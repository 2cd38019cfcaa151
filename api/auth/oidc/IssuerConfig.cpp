#include "api/auth/oidc/IssuerConfig.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/Error.h"
#include "base/Fields.h"
#include "base/http/client/ServerUrl.h"
#include "controller/contract/RoleName.h"
#include "controller/contract/TenantName.h"

namespace hearth::auth {
namespace {

constexpr std::size_t kMostIssuers = 16;
constexpr std::size_t kMostRules = 64;
constexpr std::size_t kMostAudiences = 16;
constexpr std::size_t kLongestText = 1'024;

bool isPointer(const std::string& text) {
    try {
        return text.starts_with('/') && !Json::json_pointer(text).empty();
    } catch (const Json::exception&) {
        return false;
    }
}

std::string url(Fields& fields, const char* key) {
    std::string text = fields.text(key, kLongestText).value_or("");
    if (!text.empty() && !isSafeKeyUrl(text)) {
        fields.complain(key, "must be an https URL; http is allowed only for this machine");
    }
    return text;
}

std::string pointer(Fields& fields, const char* key) {
    std::string text = fields.text(key, kLongestText).value_or("");
    if (!text.empty() && !isPointer(text)) {
        fields.complain(key,
                        "must be a JSON pointer, such as /tenant or /kubernetes.io~1namespace");
    }
    return text;
}

/// Reads one text, or a list of texts.
std::vector<std::string> audiences(Fields& fields) {
    std::vector<std::string> all;
    const Json* const given = fields.find("audience");
    if (given != nullptr && given->is_string()) {
        all.push_back(given->get<std::string>());
    } else if (given != nullptr) {
        fields.items("audience", kMostAudiences, [&](const Json& one, const std::string& at) {
            if (one.is_string()) return all.push_back(one.get<std::string>());
            fields.tell({at, "must be a text"});
        });
    }
    const bool empty =
        std::any_of(all.begin(), all.end(), [](const auto& one) { return one.empty(); });
    if (all.empty() || empty) fields.complain("audience", "must name the audience of the tokens");
    return all;
}

RoleRule rule(const Json& json, const std::string& at, const Fields::Wrong& wrong) {
    RoleRule out;
    Fields fields(json, at, wrong);
    out.claim = pointer(fields, "claim");
    out.value = fields.text("value", kLongestText).value_or("");
    if (out.claim.empty()) fields.complain("claim", "must be given");
    if (out.value.empty()) fields.complain("value", "must be given");
    if (const auto role = fields.choice("role", controller::kRoles)) out.role = *role;
    fields.finish();
    return out;
}

IssuerConfig issuer(const Json& json, const std::string& at, const Fields::Wrong& wrong) {
    IssuerConfig out;
    Fields fields(json, at, wrong, Fields::Absent::Fine);
    out.issuer = url(fields, "issuer");
    if (out.issuer.empty()) fields.complain("issuer", "must be given");
    out.audiences = audiences(fields);
    std::vector<SigningAlgorithm> algorithms;
    fields.items("algorithms", kSigningAlgorithms.texts.size(),
                 [&](const Json& one, const std::string& place) {
                     const auto known = one.is_string()
                                            ? kSigningAlgorithms.find(one.get<std::string>())
                                            : std::nullopt;
                     if (known) return algorithms.push_back(*known);
                     fields.tell({place, "must be RS256 or ES256"});
                 });
    if (!algorithms.empty()) out.algorithms = std::move(algorithms);
    out.tenant = fields.text("tenant", kLongestText).value_or("");
    out.tenant_claim = pointer(fields, "tenantClaim");
    out.tenant_prefix = fields.text("tenantPrefix", kLongestText).value_or("");
    if (out.tenant.empty() == out.tenant_claim.empty()) {
        fields.complain("tenant", "give exactly one of tenant and tenantClaim");
    }
    if (!out.tenant.empty() && !controller::isTenantName(out.tenant)) {
        fields.complain("tenant", controller::kTenantNameRule);
    }
    if (const auto role = fields.text("role")) {
        out.role = controller::kRoles.find(*role);
        if (!out.role && *role != "none")
            fields.complain("role", "must be user, operator, admin or none");
    }
    fields.items("roles", kMostRules, [&](const Json& one, const std::string& place) {
        out.roles.push_back(rule(one, place, wrong));
    });
    out.keys_url = url(fields, "keysUrl");
    out.ca_file = fields.text("caFile", kLongestText).value_or("");
    out.token_file = fields.text("tokenFile", kLongestText).value_or("");
    fields.finish();
    return out;
}

}  // namespace

bool isSafeKeyUrl(const std::string& text) {
    try {
        const http::ServerUrl url = http::ServerUrl::parse(text);
        return url.tls || (url.socket.empty() && http::isLoopbackHost(url.host));
    } catch (const Error&) {
        return false;
    }
}

std::vector<IssuerConfig> parseIssuers(const Json& document) {
    std::vector<IssuerConfig> all;
    std::vector<FieldError> faults;
    const Fields::Wrong wrong = [&](FieldError fault) { faults.push_back(std::move(fault)); };
    Fields fields(document, "", wrong);
    fields.items("issuers", kMostIssuers, [&](const Json& one, const std::string& at) {
        all.push_back(issuer(one, at, wrong));
        const auto same = [&](const IssuerConfig& each) {
            return each.issuer == all.back().issuer;
        };
        if (std::count_if(all.begin(), all.end(), same) > 1)
            wrong({at + "/issuer", "is given twice"});
    });
    fields.finish();
    if (faults.empty()) return all;
    Error error(ErrorCode::InvalidSpec, "the issuers are not valid");
    for (const FieldError& fault : faults) error.field(fault.pointer, fault.reason);
    throw error;
}

}  // namespace hearth::auth
