#include <signal.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>

#include "base/Json.h"
#include "metrics/Log.h"
#include "pool/launcher/LauncherClient.h"
#include "pool/runtime/oci/OciRuntime.h"
#include "pool/sys/Files.h"
#include "pool/sys/LoopDevice.h"
#include "pool/sys/Process.h"
#include "tests/kernel/Driver.h"

namespace hearth::kernel_test {
namespace {

namespace fs = std::filesystem;
using pool::SandboxId;

class OciDriver final : public Driver {
public:
    explicit OciDriver(const Instance& instance) : instance_(instance), names_(instance) { fork(); }

    void start() override {
        if (!socket_) fork();
        client_ = std::make_unique<pool::LauncherClient>(std::move(socket_), log_, nullptr);
        runtime_ = std::make_unique<pool::OciRuntime>(instance_, *client_);
        digest_ = runtime_->resolveImage("shell");
        const std::string probe = names_.rootfs() + "/" + digest_.substr(7) + "/bin/probe";
        fs::copy_file(HEARTH_PROBE, probe, fs::copy_options::overwrite_existing);
    }
    void stop() override {
        runtime_.reset();
        client_.reset();
        socket_.reset();
    }
    void kill() override {
        ::kill(launcherPid(), SIGKILL);
        stop();
    }
    pid_t launcherPid() override { return client_->pid(); }
    pool::ContainerRuntime& runtime() override { return *runtime_; }
    pool::SandboxSpec image() override {
        pool::SandboxSpec spec;
        spec.image = "shell";
        spec.image_digest = digest_;
        return spec;
    }
    pid_t initOf(const SandboxId& id) const override {
        const auto state = sys::readFile(names_.runtimeState(id) + "/state.json");
        if (!state) throw std::runtime_error("no state of " + id);
        return parseJson(*state).at("init_process_pid").get<pid_t>();
    }
    std::vector<std::string> leftovers() const override;

private:
    void fork() {
        pool::LauncherOptions options;
        options.instance = instance_;
        options.agent_path = HEARTH_AGENT;
        options.cdi.paths = {instance_.data_dir + "/cdi"};
        socket_ = pool::LauncherClient::forkLauncher(options);
    }

    Instance instance_;
    pool::launcher::SandboxPaths names_;
    metrics::Log log_;
    Fd socket_;
    std::string digest_;
    std::unique_ptr<pool::LauncherClient> client_;
    std::unique_ptr<pool::OciRuntime> runtime_;
};

std::vector<std::string> OciDriver::leftovers() const {
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
        if (holder.starts_with(instance_.name + "/") || name.starts_with(instance_.name + "."))
            found.push_back("lease " + name + " " + holder);
    }
    for (const sys::LoopInUse& loop : sys::loopsInUse()) {
        if (loop.backing.starts_with(instance_.data_dir)) found.push_back("loop " + loop.device);
    }
    std::istringstream mounts(sys::readFile("/proc/self/mountinfo").value_or(""));
    for (std::string line; std::getline(mounts, line);) {
        if (line.find(instance_.data_dir) != std::string::npos ||
            line.find(instance_.name) != std::string::npos) {
            found.push_back("mount " + line);
        }
    }
    for (const std::string& pid : sys::listDirectory("/proc")) {
        if (pid.find_first_not_of("0123456789") != std::string::npos) continue;
        // A zombie holds nothing. It only waits for its parent, here the host's first process.
        if (!sys::processStartTime(std::stoi(pid))) continue;
        const auto groups = sys::readFile("/proc/" + pid + "/cgroup");
        if (groups && groups->find(names_.cgroupParent()) != std::string::npos) {
            found.push_back("process " + pid);
        }
    }
    return found;
}

}  // namespace

std::unique_ptr<Driver> ociDriver(const Instance& instance) {
    return std::make_unique<OciDriver>(instance);
}

}  // namespace hearth::kernel_test
