#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tests/bench/program/BenchOperation.h"
#include "tests/bench/program/DockerEngine.h"

namespace hearth::cli {

/// Docker's side of the benchmark: a container in which commands are executed through the Engine
/// API. It is the measured workspace's own container if this Engine has it, otherwise one that
/// sleeps. The destructor removes everything that was made here: the container and an imported
/// image. Not thread-safe.
class BenchDocker {
public:
    /// The bench makes its own container of `image`, which the Engine has, or of the tree in
    /// `rootfs`, imported first. With neither it makes none: Error(InvalidArgument) if the Engine
    /// does not have the container of `sandbox`. Files are measured only in the bench's own
    /// container, because `docker cp` cannot write into a confined one.
    BenchDocker(const std::string& url, const std::string& image, const std::string& rootfs,
                const std::string& sandbox);
    ~BenchDocker();
    BenchDocker(const BenchDocker&) = delete;
    BenchDocker& operator=(const BenchDocker&) = delete;

    /// Returns the operations of these names (BenchPlan::names). They refer to this object.
    /// Hearth's claim is `create` and `start` here, `close` is `rm`, and a one shot is `docker run
    /// --rm`: create, start, wait, logs, rm. A fresh interpreter, a cold one and a context are one
    /// command here, whose time is in all three rows; so are both kinds of shell.
    std::vector<BenchOperation> operations(const std::set<std::string>& names);
    const std::string& version() const { return version_; }
    bool hasPython() const { return has_python_; }
    bool hasNumpy() const { return has_numpy_; }
    /// True if commands run in the workspace's own container.
    bool sameContainer() const { return !shared_.empty(); }
    /// True if the bench has a container and an image of its own: for files, and to run others.
    bool hasOwn() const { return !container_.empty(); }
    /// Returns the memory charged to the bench's own container; nullopt without one.
    std::optional<std::uint64_t> memoryBytes();

private:
    void startOwn(const std::string& image, const std::string& rootfs);
    void removeOwn();
    const std::string& commands() const { return shared_.empty() ? container_ : shared_; }
    /// Records the time of one command in each of the series.
    void exec(const Record& record, const std::vector<std::string>& series,
              const std::vector<std::string>& argv, const std::string& expected);
    void run(const Record& record);
    void files(const Record& record);

    DockerEngine engine_;
    std::string version_;
    std::string imported_;
    std::string image_;      ///< of the bench's own container
    std::string container_;  ///< the bench's own
    std::string shared_;     ///< the workspace's
    std::string running_;    ///< made by run() and not yet removed
    bool has_python_ = false;
    bool has_numpy_ = false;
};

}  // namespace hearth::cli
