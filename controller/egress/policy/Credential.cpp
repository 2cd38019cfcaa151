#include "controller/egress/policy/Credential.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/Fields.h"
#include "base/http/RequestHead.h"
#include "base/http/Url.h"
#include "controller/egress/policy/NetworkPolicy.h"

namespace hearth::egress {
namespace {

constexpr std::size_t kLeastSecret = 8;
constexpr std::size_t kMostSecret = 4'096;
constexpr std::size_t kMostName = 128;
constexpr std::string_view kHole = "{}";
constexpr std::array<const char*, 8> kKnown{"host",  "scheme",   "header", "basic",
                                            "query", "template", "secret", "value"};
/// Header fields that frame or route a request must not be set.
constexpr std::array<std::string_view, 14> kNoHeader{"Host",
                                                     "Connection",
                                                     "Content-Length",
                                                     "Transfer-Encoding",
                                                     "TE",
                                                     "Trailer",
                                                     "Upgrade",
                                                     "Expect",
                                                     "Keep-Alive",
                                                     "Accept-Encoding",
                                                     "Proxy-Connection",
                                                     "Proxy-Authorization",
                                                     "Range",
                                                     "Via"};

bool isPrintable(std::string_view text) noexcept {
    return std::all_of(text.begin(), text.end(), [](char c) { return c >= 0x20 && c <= 0x7E; });
}

/// Checks for a name that means the same in a path and in a URL and leads nowhere else.
bool isPlainName(std::string_view text) noexcept {
    return !text.empty() && text.size() <= kMostName && text.front() != '.' &&
           std::all_of(text.begin(), text.end(), [](unsigned char c) {
               return c < 0x80 && (std::isalnum(c) != 0 || c == '.' || c == '_' || c == '-');
           });
}

void readDestination(Fields& reading, Credential& out) {
    const std::string scheme = reading.text("scheme").value_or("https");
    if (scheme != "https" && scheme != "http") reading.complain("scheme", "must be https or http");
    out.tls = scheme != "http";
    const std::optional<std::string> host = reading.text("host");
    const auto there = host ? Destination::parse(*host, out.tls ? kHttpsPort : kHttpPort)
                            : std::optional<Destination>();
    if (!there || there->port == 0) {
        return reading.complain(
            "host", "must be one host, such as api.example.com or api.example.com:8443");
    }
    out.destination = *there;
}

void readPlace(Fields& reading, Credential& out) {
    const auto header = reading.text("header");
    const auto basic = reading.text("basic");
    const auto query = reading.text("query");
    if ((header ? 1 : 0) + (basic ? 1 : 0) + (query ? 1 : 0) > 1) {
        return reading.complain("", "must have only one of header, basic and query");
    }
    if (basic) {
        out.place = Credential::Place::Basic;
        out.name = *basic;
        if (out.name.size() > kMostName || !isPrintable(out.name) ||
            out.name.find(':') != std::string::npos) {
            reading.complain("basic", "must be a user's name, without a colon");
        }
    } else if (query) {
        out.place = Credential::Place::Query;
        out.name = *query;
        if (!isPlainName(out.name)) {
            reading.complain("query", "must be a parameter's name, such as api_key");
        }
    } else {
        out.name = header.value_or("Authorization");
        const bool taken = std::any_of(kNoHeader.begin(), kNoHeader.end(), [&](auto known) {
            return equalsIgnoreCase(known, out.name);
        });
        if (!isToken(out.name) || out.name.size() > kMostName || taken) {
            reading.complain("header",
                             taken ? "cannot be set by a credential" : "must be a header's name");
        }
    }
    const auto form = reading.text("template");
    if (form && out.place != Credential::Place::Header) {
        return reading.complain("template", "needs a header");
    }
    if (out.place != Credential::Place::Header) return;
    const bool authorization = equalsIgnoreCase(out.name, "Authorization");
    out.form = form.value_or(authorization ? "Bearer {}" : "{}");
    const std::size_t hole = out.form.find(kHole);
    if (hole == std::string::npos || out.form.find(kHole, hole + 1) != std::string::npos ||
        !isPrintable(out.form) || out.form.size() > kMostName) {
        reading.complain("template", R"(must have {} once, where the secret goes: "Bearer {}")");
    }
}

void readSecret(Fields& reading, CredentialSource source, Credential& out) {
    const auto secret = reading.text("secret");
    const auto value = reading.text("value");
    if (value && source == CredentialSource::Pool) {
        return reading.complain(
            "value", "is not allowed in a manifest; name a file of egress.secrets in `secret`");
    }
    if (secret && value) return reading.complain("", "must have only one of secret and value");
    if (!secret && !value) {
        return reading.complain("secret", "is required: the name of a secret, such as token-a");
    }
    if (secret && !isPlainName(*secret)) {
        return reading.complain("secret", "must be letters, digits, '.', '_' and '-'");
    }
    if (value && !isSecretValue(*value)) {
        return reading.complain("value", "must be 8 to 4,096 printable ASCII characters");
    }
    out.secret = secret.value_or("");
    out.value = value.value_or("");
}

}  // namespace

bool isSecretValue(std::string_view text) noexcept {
    return text.size() >= kLeastSecret && text.size() <= kMostSecret && isPrintable(text);
}

Credential readCredential(const Json& json, CredentialSource source, const std::string& pointer,
                          std::vector<FieldError>& errors) {
    Credential out;
    const Fields::Wrong wrong = [&](FieldError error) { errors.push_back(std::move(error)); };
    if (!json.is_object()) {
        wrong({pointer, "must be an object with host and secret"});
        return out;
    }
    Fields reading(json, pointer, wrong, Fields::Absent::Fine);
    for (const char* known : kKnown) reading.find(known);
    reading.finish();
    readDestination(reading, out);
    readPlace(reading, out);
    readSecret(reading, source, out);
    return out;
}

Json credentialJson(const Credential& credential) {
    Json out{{"host", credential.destination.text()},
             {"scheme", credential.tls ? "https" : "http"}};
    switch (credential.place) {
        case Credential::Place::Header:
            out["header"] = credential.name;
            out["template"] = credential.form;
            break;
        case Credential::Place::Basic:
            out["basic"] = credential.name;
            break;
        case Credential::Place::Query:
            out["query"] = credential.name;
            break;
    }
    if (!credential.secret.empty()) out["secret"] = credential.secret;
    return out;
}

bool collide(const Credential& a, const Credential& b) {
    if (a.destination != b.destination || a.tls != b.tls) return false;
    const auto sets = [](const Credential& c) -> std::string {
        if (c.place == Credential::Place::Query) return "?" + c.name;
        return c.place == Credential::Place::Basic ? "authorization" : toLower(c.name);
    };
    return sets(a) == sets(b);
}

}  // namespace hearth::egress
