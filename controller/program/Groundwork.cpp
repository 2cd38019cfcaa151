#include "controller/program/Groundwork.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>

#include "api/cli/RuntimeDecision.h"
#include "base/Error.h"
#include "controller/Privileges.h"
#include "pool/launcher/LauncherClient.h"
#include "pool/runtime/docker/DockerRuntime.h"

namespace hearth::program {
namespace {

std::vector<controller::Pool> readManifests(const std::vector<std::string>& files) {
    std::vector<controller::Pool> pools;
    for (const std::string& file : files) {
        std::ifstream in(file);
        if (!in) throwErrno("open", file);
        std::ostringstream text;
        text << in.rdbuf();
        for (controller::Pool& pool : controller::parsePoolYaml(text.str(), file)) {
            pools.push_back(std::move(pool));
        }
    }
    return pools;
}

/// The directories that the launcher makes where there is one.
void makeServerDirectories(const Instance& instance, const controller::Account& account,
                           const std::vector<std::string>& further = {}) {
    std::vector<std::string> paths = {instance.data_dir + "/state", instance.run_dir + "/marks"};
    paths.insert(paths.end(), further.begin(), further.end());
    for (const std::string& path : paths) {
        std::filesystem::create_directories(path);
        std::filesystem::permissions(path, std::filesystem::perms::owner_all);
        if (::chown(path.c_str(), account.uid, account.gid) != 0) throwErrno("chown", path);
    }
}

/// The group by which an unprivileged server reaches the daemon's socket. Who may use it is root on
/// that daemon's machine, so keeping the group gives no more away than using the runtime does.
std::optional<gid_t> groupOf(const pool::docker::EngineAddress& address) {
    if (address.socket.empty()) return std::nullopt;
    struct stat status {};
    if (::stat(address.socket.c_str(), &status) != 0) throwErrno("stat", address.socket);
    if ((status.st_mode & S_IWOTH) != 0) return std::nullopt;
    if ((status.st_mode & S_IWGRP) == 0) {
        throw Error(ErrorCode::InvalidArgument, "no group may use the socket " + address.socket +
                                                    ", and the server is not root")
            .hint("start dockerd with --group docker, or: chmod g+rw " + address.socket);
    }
    return status.st_gid;
}

/// The docker runtime: no launcher; the server only gives root up, if it has it.
void prepareDocker(Groundwork& ground, const controller::Account& account) {
    const pool::docker::EngineAddress address = pool::docker::engineAddress();
    ground.docker = std::make_unique<pool::docker::EngineClient>(address);
    makeServerDirectories(ground.instance, account,
                          pool::DockerRuntime::directories(ground.instance));
    if (::geteuid() == 0) {
        controller::becomeAccount(account, groupOf(address));
    } else {
        controller::stayAsWeAre();
    }
}

/// The audit log belongs to whom the server becomes; it may lie where only root can make a file.
void prepareAuditLog(const std::string& path, const controller::Account& account) {
    if (path.empty()) return;
    const Fd file(
        ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!file) throwErrno("open the audit log " + path);
    if (::geteuid() == 0 && ::fchown(file.get(), account.uid, account.gid) != 0) {
        throwErrno("chown the audit log " + path);
    }
}

}  // namespace

std::string besideProgram(const std::string& name) {
    return (std::filesystem::read_symlink("/proc/self/exe").parent_path() / name).string();
}

Groundwork prepare(const cli::ServeConfig& config) {
    const cli::RuntimeDecision runtime = cli::decideRuntime(config);
    const bool docker = runtime.choice == cli::RuntimeChoice::Docker;
    const bool root = ::geteuid() == 0;
    if (!root && !docker) {
        throw Error(ErrorCode::InvalidArgument, "hearth serve must be started as root")
            .hint(
                "it keeps root only in a small launcher process; the server itself gives it up; "
                "or use --runtime docker as a user who may open Docker's socket");
    }
    const controller::Account account = root ? controller::findAccount(*config.user)
                                             : controller::Account{"", ::geteuid(), ::getegid()};
    Groundwork ground;
    ground.instance = openInstance(*config.data_dir);
    if (root) requirePassable(ground.instance);
    ground.lock = lockInstance(ground.instance);
    removeDeadRunDirs(ground.instance);
    ground.declared = readManifests(*config.pools);
    prepareAuditLog(*config.audit_log, account);
    controller::raiseFileLimit();
    if (docker) {
        prepareDocker(ground, account);
        return ground;
    }
    if (runtime.choice == cli::RuntimeChoice::Fake) {
        makeServerDirectories(ground.instance, account);
    } else {
        pool::LauncherOptions options;
        options.instance = ground.instance;
        options.runtime = *config.oci_runtime;
        options.agent_path = besideProgram("hearth-agent");
        options.server_uid = account.uid;
        options.server_gid = account.gid;
        ground.launcher = pool::LauncherClient::forkLauncher(options);
    }
    controller::becomeAccount(account);
    return ground;
}

}  // namespace hearth::program
