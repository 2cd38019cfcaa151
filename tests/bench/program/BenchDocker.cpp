#include "tests/bench/program/BenchDocker.h"

#include "base/Error.h"
#include "base/Ids.h"
#include "base/tar/TarWriter.h"
#include "pool/runtime/docker/ContainerConfig.h"
#include "pool/tar/Tar.h"
#include "tests/bench/program/BenchCalls.h"
#include "tests/bench/program/BenchServer.h"

namespace hearth::cli {
namespace {

constexpr const char* kDirectory = "/tmp";

std::vector<std::string> python(const char* code) {
    return {"python3", "-c", code};
}

std::vector<std::string> shell() {
    return {"sh", "-c", "echo hi"};
}

void verify(const std::string& what, const DockerEngine::ExecResult& result,
            const std::string& expected) {
    if (result.exit_code == 0 && result.out == expected) return;
    throw Error(ErrorCode::Internal, what + " gave status " + std::to_string(result.exit_code) +
                                         ": " + (result.out + result.err).substr(0, 500));
}

std::string archiveOf(const BenchFile& file) {
    TarWriter tar;
    tar.add({.name = file.name, .mode = 0644}, file.bytes);
    tar.end();
    std::string archive(file.bytes.size() + 8 * tar::TarReader::kBlock, '\0');
    archive.resize(tar.read(archive.data(), archive.size()));
    return archive;
}

/// The bytes of the single file in an archive.
struct OneFile final : tar::TarSink {
    bool member(const tar::TarMember&) override { return true; }
    bool content(std::string_view some) override {
        bytes += some;
        return true;
    }
    bool memberEnd() override { return true; }

    std::string bytes;
};

}  // namespace

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
        has_python_ = engine_.exec(commands(), python(kPythonCode)).out == kPythonPrints;
        has_numpy_ =
            has_python_ && engine_.exec(commands(), python(kNumpyCode)).out == kNumpyPrints;
    } catch (const std::exception&) {
        removeOwn();
        throw;
    }
}

BenchDocker::~BenchDocker() {
    try {
        removeOwn();
    } catch (const std::exception&) {
        container_.clear();  // the Engine is gone; its leftovers have the label dev.hearth.bench
    }
}

void BenchDocker::startOwn(const std::string& image, const std::string& rootfs) {
    image_ = image;
    if (image_.empty()) {
        const std::string name = "hearth-bench:" + newId("").substr(0, 12);
        engine_.importImage(rootfs, name);
        imported_ = image_ = name;
    }
    container_ = engine_.createContainer(image_, {"sh", "-c", "while :; do sleep 3600; done"});
    engine_.startContainer(container_);
}

void BenchDocker::removeOwn() {
    for (const std::string* id : {&running_, &container_}) {
        if (!id->empty()) engine_.removeContainer(*id);
    }
    if (!imported_.empty()) engine_.removeImage(imported_);
}

std::optional<std::uint64_t> BenchDocker::memoryBytes() {
    if (container_.empty()) return std::nullopt;
    const std::uint64_t bytes = engine_.memoryBytes(container_);
    return bytes > 0 ? std::optional(bytes) : std::nullopt;
}

void BenchDocker::exec(const Record& record, const std::vector<std::string>& series,
                       const std::vector<std::string>& argv, const std::string& expected) {
    DockerEngine::ExecResult result;
    const double milliseconds = timed([&] { result = engine_.exec(commands(), argv); });
    verify("docker exec", result, expected);
    for (const std::string& name : series) record(Side::Docker, name, milliseconds);
}

void BenchDocker::run(const Record& record) {
    DockerEngine::ExecResult result;
    const double claim = timed([&] {
        running_ = engine_.createContainer(image_, has_python_ ? python(kPythonCode) : shell());
        engine_.startContainer(running_);
    });
    const double work = timed([&] {
        const int status = engine_.waitContainer(running_);
        result = engine_.logs(running_);
        result.exit_code = status;
    });
    verify("docker run", result, has_python_ ? kPythonPrints : kShellPrints);
    const double close = timed([&] { engine_.removeContainer(running_); });
    running_.clear();
    record(Side::Docker, "claim", claim);
    record(Side::Docker, "close", close);
    record(Side::Docker, "one shot", claim + work + close);
}

void BenchDocker::files(const Record& record) {
    for (const BenchFile& file : benchFiles()) {
        record(Side::Docker, "write " + file.series,
               timed([&] { engine_.putArchive(container_, kDirectory, archiveOf(file)); }));
        OneFile back;
        record(Side::Docker, "read " + file.series, timed([&] {
                   tar::TarReader(back).feed(
                       engine_.getArchive(container_, kDirectory + ("/" + file.name)));
               }));
        if (back.bytes != file.bytes) {
            throw Error(ErrorCode::Internal, "docker gave another file back than was put");
        }
    }
}

std::vector<BenchOperation> BenchDocker::operations(const std::set<std::string>& names) {
    std::vector<BenchOperation> all;
    if (names.contains("noop")) {
        all.push_back({{}, [this](const Record& record) {
                           record(Side::Docker, "no-op", timed([&] { engine_.ping(); }));
                       }});
    }
    std::vector<std::string> shells;
    if (names.contains("shell")) shells.emplace_back("shell");
    if (names.contains("parked")) shells.emplace_back("shell parked");
    if (!shells.empty()) {
        all.push_back({{}, [this, shells](const Record& record) {
                           exec(record, shells, shell(), kShellPrints);
                       }});
    }
    std::vector<std::string> rows;
    if (names.contains("python")) rows.emplace_back("python");
    if (names.contains("context")) rows.emplace_back("context");
    if (names.contains("cold")) rows.emplace_back("python cold");
    if (!rows.empty() && has_python_) {
        all.push_back({{}, [this, rows](const Record& record) {
                           exec(record, rows, python(kPythonCode), kPythonPrints);
                       }});
    }
    if (names.contains("numpy") && has_numpy_) {
        all.push_back({{}, [this](const Record& record) {
                           exec(record, {"numpy"}, python(kNumpyCode), kNumpyPrints);
                       }});
    }
    if (names.contains("file") && hasOwn()) {
        all.push_back({{}, [this](const Record& r) { files(r); }});
    }
    if ((names.contains("claim") || names.contains("oneshot")) && hasOwn()) {
        all.push_back({{}, [this](const Record& r) { run(r); }});
    }
    return all;
}

}  // namespace hearth::cli
