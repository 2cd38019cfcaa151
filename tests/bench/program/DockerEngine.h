#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "api/command/Options.h"
#include "base/Json.h"
#include "base/http/client/HttpClient.h"

namespace hearth::cli {

/// Returns DOCKER_HOST as a URL of http::HttpClient; by default "unix:///var/run/docker.sock".
std::string dockerUrl(const Environment& environment);

/// The calls of the Docker Engine API that `bench --against docker` measures. They throw Error if
/// the Engine refuses. Not thread-safe.
class DockerEngine {
public:
    struct ExecResult {
        std::string out;
        std::string err;
        int exit_code = 0;
    };

    explicit DockerEngine(const std::string& url);

    /// Sends a request that does nothing.
    void ping();
    /// Returns "28.2.2 (API 1.50)".
    std::string version();
    /// Makes the image `reference` ("name:tag") from the tree of a directory, streamed through tar.
    void importImage(const std::string& directory, const std::string& reference);
    void removeImage(const std::string& reference);
    /// Creates a container without network that will run `argv`. Returns its id.
    std::string createContainer(const std::string& image, const std::vector<std::string>& argv);
    void startContainer(const std::string& id);
    /// Waits for the container's end. Returns its exit code.
    int waitContainer(const std::string& id);
    /// Returns the output of a container.
    ExecResult logs(const std::string& id);
    /// Removes a container. A running one is killed first.
    void removeContainer(const std::string& id);
    /// Returns the memory that the kernel charges to its cgroup; 0 if the Engine reports none.
    std::uint64_t memoryBytes(const std::string& id);
    /// Returns the id of a running container with this label ("key=value"); empty if there is none.
    std::string findContainer(const std::string& label);
    /// Acts like `docker exec`: create, start, read the stream to its end, inspect.
    ExecResult exec(const std::string& id, const std::vector<std::string>& argv);
    /// Acts like `docker cp`.
    void putArchive(const std::string& id, const std::string& directory, std::string archive);
    std::string getArchive(const std::string& id, const std::string& path);

private:
    Json call(const std::string& method, const std::string& target, const Json& body = nullptr);
    std::string prefix();

    http::HttpClient kept_;
    http::HttpClient streams_;  ///< the Engine takes over and closes the connection of a stream
    std::string prefix_;
};

}  // namespace hearth::cli
