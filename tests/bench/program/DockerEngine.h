#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "api/command/Options.h"
#include "base/Json.h"
#include "base/http/client/HttpClient.h"

namespace hearth::cli {

/// DOCKER_HOST as a URL of http::HttpClient; "unix:///var/run/docker.sock" where it is not set.
std::string dockerUrl(const Environment& environment);

/// The few calls of the Docker Engine API that `bench --against docker` measures. Throws Error for
/// whatever the Engine refuses. Not thread-safe.
class DockerEngine {
public:
    struct ExecResult {
        std::string out;
        std::string err;
        int exit_code = 0;
    };

    explicit DockerEngine(const std::string& url);

    /// A request that asks for nothing.
    void ping();
    /// "28.2.2 (API 1.50)".
    std::string version();
    /// Makes the image `reference` ("name:tag") of a directory's tree, streamed through tar.
    void importImage(const std::string& directory, const std::string& reference);
    void removeImage(const std::string& reference);
    /// A container without network that is to run `argv`. Gives its id.
    std::string createContainer(const std::string& image, const std::vector<std::string>& argv);
    void startContainer(const std::string& id);
    /// Waits for its end and gives its exit code.
    int waitContainer(const std::string& id);
    /// What it has printed.
    ExecResult logs(const std::string& id);
    /// A running one is killed first.
    void removeContainer(const std::string& id);
    /// What the kernel charges its cgroup with; 0 where the Engine does not say.
    std::uint64_t memoryBytes(const std::string& id);
    /// The id of a running container with that label ("key=value"); empty if there is none.
    std::string findContainer(const std::string& label);
    /// As `docker exec` does: create, start, read the stream to its end, inspect.
    ExecResult exec(const std::string& id, const std::vector<std::string>& argv);
    /// As `docker cp` does.
    void putArchive(const std::string& id, const std::string& directory, std::string archive);
    std::string getArchive(const std::string& id, const std::string& path);

private:
    Json call(const std::string& method, const std::string& target, const Json& body = nullptr);
    std::string prefix();

    http::HttpClient kept_;
    http::HttpClient streams_;  ///< the Engine takes the connection of a stream over and closes it
    std::string prefix_;
};

}  // namespace hearth::cli
