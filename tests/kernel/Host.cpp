#include "tests/kernel/Host.h"

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "base/Error.h"
#include "base/Ids.h"
#include "pool/sys/Files.h"
#include "pool/sys/Process.h"

namespace hearth::kernel_test {
namespace {

namespace fs = std::filesystem;
using pool::SandboxId;

constexpr auto kSettle = std::chrono::seconds(3);

std::string wanted() {
    const std::string name = environment("HEARTH_TEST_RUNTIME");
    return name.empty() ? "oci" : name;
}

std::string missing() {
    if (::geteuid() != 0) return "needs root";
    if (sys::run({{"runc", "--version"}, -1, ""}) != 0) return "needs runc (apt-get install runc)";
    if (kind() == Kind::Docker && environment("DOCKER_HOST").empty()) {
        return "needs DOCKER_HOST, a daemon for tests";
    }
    const std::string images = environment("HEARTH_TEST_IMAGES");
    if (images.empty() || !fs::exists(images + "/shell/index.json")) {
        return "needs HEARTH_TEST_IMAGES, a folder with the image \"shell\"";
    }
    return {};
}

std::string makeRoot() {
    char path[] = "/tmp/hearth-kernel-XXXXXX";
    if (::mkdtemp(path) == nullptr) throwErrno("mkdtemp");
    if (::chmod(path, 0711) != 0) throwErrno("chmod", path);  // a sandbox's root is a stranger here
    return path;
}

}  // namespace

std::string environment(const char* name) {
    const char* value = std::getenv(name);
    return value == nullptr ? std::string() : value;
}

Kind kind() {
    return wanted() == "oci" ? Kind::Oci : Kind::Docker;
}

bool canRun() {
    const std::string why = missing();
    if (why.empty()) return true;
    if (environment("HEARTH_REQUIRE").find("kernel") != std::string::npos) {
        throw std::runtime_error("HEARTH_REQUIRE asks for the kernel tests: " + why);
    }
    std::cout << "SKIP: kernel test: " << why << std::endl;
    return false;
}

Host::Host(bool started)
    : root_(makeRoot()), instance_(openInstance(root_ + "/data")), names_(instance_) {
    fs::create_directory(instance_.data_dir + "/images");
    fs::copy(environment("HEARTH_TEST_IMAGES") + "/shell", instance_.data_dir + "/images/shell",
             fs::copy_options::recursive);
    driver_ = kind() == Kind::Oci ? ociDriver(instance_)
                                  : dockerDriver(instance_, wanted() == "docker-remote");
    if (started) start();
}

void Host::stop() {
    driver_->stop();
    started_ = false;
}

void Host::kill() {
    driver_->kill();
    started_ = false;
}

void Host::start() {
    driver_->start();
    started_ = true;
}

Host::~Host() {
    try {
        if (!started_) start();
        runtime().sweep({});
        for (const pool::SandboxInfo& left : runtime().list()) runtime().destroy(left.id);
        stop();
        for (const std::string& left : leftovers()) std::cout << "left behind: " << left << "\n";
        sys::removeTree(instance_.run_dir);
        sys::removeTree(root_);
    } catch (const std::exception& e) {
        std::cout << "clearing up " << root_ << " failed: " << e.what() << std::endl;
    }
}

pool::SandboxSpec Host::spec() const {
    pool::SandboxSpec spec = driver_->image();
    spec.limits.milli_cpu = 500;
    spec.limits.memory_bytes = 128ULL << 20U;
    spec.limits.pids = 64;
    spec.limits.workspace_bytes = 32ULL << 20U;
    spec.limits.tmp_bytes = 8ULL << 20U;
    spec.labels = {{"pool", "test"}, {"generation", "7"}};
    return spec;
}

SandboxId Host::create() {
    SandboxId id = newId("sb_");
    runtime().create(id, spec());
    return id;
}

std::string Host::cgroupOf(const SandboxId& id) const {
    std::istringstream lines(
        sys::readFile("/proc/" + std::to_string(initOf(id)) + "/cgroup").value_or(""));
    std::string unified;
    for (std::string line; std::getline(lines, line);) {
        if (line.find(":memory:") != std::string::npos) return line.substr(line.rfind(':') + 1);
        if (line.starts_with("0::")) unified = line.substr(3);
    }
    return unified;
}

std::vector<std::string> Host::leftovers() const {
    const auto end = std::chrono::steady_clock::now() + kSettle;
    for (;;) {
        std::vector<std::string> found = driver_->leftovers();
        if (found.empty() || std::chrono::steady_clock::now() >= end) return found;
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
}

std::map<std::string, std::string> pairs(const std::string& text) {
    std::map<std::string, std::string> found;
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) {
        const std::size_t at = line.find('=');
        if (at != std::string::npos) found[line.substr(0, at)] = line.substr(at + 1);
    }
    return found;
}

}  // namespace hearth::kernel_test
