#include "tests/bench/program/DockerEngine.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <nlohmann/json.hpp>

#include "base/Error.h"
#include "base/Fd.h"
#include "base/http/Url.h"

namespace hearth::cli {
namespace {

constexpr std::size_t kFrameHeader = 8;

http::ClientOptions slow() {
    http::ClientOptions options;
    options.timeout = std::chrono::minutes(5);  // an import unpacks a whole image
    return options;
}

Error refusal(const std::string& what, int status, const std::string& body) {
    std::string message = body;
    try {
        const Json answer = parseJson(body);
        if (answer.is_object()) message = answer.value("message", body);
    } catch (const Error&) {
        message = body;  // no JSON: shown as it came
    }
    return {ErrorCode::Internal,
            "docker: " + what + ": " + std::to_string(status) + " " + message.substr(0, 500)};
}

/// Splits output as the Engine frames it: one byte for the channel, three zero bytes, four bytes of
/// big-endian length, then the bytes.
DockerEngine::ExecResult unframed(const std::string& body) {
    DockerEngine::ExecResult result;
    for (std::size_t at = 0; at + kFrameHeader <= body.size();) {
        std::size_t length = 0;
        for (std::size_t i = 4; i < kFrameHeader; ++i) {
            length = length << 8U | static_cast<unsigned char>(body[at + i]);
        }
        std::string& channel = body[at] == 2 ? result.err : result.out;
        channel.append(body, at + kFrameHeader, length);
        at += kFrameHeader + length;
    }
    return result;
}

/// The process `tar -C directory -c .`, and the descriptor that its archive comes from.
class TarProcess {
public:
    explicit TarProcess(const std::string& directory) {
        std::array<int, 2> ends{};
        if (::pipe2(ends.data(), O_CLOEXEC) != 0) throwErrno("pipe2");
        reader_ = Fd(ends[0]);
        const Fd writer(ends[1]);
        posix_spawn_file_actions_t actions;
        ::posix_spawn_file_actions_init(&actions);
        ::posix_spawn_file_actions_adddup2(&actions, writer.get(), STDOUT_FILENO);
        std::array<std::string, 6> words = {"tar", "-C", directory, "--one-file-system", "-c", "."};
        std::array<char*, 7> argv{};
        for (std::size_t i = 0; i < words.size(); ++i) argv[i] = words[i].data();
        const int error = ::posix_spawnp(&child_, argv[0], &actions, nullptr, argv.data(), environ);
        ::posix_spawn_file_actions_destroy(&actions);
        if (error != 0) throwErrno(error, "posix_spawnp", "tar");
    }
    ~TarProcess() {
        reader_.reset();  // a tar that still writes ends by SIGPIPE
        if (child_ > 0) wait();
    }
    TarProcess(const TarProcess&) = delete;
    TarProcess& operator=(const TarProcess&) = delete;

