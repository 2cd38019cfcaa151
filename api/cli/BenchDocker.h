#pragma once

#include <set>
#include <string>
#include <vector>

#include "api/cli/BenchOperation.h"
#include "api/cli/DockerEngine.h"

namespace hearth::cli {

/// Docker's side of the benchmark: a container that sleeps, into which commands are executed
/// through the Engine API. The destructor removes the container and an imported image. Not
/// thread-safe.
class BenchDocker {
public:
    /// Of an image the Engine has, or (`image` empty) of the tree in `rootfs`, imported first.
    BenchDocker(const std::string& url, const std::string& image, const std::string& rootfs);
    ~BenchDocker();
    BenchDocker(const BenchDocker&) = delete;
    BenchDocker& operator=(const BenchDocker&) = delete;

    std::vector<BenchOperation> operations(const std::set<std::string>& names);
    const std::string& version() const { return version_; }
    bool hasPython() const { return has_python_; }

private:
    void exec(const Record& record, const std::string& series, const std::vector<std::string>& argv,
              const std::string& expected);
    void files(const Record& record);

    DockerEngine engine_;
    std::string version_;
    std::string imported_;
    std::string container_;
    bool has_python_ = false;
};

}  // namespace hearth::cli
