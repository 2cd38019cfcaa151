#include "api/auth/oidc/Issuer.h"

#include <algorithm>
#include <chrono>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/Digest.h"
#include "base/Error.h"
#include "base/Units.h"
#include "base/http/Url.h"
#include "base/http/client/HttpClient.h"
#include "base/http/client/ServerUrl.h"
#include "controller/contract/TenantName.h"

namespace hearth::auth {
namespace {

using std::chrono::seconds;

constexpr seconds kLeeway{60};
constexpr std::chrono::minutes kReadAgain{5};
/// The least time between reads that unknown keys trigger, whichever token names them.
constexpr seconds kBetweenReads{30};
/// The pause after the first failed read; it doubles with each failure.
constexpr seconds kFirstReads{2};
constexpr std::chrono::milliseconds kPatience{5'000};
constexpr std::size_t kMostBytes = 1U << 20U;
/// The end of the year 9999; a later time is a mistake.
constexpr double kLastSecond = 253'402'300'800;
constexpr std::size_t kLongestSubject = 128;

std::shared_ptr<const http::TlsContext> trust(const std::string& ca_file) {
    http::TlsContext::Files files;
    files.authority = ca_file;
    files.machine_authorities = true;
    return std::make_shared<const http::TlsContext>(files);
}

const Json* claimAt(const Json& claims, const std::string& pointer) {
    const Json::json_pointer place(pointer);
    return claims.contains(place) ? &claims.at(place) : nullptr;
}

bool has(const Json& claim, const std::string& value) {
    if (claim.is_string()) return claim == value;
    return claim.is_array() &&
           std::any_of(claim.begin(), claim.end(), [&](const Json& one) { return one == value; });
}

/// A claim's time, or the last one that a clock holds if that is earlier.
std::optional<WallTime> timeAt(const Json& claims, const char* name) {
    if (!claims.contains(name) || !claims[name].is_number()) return std::nullopt;
    const double at = claims[name].get<double>();
    if (!(at >= 0 && at < kLastSecond)) return std::nullopt;
    return nearestWallTime(seconds(static_cast<std::int64_t>(at)));
}

/// The caller's id in logs and sessions: the issuer and the subject, or the subject's hash if it is
/// long or has unusual characters.
std::string callerOf(const std::string& issuer, const Json& claims) {
    const std::string subject = textAt(claims, "sub");
    const auto plain = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               std::string_view("-_.:@/|").find(c) != std::string_view::npos;
    };
    const bool shown = !subject.empty() && subject.size() <= kLongestSubject &&
                       std::all_of(subject.begin(), subject.end(), plain);
    return std::string(controller::kIssuedPrefix) + issuer.substr(issuer.find("://") + 3) + "#" +
           (shown ? subject : "sha256:" + toHex(sha256(subject)).substr(0, 16));
}

}  // namespace

Issuer::Issuer(IssuerConfig config, const Clock& clock, metrics::Log& log)
    : config_(std::move(config)), clock_(clock), log_(log) {
    trust(config_.ca_file);  // reports an unusable file now
    thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

Issuer::~Issuer() {
    thread_.request_stop();
    stopping_ = true;
    wanted_changed_.notifyAll();
}

TokenVerdict Issuer::check(const Jwt& token) const {
    if (const auto fault = checkHeader(token)) return *fault;
    const std::shared_ptr<const SigningKeys> known = keys();
    if (!known) {
        askForKeys();
        return KeysPending{};
    }
    if (const auto fault = known->verify(token)) {
        if (*fault == TokenFault::UnknownKey && askForKeys()) return KeysPending{};
        return *fault;
    }
    if (const auto fault = checkTimes(token.claims)) return *fault;
    if (textAt(token.claims, "sub").empty()) return TokenFault::Subject;
    if (!isForUs(token.claims)) return TokenFault::Audience;
    auto who = principalOf(token.claims);
    if (const auto* const fault = std::get_if<TokenFault>(&who)) return *fault;
    return controller::Authenticated{
        .who = std::get<controller::Principal>(std::move(who)),
        .right = {.withdrawn = {}, .expires = *timeAt(token.claims, "exp") + kLeeway}};
}

std::optional<TokenFault> Issuer::checkHeader(const Jwt& token) const {
    if (textAt(token.claims, "iss") != config_.issuer) return TokenFault::Issuer;
    for (const char* name : {"crit", "jku", "jwk", "x5u"}) {
        if (token.header.contains(name)) return TokenFault::Header;
    }
    const auto algorithm = kSigningAlgorithms.find(textAt(token.header, "alg"));
    const bool allowed =
        algorithm && std::ranges::find(config_.algorithms, *algorithm) != config_.algorithms.end();
    return allowed ? std::nullopt : std::optional(TokenFault::Algorithm);
}

std::optional<TokenFault> Issuer::checkTimes(const Json& claims) const {
    const WallTime now = clock_.wall();
    const std::optional<WallTime> expires = timeAt(claims, "exp");
    if (!expires || *expires + kLeeway <= now) return TokenFault::Expired;
    for (const char* name : {"nbf", "iat"}) {
        if (!claims.contains(name)) continue;
        const std::optional<WallTime> from = timeAt(claims, name);
        if (!from || *from > now + kLeeway) return TokenFault::NotYet;
    }
    return std::nullopt;
}

bool Issuer::isForUs(const Json& claims) const {
    if (!claims.contains("aud")) return false;
    return std::any_of(config_.audiences.begin(), config_.audiences.end(),
                       [&](const std::string& ours) { return has(claims["aud"], ours); });
}

std::variant<controller::Principal, TokenFault> Issuer::principalOf(const Json& claims) const {
    controller::Principal who;
    who.tenant = config_.tenant;
    if (who.tenant.empty()) {
        const Json* const claim = claimAt(claims, config_.tenant_claim);
        if (claim == nullptr || !claim->is_string()) return TokenFault::Tenant;
        who.tenant = config_.tenant_prefix + claim->get<std::string>();
        if (!controller::isTenantName(who.tenant)) return TokenFault::Tenant;
    }
    std::optional<controller::Role> role = config_.role;
    for (const RoleRule& rule : config_.roles) {
        const Json* const claim = claimAt(claims, rule.claim);
        if (claim != nullptr && has(*claim, rule.value))
            role = std::max(role, std::optional(rule.role));
    }
    if (!role) return TokenFault::Role;
    who.role = *role;
    who.token_id = callerOf(config_.issuer, claims);
    return who;
}

std::shared_ptr<const SigningKeys> Issuer::keys() const {
    const MutexLock lock(mutex_);
    return keys_;
}

bool Issuer::askForKeys() const {
    const MutexLock lock(mutex_);
    if (wanted_) return true;
    if (read_at_ && clock_.now() - *read_at_ < kBetweenReads) return false;
    wanted_ = true;
    wanted_changed_.notifyAll();
    return true;
}

void Issuer::run(const std::stop_token& stop) {
    seconds patience = kFirstReads;
    while (!stop.stop_requested()) {
        const bool done = read();
        patience = done ? seconds(kReadAgain) : std::min(patience * 2, kBetweenReads);
        const MutexLock lock(mutex_);
        read_at_ = clock_.now();
        wanted_ = false;
        wanted_changed_.waitFor(mutex_, stop, patience,
                                [this]() HEARTH_REQUIRES(mutex_) { return wanted_; });
        wanted_ = true;
    }
}

/// False if the issuer cannot be read: the log says so once, and once more when it works again.
bool Issuer::read() {
    std::string trouble;
    try {
        auto fresh = std::make_shared<const SigningKeys>(
            SigningKeys::parse(fetch(keysUrl(), !config_.keys_url.empty())));
        if (fresh->size() == 0) {
            throw Error(ErrorCode::InvalidArgument, "none of its keys can verify RS256 or ES256");
        }
        const MutexLock lock(mutex_);
        keys_ = std::move(fresh);
    } catch (const std::exception& e) {  // any exception is the issuer's fault
        trouble = e.what();
    }
    if (trouble == trouble_) return trouble.empty();
    trouble_ = trouble;
    if (trouble.empty()) {
        log_.info("oidc.keys_read", {{"issuer", config_.issuer}});
    } else {
        log_.warn("oidc.keys_not_read",
                  {{"issuer", config_.issuer},
                   {"error", trouble},
                   {"hint", keys() ? "the keys that were read before stay valid"
                                   : "its tokens are refused until its keys are read"}});
    }
    return trouble.empty();
}

/// The URL of the keys: found by discovery (OpenID Connect Discovery 1.0, section 4), unless it is
/// configured.
std::string Issuer::keysUrl() const {
    if (!config_.keys_url.empty()) return config_.keys_url;
    std::string base = config_.issuer;
    if (base.ends_with('/')) base.pop_back();
    const Json about = fetch(base + "/.well-known/openid-configuration", true);
    if (textAt(about, "issuer") != config_.issuer) {
        throw Error(ErrorCode::InvalidArgument,
                    "its discovery document names the issuer \"" + textAt(about, "issuer") + "\"");
    }
    std::string url = textAt(about, "jwks_uri");
    if (!isSafeKeyUrl(url)) {
        throw Error(ErrorCode::InvalidArgument,
                    "its jwks_uri is not an https URL: \"" + url + "\"");
    }
    return url;
}

/// A redirection is a failure. `with_token`: the URL comes from the operator, not from the issuer.
Json Issuer::fetch(const std::string& url, bool with_token) const {
    http::ClientOptions options;
    options.connect_timeout = options.timeout = kPatience;
    options.tls = trust(config_.ca_file);  // read again: authorities change, too
    options.max_body = kMostBytes;
    if (with_token && !config_.token_file.empty()) {
        std::ifstream file(config_.token_file);
        const std::string text{std::istreambuf_iterator<char>(file), {}};
        options.headers.emplace_back("Authorization", "Bearer " + std::string(trim(text)));
    }
    http::HttpClient client(url, std::move(options));
    http::ClientRequest request;
    if (!http::ServerUrl::parse(url).path.empty()) request.target.clear();  // the URL has it all
    request.until = SystemClock().now() + kPatience;
    request.stop = &stopping_;
    const http::ClientResponse answer = client.request(request);
    if (answer.status != 200) {
        throw Error(ErrorCode::Unavailable, url + " answers " + std::to_string(answer.status));
    }
    return parseJson(answer.body);
}

}  // namespace hearth::auth