    std::size_t read(char* out, std::size_t size) {
        while (true) {
            const ssize_t got = ::read(reader_.get(), out, size);
            if (got >= 0) return static_cast<std::size_t>(got);
            if (errno != EINTR) throwErrno("read", "tar");
        }
    }
    int wait() {
        int status = 0;
        while (::waitpid(child_, &status, 0) < 0 && errno == EINTR) {
        }
        child_ = -1;
        return status;
    }

private:
    Fd reader_;
    pid_t child_ = -1;
};

}  // namespace

std::string dockerUrl(const Environment& environment) {
    const std::string host = environment("DOCKER_HOST").value_or("");
    if (host.empty()) return "unix:///var/run/docker.sock";
    if (host.starts_with("tcp://")) return "http://" + host.substr(6);
    return host;
}

DockerEngine::DockerEngine(const std::string& url) : kept_(url, slow()), streams_(url, slow()) {}

/// Returns the newest version that the Engine knows: newer Engines refuse old fixed ones.
std::string DockerEngine::prefix() {
    if (prefix_.empty()) {
        const http::ClientResponse ping = kept_.get("/_ping");
        if (ping.status != 200) throw refusal("ping", ping.status, ping.body);
        prefix_ = "/v" + ping.header("Api-Version").value_or("1.24");
    }
    return prefix_;
}

Json DockerEngine::call(const std::string& method, const std::string& target, const Json& body) {
    http::ClientRequest request;
    request.method = method;
    request.target = prefix() + target;
    if (!body.is_null()) {
        request.headers.emplace_back("Content-Type", "application/json");
        request.body = dumpJson(body);
    }
    const http::ClientResponse response = kept_.request(request);
    if (response.status >= 400)
        throw refusal(method + " " + target, response.status, response.body);
    if (response.body.empty()) return nullptr;
    return parseJson(response.body);
}

void DockerEngine::ping() {
    kept_.get("/_ping");
}

std::string DockerEngine::version() {
    const Json answer = call("GET", "/version");
    return answer.value("Version", "?") + " (API " + prefix().substr(2) + ")";
}

void DockerEngine::importImage(const std::string& directory, const std::string& reference) {
    const std::size_t colon = reference.rfind(':');
    TarProcess tar(directory);
    http::ClientRequest request;
    request.method = "POST";
    request.target = prefix() +
                     "/images/create?fromSrc=-&repo=" + percentEncode(reference.substr(0, colon)) +
                     "&tag=" + percentEncode(reference.substr(colon + 1));
    request.headers.emplace_back("Content-Type", "application/x-tar");
    request.source = [&](char* out, std::size_t size) { return tar.read(out, size); };
    const http::ClientResponse response = streams_.request(request);
    // Failures after the start are reported in the stream of progress.
    if (response.status >= 400 || response.body.find("\"errorDetail\"") != std::string::npos) {
        throw refusal("import", response.status, response.body);
    }
    if (tar.wait() != 0) {
        throw Error(ErrorCode::Internal, "tar could not read all of " + directory);
    }
}

void DockerEngine::removeImage(const std::string& reference) {
    call("DELETE", "/images/" + percentEncode(reference) + "?force=1");
}

std::string DockerEngine::createContainer(const std::string& image,
                                          const std::vector<std::string>& argv) {
    const Json made =
        call("POST", "/containers/create",
             {{"Image", image},
              {"Entrypoint", {""}},  // replaces the image's own
              {"Cmd", argv},
              {"Labels", {{"dev.hearth.bench", "1"}}},
              {"HostConfig", {{"NetworkMode", "none"}, {"LogConfig", {{"Type", "json-file"}}}}}});
    return made.value("Id", "");
}

void DockerEngine::startContainer(const std::string& id) {
    call("POST", "/containers/" + id + "/start");
}

int DockerEngine::waitContainer(const std::string& id) {
    return call("POST", "/containers/" + id + "/wait").value("StatusCode", -1);
}

DockerEngine::ExecResult DockerEngine::logs(const std::string& id) {
    const http::ClientResponse answer =
        kept_.get(prefix() + "/containers/" + id + "/logs?stdout=1&stderr=1");
    if (answer.status >= 400) throw refusal("logs", answer.status, answer.body);
    return unframed(answer.body);
}

std::uint64_t DockerEngine::memoryBytes(const std::string& id) {
    const Json stats = call("GET", "/containers/" + id + "/stats?stream=false&one-shot=true");
    return stats.value("memory_stats", Json::object()).value("usage", std::uint64_t{0});
}

void DockerEngine::removeContainer(const std::string& id) {
    call("DELETE", "/containers/" + id + "?force=1&v=1");
}

std::string DockerEngine::findContainer(const std::string& label) {
    const std::string filters = dumpJson({{"label", Json::array({label})}});
    const Json found = call("GET", "/containers/json?filters=" + percentEncode(filters));
    if (!found.is_array() || found.empty()) return {};
    return found.front().value("Id", "");
}

DockerEngine::ExecResult DockerEngine::exec(const std::string& id,
                                            const std::vector<std::string>& argv) {
    const Json made = call("POST", "/containers/" + id + "/exec",
                           {{"AttachStdout", true}, {"AttachStderr", true}, {"Cmd", argv}});
    const std::string exec_id = made.value("Id", "");
    const http::ClientResponse stream =
        streams_.post(prefix() + "/exec/" + exec_id + "/start", R"({"Detach":false,"Tty":false})");
    if (stream.status >= 400) throw refusal("exec", stream.status, stream.body);
    ExecResult result = unframed(stream.body);
    const Json ended = call("GET", "/exec/" + exec_id + "/json");
    result.exit_code = ended.contains("ExitCode") && ended["ExitCode"].is_number()
                           ? ended["ExitCode"].get<int>()
                           : -1;
    return result;
}

void DockerEngine::putArchive(const std::string& id, const std::string& directory,
                              std::string archive) {
    http::ClientRequest request;
    request.method = "PUT";
    request.target = prefix() + "/containers/" + id + "/archive?path=" + percentEncode(directory);
    request.headers.emplace_back("Content-Type", "application/x-tar");
    request.body = std::move(archive);
    const http::ClientResponse response = kept_.request(request);
    if (response.status >= 400) throw refusal("put archive", response.status, response.body);
}

std::string DockerEngine::getArchive(const std::string& id, const std::string& path) {
    http::ClientResponse response =
        kept_.get(prefix() + "/containers/" + id + "/archive?path=" + percentEncode(path));
    if (response.status >= 400) throw refusal("get archive", response.status, response.body);
    return std::move(response.body);
}

}  // namespace hearth::cli
