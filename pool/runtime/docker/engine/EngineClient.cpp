#include "pool/runtime/docker/engine/EngineClient.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string_view>

#include "base/Error.h"
#include "base/Version.h"

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

http::ClientRequest clientRequest(const EngineRequest& request, TimePoint until) {
    http::ClientRequest made;
    made.method = request.method;
    made.target = request.target;
    made.body = request.body;
    made.source = request.archive;
    made.until = until;
    made.stop = request.stop;
    if (request.archive || !request.body.empty()) {
        made.headers.emplace_back("Content-Type",
                                  request.archive ? "application/x-tar" : "application/json");
    }
    return made;
}

/// Converts a failure of the HTTP client to an exception of this class.
[[noreturn]] void throwFailure(const EngineAddress& address, const http::ExchangeError& e) {
    const std::string name = address.text();
    const auto unavailable = [&](const std::string& why) {
        return Error(ErrorCode::Unavailable, "the Docker Engine at " + name + " " + why)
            .hint("check that dockerd runs and that DOCKER_HOST names it");
    };
    switch (e.kind()) {
        case http::ExchangeError::Kind::Connect:
            if (e.error() == EACCES || e.error() == EPERM) {
                throw Error(ErrorCode::Unavailable, "the socket " + name + " may not be opened")
                    .hint("start hearth as root, or as a user of the group that owns the socket");
            }
            throw unavailable(e.error() == ENOENT || e.error() == ECONNREFUSED ? "does not run"
                                                                               : e.reason());
        case http::ExchangeError::Kind::Distrust:
        case http::ExchangeError::Kind::Lost:
            throw unavailable(e.reason());
        case http::ExchangeError::Kind::Late:
            throw Error(ErrorCode::Deadline, "the Docker Engine at " + name + " does not answer")
                .hint("see what dockerd does; restart it if it hangs");
        case http::ExchangeError::Kind::Stopped:
            throw Error(e);
        default:
            throw std::runtime_error("the Docker Engine's answer is not understood: " + e.reason());
    }
}

}  // namespace

int negotiateApi(const std::string& told) {
    int major = 0;
    int minor = 0;
    if (std::sscanf(told.c_str(), "%d.%d", &major, &minor) != 2) {
        throw std::runtime_error("the answer is not from a Docker Engine: it names no API version");
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
    if (has(message, "could not select device driver")) {
        throw Error(ErrorCode::Unsupported, "the Docker Engine has no driver for NVIDIA's GPUs")
            .hint(
                "install the package nvidia-container-toolkit on its machine, run "
                "`nvidia-ctk runtime configure --runtime=docker` there, restart dockerd");
    }
    if (has(message, "nvidia-container-cli") || has(message, "nvidia-container-runtime")) {
        throw Error(ErrorCode::Unsupported,
                    "NVIDIA's toolkit on the Docker Engine's machine "
                    "refuses the GPU: " +
                        message)
            .hint("see `nvidia-smi -L` there: the GPU must be listed by this uuid");
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
    if (!address_.tls) return;
    const std::string folder = address_.certificates + "/";
    http::TlsContext::Files files;
    if (address_.verify) files.authority = folder + "ca.pem";
    if (address_.verify || ::access((folder + "cert.pem").c_str(), F_OK) == 0) {
        files.certificate = folder + "cert.pem";
        files.key = folder + "key.pem";
    }
    try {
        tls_.emplace(files);
    } catch (const Error& e) {
        throw Error(e.code(), std::string("TLS to Docker: ") + e.what())
            .hint(
                "DOCKER_CERT_PATH must hold ca.pem, cert.pem and key.pem, readable for the "
                "server");
    }
}

template <typename Call>
auto EngineClient::ask(Call call) {
    const http::Endpoint endpoint{address_.text(), address_.socket, address_.host, address_.port,
                                  tls_ ? &*tls_ : nullptr};
    http::ClientOptions options;
    options.connect_timeout = options.timeout = std::chrono::milliseconds(0);
    options.headers = {{"User-Agent", std::string("hearth/") + kHearthVersion}};
    options.max_body = kMaxBody;
    try {
        http::HttpClient client(endpoint, std::move(options));
        return call(client);
    } catch (const http::ExchangeError& e) {
        if (e.code() == ErrorCode::Deadline) hung_ = true;
        if (e.code() == ErrorCode::Unavailable) api_ = 0;  // another Engine may answer next
        throwFailure(address_, e);
    }
}

EngineResponse EngineClient::send(const EngineRequest& request, TimePoint until) {
    const http::ClientResponse response = ask([&](http::HttpClient& client) {
        http::ClientRequest whole = clientRequest(request, until);
        whole.headers.emplace_back("Connection", "close");
        return client.request(whole);
    });
    return {response.status, response.header("Api-Version").value_or(""), response.body};
}

EngineClient::Attachment EngineClient::attach(const std::string& target, const Json& body,
                                              TimePoint until) {
    const EngineRequest request{
        .method = "POST", .target = prefix(until) + target, .body = dumpJson(body)};
    http::HttpClient::Upgraded made = ask([&](http::HttpClient& client) {
        http::ClientRequest whole = clientRequest(request, until);
        whole.headers.insert(whole.headers.end(), {{"Connection", "Upgrade"}, {"Upgrade", "tcp"}});
        return client.upgrade(whole);
    });
    if (!made.connection) throwRefusal(request, {made.response.status, "", made.response.body});
    return {std::move(*made.connection), std::move(made.early)};
}

std::size_t EngineClient::read(http::ClientConnection& stream, char* out, std::size_t size,
                               TimePoint until) const {
    try {
        return stream.read(out, size, {.until = until});
    } catch (const http::ExchangeError& e) {
        throwFailure(address_, e);
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
    const MutexLock lock(mutex_);
    const auto left = until - SystemClock().now();
    if (!freed_.waitFor(mutex_, left, [this]() HEARTH_REQUIRES(mutex_) { return free_ > 0; })) {
        throw Error(ErrorCode::Deadline, "the Docker Engine is busy with other sandboxes")
            .hint("see what dockerd does; restart it if it hangs");
    }
    --free_;
    return Place(*this);
}

void Gate::leave() {
    {
        const MutexLock lock(mutex_);
        ++free_;
    }
    freed_.notifyOne();
}

}  // namespace hearth::pool::docker
