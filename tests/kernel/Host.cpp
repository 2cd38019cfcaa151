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
#include "pool/sys/LoopDevice.h"
#include "pool/sys/Process.h"

namespace hearth::kernel_test {
namespace {

namespace fs = std::filesystem;
using pool::SandboxId;

constexpr auto kSettle = std::chrono::seconds(3);

std::string environment(const char* name) {
    const char* value = std::getenv(name);
    return value == nullptr ? std::string() : value;
}

std::string missing() {
    if (::geteuid() != 0) return "needs root";
    if (sys::run({{"runc", "--version"}, -1, ""}) != 0) return "needs runc (apt-get install runc)";
    const std::string images = environment("HEARTH_TEST_IMAGES");
    if (images.empty() || !fs::exists(images + "/shell/index.json")) {
        return "needs HEARTH_TEST_IMAGES, a folder with the image \"shell\"";
    }
    return {};
}

std::string makeRoot() {
    char path[] = "/tmp/hearth-kernel-XXXXXX";
    if (::mkdtemp(path) == nullptr) throwErrno("mkdtemp");
    if (::chmod(path, 0711) != 0) throwErrno("chmod", path);  // root inside is a stranger here
    return path;
}

}  // namespace

bool canRun() {
    const std::string why = missing();
    if (why.empty()) return true;
    if (environment("HEARTH_REQUIRE").find("kernel") != std::string::npos) {
        throw std::runtime_error("HEARTH_REQUIRE asks for the kernel tests: " + why);
    }
    std::cout << "SKIP: kernel test: " << why << std::endl;
    return false;
}

Host::Host(bool with_client)
    : root_(makeRoot()), instance_(openInstance(root_ + "/data")), names_(instance_) {
    fs::create_directory(instance_.data_dir + "/images");
    fs::copy(environment("HEARTH_TEST_IMAGES") + "/shell", instance_.data_dir + "/images/shell",
             fs::copy_options::recursive);
    fork();
    if (with_client) start();
}

void Host::fork() {
    pool::LauncherOptions options;
    options.instance = instance_;
    options.agent_path = HEARTH_AGENT;
    socket_ = pool::LauncherClient::forkLauncher(options);
}

void Host::start() {
    if (!socket_) fork();
    client_ = std::make_unique<pool::LauncherClient>(std::move(socket_), log_, nullptr);
    runtime_ = std::make_unique<pool::OciRuntime>(instance_, *client_);
    digest_ = runtime_->resolveImage("shell");
    const std::string probe = names_.rootfs() + "/" + digest_.substr(7) + "/bin/probe";
    fs::copy_file(HEARTH_PROBE, probe, fs::copy_options::overwrite_existing);
}

void Host::stop() {
    runtime_.reset();
    client_.reset();
    socket_.reset();
}

pid_t Host::launcherPid() {
    return client_->pid();
}

void Host::killLauncher() {
    ::kill(launcherPid(), SIGKILL);
    stop();
}

Host::~Host() {
    try {
        if (!client_) start();
        runtime_->sweep({});
        for (const pool::SandboxInfo& left : runtime_->list()) runtime_->destroy(left.id);
        stop();
        for (const std::string& left : leftovers()) std::cout << "left behind: " << left << "\n";
        sys::removeTree(instance_.run_dir);
        sys::removeTree(root_);
    } catch (const std::exception& e) {
        std::cout << "clearing up " << root_ << " failed: " << e.what() << std::endl;
    }
}

pool::SandboxSpec Host::spec() const {
    pool::SandboxSpec spec;
    spec.image = "shell";
    spec.image_digest = digest_;
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
    runtime_->create(id, spec());
    return id;
}

pid_t Host::initOf(const SandboxId& id) const {
    const auto state = sys::readFile(names_.runtimeState(id) + "/state.json");
    if (!state) throw std::runtime_error("no state of " + id);
    return parseJson(*state).at("init_process_pid").get<pid_t>();
}

std::vector<std::string> Host::leftovers() const {
    const auto end = std::chrono::steady_clock::now() + kSettle;
    for (;;) {
        std::vector<std::string> found = leftoversNow();
        if (found.empty() || std::chrono::steady_clock::now() >= end) return found;
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
}

std::vector<std::string> Host::leftoversNow() const {
    std::vector<std::string> found;
    for (const std::string& name : sys::Cgroups::detect().children(names_.cgroupParent())) {
        found.push_back("cgroup " + name);
    }
    for (const std::string& directory : {names_.sandboxes(), names_.runtimeRoot(), names_.sockets(),
                                         names_.storage(), names_.mountPoint()}) {
        for (const std::string& name : sys::listDirectory(directory)) {
            found.push_back(directory + "/" + name);
        }
    }
    for (const std::string& name : sys::listDirectory(names_.uidLeases())) {
        std::error_code gone;
        const std::string holder = fs::read_symlink(names_.uidLeases() + "/" + name, gone).string();
        if (holder.starts_with(instance_.name + "/"))
            found.push_back("lease " + name + " " + holder);
    }
    for (const sys::LoopInUse& loop : sys::loopsInUse()) {
        if (loop.backing.starts_with(root_)) found.push_back("loop " + loop.device);
    }
    std::istringstream mounts(sys::readFile("/proc/self/mountinfo").value_or(""));
    for (std::string line; std::getline(mounts, line);) {
        if (line.find(root_) != std::string::npos ||
            line.find(instance_.name) != std::string::npos) {
            found.push_back("mount " + line);
        }
    }
    for (const std::string& pid : sys::listDirectory("/proc")) {
        if (pid.find_first_not_of("0123456789") != std::string::npos) continue;
        // A zombie is nothing but a line for its parent to read, here the host's first process.
        if (!sys::processStartTime(std::stoi(pid))) continue;
        const auto groups = sys::readFile("/proc/" + pid + "/cgroup");
        if (groups && groups->find(names_.cgroupParent()) != std::string::npos) {
            found.push_back("process " + pid);
        }
    }
    return found;
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
