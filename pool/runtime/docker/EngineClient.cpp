#include "pool/runtime/docker/EngineClient.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string_view>

#include "base/Error.h"

namespace hearth::pool::docker {
namespace {

constexpr std::size_t kMaxBody = 16U << 20U;
constexpr std::size_t kMaxMessage = 500;
constexpr auto kSignOfLife = std::chrono::seconds(2);

std::string messageOf(const std::string& body) {
    const Json answer = Json::parse(body, nullptr, false);
    if (answer.is_object()) {
        const auto message = answer.find("message");
        if (message != answer.end() && message->is_string()) {
            return message->get<std::string>().substr(0, kMaxMessage);
        }
    }
    return toUtf8(body.substr(0, kMaxMessage));
}

bool has(const std::string& text, std::string_view part) {
    return text.find(part) != std::string::npos;
}

}  // namespace

int negotiateApi(const std::string& told) {
    int major = 0;
    int minor = 0;
    if (std::sscanf(told.c_str(), "%d.%d", &major, &minor) != 2) {
        throw std::runtime_error("what answers is no Docker Engine: it names no API version");
    }
    if (major != 1 || minor < kOldestApi) {
        throw Error(ErrorCode::Unsupported, "the Docker Engine speaks API " + told.substr(0, 16) +
                                                ", and 1." + std::to_string(kOldestApi) +
                                                " is needed")
            .hint("install Docker 20.10 or later");
    }
    return std::min(minor, kNewestApi);
}

void throwRefusal(const EngineRequest& request, const EngineResponse& response) {
    const std::string message = messageOf(response.body);
    const std::string text = "docker: " + request.method + " " +
                             request.target.substr(0, request.target.find('?')) + ": " +
                             std::to_string(response.status) + " " + message;
    if (has(message, "no space left on device")) {
        throw Error(ErrorCode::DiskFull, "the Docker host's disk is full")
            .hint("docker system df shows what takes the space");
    }
    if (has(message, "bind source path does not exist")) {
        throw Error(ErrorCode::Unsupported, "the Docker Engine does not see this machine's files")
            .hint("--docker-agent copy brings the agent into a volume there");
    }
    if (has(message, "client version") && has(message, "too old")) {
        throw Error(ErrorCode::Unsupported, "the Docker Engine is too new for this Hearth")
            .hint("update Hearth: " + message);
    }
    switch (response.status) {
        case 404:
            throw Error(ErrorCode::NotFound, has(message, "No such image")
                                                 ? "the Docker Engine has no such image"
                                                 : "the Docker Engine has no such object");
        case 409:
            throw Error(ErrorCode::Conflict, has(message, "is already in use by container")
                                                 ? "the sandbox exists already"
                                                 : "the Docker Engine is busy with this object");
        case 503:
            throw Error(ErrorCode::Unavailable, "the Docker Engine is not ready");
        default:
            throw std::runtime_error(text);
    }
}

EngineClient::EngineClient(EngineAddress address) : address_(std::move(address)) {
    if (address_.tls) tls_.emplace(address_);
}

EngineResponse EngineClient::send(const EngineRequest& request, TimePoint until) {
    try {
        EngineStream stream(address_, tls_ ? &*tls_ : nullptr, until);
        return exchange(stream, request, kMaxBody, until);
    } catch (const Error& e) {
        noteFailure(e);
        throw;
    }
}

void EngineClient::noteFailure(const Error& e) {
    if (e.code() == ErrorCode::Deadline) hung_ = true;
    if (e.code() == ErrorCode::Unavailable) api_ = 0;  // another one may come back
}

EngineClient::Attachment EngineClient::attach(const std::string& target, const Json& body,
                                              TimePoint until) {
    const EngineRequest request{
        .method = "POST", .target = prefix(until) + target, .body = dumpJson(body)};
    try {
        Attachment made{EngineStream(address_, tls_ ? &*tls_ : nullptr, until), {}};
        const EngineResponse response = upgrade(made.stream, request, kMaxBody, until, made.early);
        if (response.status >= 400) throwRefusal(request, response);
        return made;
    } catch (const Error& e) {
        noteFailure(e);
        throw;
    }
}

void EngineClient::ping(TimePoint until) {
    const EngineRequest request{.method = "GET", .target = "/_ping", .body = {}};
    const EngineResponse response = send(request, until);
    if (response.status != 200) throwRefusal(request, response);
    api_ = negotiateApi(response.api_version);
    hung_ = false;
}

std::string EngineClient::prefix(TimePoint until) {
    if (hung_) ping(std::min(until, SystemClock().now() + kSignOfLife));
    int api = api_;
    if (api == 0) {
        ping(until);
        api = api_;
    }
    return "/v1." + std::to_string(api);
}

EngineResponse EngineClient::call(EngineRequest request, TimePoint until) {
    request.target = prefix(until) + request.target;
    EngineResponse response = send(request, until);
    if (response.status >= 400) throwRefusal(request, response);
    return response;
}

Json EngineClient::get(const std::string& target, TimePoint until) {
    const EngineResponse response = call({.method = "GET", .target = target, .body = {}}, until);
    return parseJson(response.body, {.bytes = kMaxBody});
}

std::optional<Json> EngineClient::find(const std::string& target, TimePoint until) {
    try {
        return get(target, until);
    } catch (const Error& e) {
        if (e.code() == ErrorCode::NotFound) return std::nullopt;
        throw;
    }
}

Json EngineClient::post(const std::string& target, const Json& body, TimePoint until) {
    const EngineResponse response = call(
        {.method = "POST", .target = target, .body = body.is_null() ? "" : dumpJson(body)}, until);
    if (response.body.empty()) return nullptr;
    return parseJson(response.body, {.bytes = kMaxBody});
}

Gate::Place Gate::enter(TimePoint until) {
    std::unique_lock lock(mutex_);
    const auto left = until - SystemClock().now();
    if (!freed_.wait_for(lock, left, [this] { return free_ > 0; })) {
        throw Error(ErrorCode::Deadline, "the Docker Engine is busy with other sandboxes")
            .hint("see what dockerd does; restart it if it hangs");
    }
    --free_;
    return Place(*this);
}

void Gate::leave() {
    {
        const std::lock_guard lock(mutex_);
        ++free_;
    }
    freed_.notify_one();
}

}  // namespace hearth::pool::docker
