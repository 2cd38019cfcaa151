#include "api/cli/remote/Remote.h"

#include <algorithm>
#include <array>

#include "base/Error.h"
#include "base/Version.h"
#include "base/http/Url.h"

namespace hearth::cli {
namespace {

constexpr const char* kDefaultUrl = "http://127.0.0.1:8080";

/// Reports a wrong --url as a usage error.
http::HttpClient clientAt(const std::string& url, const http::ClientOptions& options) {
    try {
        return http::HttpClient(url, options);
    } catch (const Error& e) {
        throw UsageError(std::string("--url (HEARTH_URL): ") + e.what(), e.hint());
    }
}

}  // namespace

int exitStatusOf(const RemoteError& error) noexcept {
    if (error.code() == errorCodeName(ErrorCode::InvalidArgument)) return kUsage;
    return error.status() == 404 || error.status() == 410 ? kNotFound : kFailure;
}

namespace {

/// Replaces the request's fields in the server's message by the flags that the user types.
std::string withFlags(std::string text) {
    constexpr std::array<std::pair<std::string_view, std::string_view>, 12> kFields = {{
        {"/limits/memoryBytes", "--memory"},
        {"/limits/cpu", "--cpu"},
        {"/limits/pids", "--pids"},
        {"/timeoutSeconds", "--timeout"},
        {"/idleTimeoutSeconds", "--idle-timeout"},
        {"/maxLifetimeSeconds", "--max-lifetime"},
        {"/outputLimitBytes", "--output-limit"},
        {"/language", "--language"},
        {"/name", "--name"},
        {"/cwd", "--cwd"},
        {"/pool", "--pool"},
        {"/image", "--image"},
    }};
    for (const auto& [field, flag] : kFields) {
        for (std::size_t at = 0; (at = text.find(field, at)) != std::string::npos; ++at) {
            const std::size_t end = at + field.size();
            const bool begins = at == 0 || text[at - 1] == ' ';
            if (begins && (end == text.size() || text[end] == ' ' || text[end] == ':')) {
                text.replace(at, field.size(), flag);
            }
        }
    }
    return text;
}

}  // namespace

RemoteError remoteError(int status, std::string_view body) {
    Json problem;
    try {
        problem = parseJson(body);
        if (status == 0) status = problem.at("status").get<int>();
    } catch (const std::exception&) {
        problem = nullptr;  // perhaps a proxy's page: the status says enough
    }
    if (!problem.is_object()) {
        return {status, "the server answered with status " + std::to_string(status),
                "is this a Hearth server? see --url", ""};
    }
    std::string message = textAt(problem, "detail");
    if (message.empty()) message = textAt(problem, "message");
    if (message.empty()) message = textAt(problem, "title");
    if (message.empty()) message = "the server answered with status " + std::to_string(status);
    if (const auto errors = problem.find("errors"); errors != problem.end() && errors->is_array()) {
        for (const Json& error : *errors) {
            if (!error.is_object()) continue;
            const std::string pointer = textAt(error, "pointer");
            // Many messages contain it already, with or without the place.
            if (message.find(textAt(error, "reason")) != std::string::npos) continue;
            message += "; " + pointer + (pointer.empty() ? "" : ": ") + textAt(error, "reason");
        }
    }
    std::string hint = textAt(problem, "hint");
    if (hint.find("/openapi.json") != std::string::npos) hint.clear();  // only for programs
    if (status == 401) {  // the server's hint is about headers
        hint = "set HEARTH_TOKEN or give --token; an admin makes one with `hearth token create`";
    }
    if (const auto after = problem.find("retryAfterSeconds");
        after != problem.end() && after->is_number()) {
        hint += (hint.empty() ? "" : "; ") + ("try again in " + after->dump() + " s");
    }
    const bool logged = status >= 500 && status != 501 && status != 503;
    if (const std::string id = textAt(problem, "requestId"); !id.empty() && logged) {
        hint += (hint.empty() ? "" : "; ") + ("the server's log has it under " + id);
    }
    return {status, withFlags(message), hint, textAt(problem, "errorCode")};
}

std::vector<Flag> clientFlags() {
    return {Flag{.name = "url", .value = "URL", .help = "The server", .fallback = kDefaultUrl},
            Flag{.name = "token", .value = "TOKEN", .help = "The bearer token"},
            Flag{.name = "ca-file",
                 .value = "FILE",
                 .help = "For https: the certificates (PEM) of the authorities to trust instead of "
                         "this machine's"}};
}

http::ClientOptions clientOptions(const Options& options) {
    http::ClientOptions client;
    client.proxies = http::ProxySettings::from(
        [&options](const std::string& name) { return options.variable(name); });
    if (const auto file = options.get("ca-file")) {
        try {
            client.tls = std::make_shared<const http::TlsContext>(
                http::TlsContext::Files{.authority = *file});
        } catch (const Error& e) {
            throw UsageError(std::string("--ca-file (HEARTH_CA_FILE): ") + e.what(),
                             "name a readable PEM file with certificates");
        }
    }
    return client;
}

std::vector<Flag> withClientFlags(std::vector<Flag> flags) {
    for (Flag& flag : clientFlags()) flags.push_back(std::move(flag));
    return flags;
}

namespace {

http::ClientOptions optionsOfRemote(const Options& options, std::chrono::milliseconds silence) {
    http::ClientOptions client = clientOptions(options);
    client.timeout = silence;
    client.headers.emplace_back("User-Agent", std::string("hearth/") + kHearthVersion);
    if (const auto token = options.get("token"); token && !token->empty()) {
        client.headers.emplace_back("Authorization", "Bearer " + *token);
    }
    return client;
}

}  // namespace

Remote::Remote(const Options& options, RemotePatience patience)
    : Remote(options.get("url", kDefaultUrl), optionsOfRemote(options, patience.silence)) {
    stop_ = patience.stop;
}

Remote::Remote(const std::string& url, http::ClientOptions options)
    : options_(std::move(options)), client_(clientAt(url, options_)) {}

Json Remote::get(const std::string& target) {
    return send("GET", target).body;
}

std::vector<Json> Remote::list(const std::string& target) {
    std::vector<Json> items;
    std::string cursor;
    do {
        std::string page = target;
        if (!cursor.empty()) {
            page += (target.find('?') == std::string::npos ? "?cursor=" : "&cursor=") +
                    percentEncode(cursor);
        }
        const Json answer = get(page);
        if (!answer.is_object() || !answer.contains("items") || !answer["items"].is_array()) {
            throw Error(ErrorCode::Internal, "the server's list has no items");
        }
        for (const Json& item : answer["items"]) items.push_back(item);
        cursor = textAt(answer, "nextCursor");
        const auto lacking = answer.find("unanswered");
        unanswered_ = lacking != answer.end() && lacking->is_number_unsigned()
                          ? lacking->get<std::uint64_t>()
                          : 0;
    } while (!cursor.empty());
    return items;
}

Answer Remote::send(const std::string& method, const std::string& target, const Json& body,
                    http::ClientHeaders headers) {
    http::ClientRequest request;
    request.method = method;
    request.target = target;
    request.stop = stop_;
    request.headers = std::move(headers);
    if (!body.is_null()) {
        const bool typed =
            std::any_of(request.headers.begin(), request.headers.end(),
                        [](const auto& header) { return header.first == "Content-Type"; });
        if (!typed) request.headers.emplace_back("Content-Type", "application/json");
        request.body = dumpJson(body);
    }
    const http::ClientResponse response = client_.request(request);
    if (response.status >= 400) throw remoteError(response.status, response.body);
    Answer answer{response.status, nullptr};
    if (!response.body.empty()) {
        constexpr JsonLimits kOurServers{
            .bytes = 256U << 20U, .depth = 64, .values = 2'000'000, .members = 100'000};
        answer.body = parseJson(response.body, kOurServers);
    }
    return answer;
}

std::string Remote::raw(const std::string& method, const std::string& target, std::string body,
                        http::ClientHeaders headers) {
    http::ClientRequest request;
    request.headers = std::move(headers);
    request.method = method;
    request.target = target;
    if (method != "GET") request.headers.emplace_back("Content-Type", "application/octet-stream");
    request.body = std::move(body);
    http::ClientResponse response = client_.request(request);
    if (response.status >= 400) throw remoteError(response.status, response.body);
    return std::move(response.body);
}

void Remote::upload(const http::ClientRequest& request) {
    const http::ClientResponse response = client_.request(request);
    if (response.status >= 400) throw remoteError(response.status, response.body);
}

void Remote::download(const std::string& target,
                      const std::function<void(const http::ClientResponse&)>& head,
                      const std::function<void(std::string_view)>& sink) {
    http::ClientRequest request;
    request.target = target;
    int status = 0;
    std::string refusal;
    client_.stream(
        request,
        [&](std::string_view piece) {
            if (status < 400) {
                sink(piece);
                return true;
            }
            refusal.append(piece);
            return refusal.size() < (1U << 20U);
        },
        [&](const http::ClientResponse& answer) {
            status = answer.status;
            if (status < 400) head(answer);
            return true;
        });
    if (status >= 400) throw remoteError(status, refusal);
}

void Remote::events(http::ClientRequest request,
                    const std::function<bool(const http::SseEvent&)>& on_event) {
    request.headers.emplace_back("Accept", "text/event-stream");
    request.timeout = std::chrono::milliseconds(0);
    http::SseReader reader([&](const http::SseEvent& event) {
        // The request failed after its stream had begun.
        if (event.type == "problem") throw remoteError(0, event.data);
        return on_event(event);
    });
    int status = 0;
    std::string refusal;
    client_.stream(
        request,
        [&](std::string_view piece) {
            if (status < 400) return reader.feed(piece);
            refusal.append(piece);
            return refusal.size() < (1U << 20U);
        },
        [&](const http::ClientResponse& head) {
            status = head.status;
            return true;
        });
    if (status >= 400) throw remoteError(status, refusal);
}

}  // namespace hearth::cli
