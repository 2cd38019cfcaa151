#include "api/cli/BenchDocker.h"

#include "api/cli/BenchServer.h"
#include "api/cli/Tar.h"
#include "base/Error.h"
#include "base/Ids.h"
#include "pool/runtime/docker/ContainerConfig.h"

namespace hearth::cli {
namespace {
constexpr const char* kDirectory = "/tmp";
}

BenchDocker::BenchDocker(const std::string& url, const std::string& image,
                         const std::string& rootfs, const std::string& sandbox)
    : engine_(url), version_(engine_.version()) {
    if (!sandbox.empty()) {
        shared_ = engine_.findContainer(std::string(pool::docker::kSandboxLabel) + "=" + sandbox);
    }
    const bool own = !image.empty() || !rootfs.empty();
    if (!own && shared_.empty()) {
        throw Error(ErrorCode::InvalidArgument,
                    "this Docker Engine does not have the workspace's container")
            .hint(
                "give --docker-image or --docker-rootfs: for a fair comparison the root file "
                "system of the pool's image");
    }
    try {
        if (own) startOwn(image, rootfs);
        has_python_ = engine_.exec(commands(), {"python3", "-c", "print(1)"}).out == "1\n";
    } catch (const Error&) {
        removeOwn();
        throw;
    }
}

BenchDocker::~BenchDocker() {
    try {
        removeOwn();
    } catch (const std::exception&) {
        container_.clear();  // the Engine is gone; the label dev.hearth.bench names what it kept
    }
}

void BenchDocker::startOwn(const std::string& image, const std::string& rootfs) {
    std::string from = image;
    if (from.empty()) {
        from = "hearth-bench:" + newId("").substr(0, 12);
        engine_.importImage(rootfs, from);
        imported_ = from;
    }
    container_ = engine_.startContainer(from);
}

void BenchDocker::removeOwn() {
    if (!container_.empty()) engine_.removeContainer(container_);
    if (!imported_.empty()) engine_.removeImage(imported_);
}

void BenchDocker::exec(const Record& record, const std::string& series,
                       const std::vector<std::string>& argv, const std::string& expected) {
    DockerEngine::ExecResult result;
    record(Side::Docker, series, timed([&] { result = engine_.exec(commands(), argv); }));
    if (result.exit_code != 0 || result.out != expected) {
        throw Error(ErrorCode::Internal, "docker exec gave status " +
                                             std::to_string(result.exit_code) + ": " +
                                             (result.out + result.err).substr(0, 500));
    }
}

void BenchDocker::files(const Record& record) {
    for (const BenchFile& file : benchFiles()) {
        record(Side::Docker, "write " + file.series, timed([&] {
                   engine_.putArchive(container_, kDirectory, tarOf(file.name, file.bytes));
               }));
        std::string back;
        record(Side::Docker, "read " + file.series, timed([&] {
                   back = firstFileOfTar(
                       engine_.getArchive(container_, kDirectory + ("/" + file.name)));
               }));
        if (back != file.bytes) {
            throw Error(ErrorCode::Internal, "docker gave another file back than was put");
        }
    }
}

std::vector<BenchOperation> BenchDocker::operations(const std::set<std::string>& names) {
    std::vector<BenchOperation> all;
    if (names.contains("shell")) {
        all.push_back({{}, [this](const Record& record) {
                           exec(record, "shell", {"sh", "-c", "echo hi"}, "hi\n");
                       }});
    }
    if (names.contains("python") && has_python_) {
        all.push_back({{}, [this](const Record& record) {
                           exec(record, "python", {"python3", "-c", "print(1)"}, "1\n");
                       }});
    }
    if (names.contains("context") && has_python_) {  // Docker keeps none: what it has is an exec
        all.push_back({{}, [this](const Record& record) {
                           exec(record, "context", {"python3", "-c", "print(1)"}, "1\n");
                       }});
    }
    if (names.contains("file") && hasFiles()) {
        all.push_back({{}, [this](const Record& r) { files(r); }});
    }
    return all;
}

}  // namespace hearth::cli
