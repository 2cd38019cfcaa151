#include "api/cli/BenchDocker.h"

#include "api/cli/BenchServer.h"
#include "api/cli/Tar.h"
#include "base/Error.h"
#include "base/Ids.h"

namespace hearth::cli {
namespace {
constexpr const char* kDirectory = "/tmp";
}

BenchDocker::BenchDocker(const std::string& url, const std::string& image,
                         const std::string& rootfs)
    : engine_(url), version_(engine_.version()) {
    std::string from = image;
    if (from.empty()) {
        from = "hearth-bench:" + newId("").substr(0, 12);
        engine_.importImage(rootfs, from);
        imported_ = from;
    }
    try {
        container_ = engine_.startContainer(from);
        has_python_ = engine_.exec(container_, {"python3", "-c", "print(1)"}).out == "1\n";
    } catch (const Error&) {
        if (!container_.empty()) engine_.removeContainer(container_);
        if (!imported_.empty()) engine_.removeImage(imported_);
        throw;
    }
}

BenchDocker::~BenchDocker() {
    try {
        engine_.removeContainer(container_);
        if (!imported_.empty()) engine_.removeImage(imported_);
    } catch (const std::exception&) {
        container_.clear();  // the Engine is gone; the label dev.hearth.bench names what it kept
    }
}

void BenchDocker::exec(const Record& record, const std::string& series,
                       const std::vector<std::string>& argv, const std::string& expected) {
    DockerEngine::ExecResult result;
    record(Side::Docker, series, timed([&] { result = engine_.exec(container_, argv); }));
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
    if (names.contains("file")) {
        all.push_back({{}, [this](const Record& r) { files(r); }});
    }
    return all;
}

}  // namespace hearth::cli
