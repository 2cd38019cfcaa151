#include "api/mcp/stdio/Upstream.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "api/mcp/protocol/Era.h"
#include "base/Error.h"
#include "base/Ids.h"
#include "base/Version.h"
#include "base/http/Url.h"
#include "base/http/client/SseReader.h"

namespace hearth::mcp {
namespace {

JsonLimits answerLimits() {
    JsonLimits limits;
    limits.bytes = 64U << 20U;
    limits.depth = 64;
    limits.values = 1'000'000;
    return limits;
}

/// Reads the messages of an event stream; an event without data only carries an id.
http::SseReader messagesOf(const Upstream::Deliver& deliver) {
    return http::SseReader([&deliver](const http::SseEvent& event) {
        if (!event.data.empty()) deliver(parseJson(event.data, answerLimits()));
        return true;
    });
}

/// Returns the document, or null if the text is not JSON.
Json parsedOrNull(const std::string& text) {
    try {
        return parseJson(text, answerLimits());
    } catch (const Error&) {
        return {};
    }
}

ErrorCode codeOfStatus(int status) {
    switch (status) {
        case 401:
            return ErrorCode::Unauthenticated;
        case 403:
            return ErrorCode::Forbidden;
        case 404:
            return ErrorCode::NotFound;
        case 409:
            return ErrorCode::Conflict;
        case 410:
            return ErrorCode::Gone;
        case 413:
            return ErrorCode::PayloadTooLarge;
        case 429:
            return ErrorCode::RateLimited;
        case 507:
            return ErrorCode::DiskFull;
        default:
            return status >= 500 ? ErrorCode::Internal : ErrorCode::InvalidArgument;
    }
}

/// Returns the problem details of an HTTP error as an Error.
Error problemOf(int status, const std::string& body) {
    const Json problem = parsedOrNull(body);
    Error error(codeOfStatus(status),
                stringMember(problem, "detail")
                    .value_or("the server answered HTTP " + std::to_string(status)));
    if (status == 401) {  // the server's hint is about headers
        error.hint("Set HEARTH_TOKEN to a valid token where the MCP client starts `hearth mcp`.");
    } else if (const auto hint = stringMember(problem, "hint")) {
        error.hint(*hint);
    }
    return error;
}

std::string fileTarget(const std::string& workspace, const std::string& path) {
    return "/v1/workspaces/" + percentEncode(workspace) + "/files/" + percentEncode(path, true);
}

/// Returns the workspace and the path in it from the arguments of file_put and file_get.
std::pair<std::string, std::string> placeOf(const Json& arguments) {
    const auto workspace = stringMember(arguments, "workspace_id");
    const auto path = stringMember(arguments, "path");
    if (!workspace || workspace->empty() || !path || path->empty()) {
        throw Error(ErrorCode::InvalidArgument, "workspace_id and path are required strings");
    }
    return {*workspace, *path};
}

std::string lastName(const std::string& path) {
    const std::size_t slash = path.rfind('/');
    return slash == std::string::npos ? path : path.substr(slash + 1);
}

/// Returns a header's value in the form of 2026-07-28: unchanged if that is safe, else in base64.
std::string headerText(const std::string& value) {
    const bool plain =
        !value.empty() && value.front() != ' ' && value.back() != ' ' &&
        !value.starts_with("=?base64?") &&
        std::all_of(value.begin(), value.end(), [](char c) { return c >= ' ' && c < '\x7F'; });
    return plain ? value : "=?base64?" + base64Encode(value) + "?=";
}

Json defaultHello() {
    return {{"protocolVersion", kLegacyVersions.front()},
            {"capabilities", Json::object()},
            {"clientInfo", {{"name", "hearth-mcp"}, {"version", kHearthVersion}}}};
}

}  // namespace

Upstream::Upstream(std::string url, std::string token, std::string endpoint,
                   http::ClientOptions client)
    : url_(std::move(url)),
      token_(std::move(token)),
      endpoint_(std::move(endpoint)),
      client_(std::move(client)) {}

http::HttpClient Upstream::connect() const {
    http::ClientOptions options = client_;
    // A slow call gets a keepalive every 15 s; opening a workspace may wait in a queue before.
    options.timeout = std::chrono::minutes(2);
    if (!token_.empty()) options.headers.emplace_back("Authorization", "Bearer " + token_);
    return http::HttpClient(url_, options);
}

http::ClientHeaders Upstream::headersOf(const Session& session) {
    if (session.id.empty()) return {};
    return {{"Mcp-Session-Id", session.id}, {"MCP-Protocol-Version", session.version}};
}

http::ClientResponse Upstream::post(http::HttpClient& client, const Json& message,
                                    const http::ClientHeaders& headers, bool quiet_404,
                                    const Deliver& deliver) const {
    http::ClientRequest request;
    request.method = "POST";
    request.target = endpoint_;
    request.headers = {{"Content-Type", "application/json"},
                       {"Accept", "application/json, text/event-stream"}};
    request.headers.insert(request.headers.end(), headers.begin(), headers.end());
    request.body = dumpJson(message);
    bool events = false;
    std::string body;
    http::SseReader reader = messagesOf(deliver);
    http::ClientResponse response = client.stream(
        request,
        [&](std::string_view piece) {
            if (events) {
                reader.feed(piece);
            } else {
                body += piece;
            }
            return body.size() <= answerLimits().bytes;
        },
        [&](const http::ClientResponse& head) {
            events = head.status == 200 &&
                     head.header("Content-Type").value_or("").starts_with("text/event-stream");
            return true;
        });
    if (events || response.status == 202 || (quiet_404 && response.status == 404)) return response;
    const Json answer = parsedOrNull(body);
    if (response.status == 401) {
        throw problemOf(401, dumpJson({{"detail", token_.empty() ? "the server wants a token"
                                                                 : "the server does not know "
                                                                   "the token"}}));
    }
    if (!answer.is_array() && !stringMember(answer, "jsonrpc")) {
        throw problemOf(response.status, body);
    }
    deliver(answer);
    return response;
}

void Upstream::adopt(const http::ClientResponse& response, const Json& answer) {
    const Json* result = member(answer, "result");
    if (result == nullptr) return;
    const MutexLock lock(mutex_);
    session_.id = response.header("Mcp-Session-Id").value_or("");
    session_.version = stringMember(*result, "protocolVersion").value_or("");
}

void Upstream::initialize(http::HttpClient& client, const Json& message, const Deliver& deliver) {
    if (const Json* params = member(message, "params")) {
        const MutexLock lock(mutex_);
        hello_ = *params;
    }
    Json answer;
    const http::ClientResponse response =
        post(client, message, {}, false, [&](const Json& one) { answer = one; });
    adopt(response, answer);
    deliver(answer);
}

Upstream::Session Upstream::session(http::HttpClient& client) {
    Json hello;
    {
        const MutexLock lock(mutex_);
        if (!session_.id.empty()) return session_;
        hello = hello_.is_null() ? defaultHello() : hello_;
    }
    Json message = {{"jsonrpc", "2.0"}, {"id", "hearth-mcp-hello"}, {"method", "initialize"}};
    message["params"] = std::move(hello);
    Json answer;
    const http::ClientResponse response =
        post(client, message, {}, false, [&](const Json& one) { answer = one; });
    adopt(response, answer);
    const MutexLock lock(mutex_);
    if (session_.id.empty()) throw Error(ErrorCode::Internal, "the server opened no session");
    return session_;
}

void Upstream::exchange(http::HttpClient& client, const Json& message, const Deliver& deliver) {
    const Session first = session(client);
    if (post(client, message, headersOf(first), true, deliver).status != 404) return;
    {
        const MutexLock lock(mutex_);
        if (session_.id == first.id) session_ = {};
    }
    post(client, message, headersOf(session(client)), false, deliver);
}

void Upstream::exchangeModern(http::HttpClient& client, const Json& message,
                              const Deliver& deliver) {
    http::ClientHeaders headers = {
        {"Mcp-Method", headerText(stringMember(message, "method").value_or(""))},
        {kInstanceHeader, instance_}};
    if (const Json* params = member(message, "params")) {
        if (const Json* meta = member(*params, "_meta")) {
            headers.emplace_back("MCP-Protocol-Version",
                                 headerText(stringMember(*meta, envelope::kVersion).value_or("")));
        }
        for (const char* key : {"name", "uri"}) {
            if (const auto value = stringMember(*params, key)) {
                headers.emplace_back("Mcp-Name", headerText(*value));
                break;
            }
        }
    }
    post(client, message, headers, false, deliver);
}

bool Upstream::listen(http::HttpClient& client, const std::stop_token& stop,
                      const Deliver& deliver) {
    http::ClientRequest request;
    request.target = endpoint_;
    request.headers = headersOf(session(client));
    request.headers.emplace_back("Accept", "text/event-stream");
    bool events = false;
    http::SseReader reader = messagesOf(deliver);
    const http::ClientResponse response = client.stream(
        request,
        [&](std::string_view piece) {
            if (events && !stop.stop_requested()) reader.feed(piece);
            return events && !stop.stop_requested();
        },
        [&](const http::ClientResponse& head) {
            events = head.status == 200 &&
                     head.header("Content-Type").value_or("").starts_with("text/event-stream");
            return !stop.stop_requested();
        });
    return events || response.status == 404;
}

std::uint64_t Upstream::put(http::HttpClient& client, const std::string& workspace,
                            const std::string& path, const std::optional<std::string>& mode,
                            const LocalFiles& files, const std::string& local) const {
    http::ClientRequest request;
    request.method = "PUT";
    request.target = fileTarget(workspace, path);
    request.headers = {{"Content-Type", "application/octet-stream"}};
    if (mode) request.headers.emplace_back("X-File-Mode", *mode);
    const LocalFiles::Opened opened = files.open(local);
    std::uint64_t left = opened.size;  // a file that grows meanwhile is sent up to its old size
    request.source = [&](char* out, std::size_t size) -> std::size_t {
        const auto most = static_cast<std::size_t>(std::min<std::uint64_t>(size, left));
        if (most == 0) return 0;
        ssize_t n = 0;
        do {
            n = ::read(opened.fd.get(), out, most);
        } while (n < 0 && errno == EINTR);
        if (n < 0) throwErrno("read", local);
        if (n == 0) throw Error(ErrorCode::Conflict, local + " shrank while it was sent");
        left -= static_cast<std::uint64_t>(n);
        return static_cast<std::size_t>(n);
    };
    request.source_length = opened.size;
    const http::ClientResponse response = client.request(request);
    if (response.status >= 300) throw problemOf(response.status, response.body);
    return opened.size;
}

std::pair<std::string, std::uint64_t> Upstream::get(http::HttpClient& client,
                                                    const std::string& workspace,
                                                    const std::string& path,
                                                    const LocalFiles& files,
                                                    const std::string& save_to) const {
    http::ClientRequest request;
    request.target = fileTarget(workspace, path);
    const auto fetch = [&](const LocalFiles::Append& append) {
        bool good = false;
        std::string refusal;
        const http::ClientResponse response = client.stream(
            request,
            [&](std::string_view piece) {
                if (good) {
                    append(piece);
                } else {
                    refusal += piece;
                }
                return refusal.size() < 64U << 10U;
            },
            [&](const http::ClientResponse& head) {
                // A directory is answered with a list of its entries, as JSON.
                good = head.status == 200;
                return true;
            });
        if (!good) throw problemOf(response.status, refusal);
    };
    return files.save(save_to, lastName(path), fetch);
}

std::string Upstream::upload(http::HttpClient& client, const Json& arguments,
                             const LocalFiles& files) const {
    const std::string local = stringMember(arguments, "local_path").value_or("");
    if (member(arguments, "text") != nullptr || member(arguments, "base64") != nullptr) {
        throw Error(ErrorCode::InvalidArgument, "give one of text, base64 and local_path");
    }
    const auto [workspace, path] = placeOf(arguments);
    const std::uint64_t size =
        put(client, workspace, path, stringMember(arguments, "mode"), files, local);
    return "Wrote " + path + ", " + std::to_string(size) + " bytes, from the local file " + local +
           ".";
}

std::string Upstream::download(http::HttpClient& client, const Json& arguments,
                               const LocalFiles& files) const {
    const auto [workspace, path] = placeOf(arguments);
    const auto [saved, size] =
        get(client, workspace, path, files, stringMember(arguments, "save_to").value_or(""));
    return "Saved " + path + ", " + std::to_string(size) + " bytes, as the local file " + saved +
           " in " + files.root() + ".";
}

}  // namespace hearth::mcp
