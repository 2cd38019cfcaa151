#include "api/serve/PrivilegedSetup.h"

#include <fcntl.h>
#include <grp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>

#include "api/http/AccessLog.h"
#include "api/serve/GpuSetup.h"
#include "api/serve/OfflineState.h"
#include "api/serve/StateRepair.h"
#include "api/serve/process/Capture.h"
#include "api/serve/process/Privileges.h"
#include "api/serve/runtimes/Runtimes.h"
#include "base/Error.h"
#include "controller/store/StateFiles.h"
#include "metrics/AuditLog.h"
#include "metrics/LineFile.h"
#include "pool/sys/Files.h"

namespace hearth::program {
namespace {

/// While it exists, this process has the rights of the account. Only for a process of root with one
/// thread.
class As {
public:
    explicit As(const controller::Account& account) {
        groups_.resize(static_cast<std::size_t>(std::max(::getgroups(0, nullptr), 0)));
        if (::getgroups(static_cast<int>(groups_.size()), groups_.data()) < 0) {
            throwErrno("getgroups");
        }
        if (::setgroups(0, nullptr) != 0) throwErrno("setgroups");
        if (::setegid(account.gid) != 0) throwErrno("setegid");
        if (::seteuid(account.uid) != 0) throwErrno("seteuid");
    }
    ~As() {
        // Root may always become root again.
        const bool back = ::seteuid(0) == 0 && ::setegid(0) == 0 &&
                          ::setgroups(groups_.size(), groups_.data()) == 0;
        if (!back) std::abort();
    }
    As(const As&) = delete;
    As& operator=(const As&) = delete;

private:
    std::vector<gid_t> groups_;
};

/// Makes a log file that belongs to the server's user. Perhaps only root can create it, but the
/// server must be able to open it. `name` is "audit" or "access".
void prepareLines(const cli::Setting<std::string>& setting, const std::string& name, mode_t mode,
                  const controller::Account& account) {
    const std::string& path = *setting;
    if (path.empty()) return;
    const bool root = ::geteuid() == 0;
    const auto refuse = [&](const std::string& who, int error) {
        throw cli::UsageError(setting.origin + ": the " + name + " log " + path +
                                  " cannot be written" + who + ": " + std::strerror(error),
                              "put it into an existing folder that " +
                                  (root ? "the user " + account.name + " may enter, such as "
                                        : "you may write to, such as ") +
                                  "/var/log/hearth-" + name + ".log");
    };
    const bool ours = ::access(path.c_str(), F_OK) != 0;
    const Fd file = metrics::LineFile::open(path, mode);
    if (!file) refuse("", errno);
    if (!root) return;
    if (::fchown(file.get(), account.uid, account.gid) != 0) {
        throwErrno("chown the " + name + " log " + path);
    }
    int error = 0;
    {
        const As account_of_server(account);
        const Fd again(::open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW));
        if (!again) error = errno;
    }
    if (error == 0) return;
    if (ours) ::unlink(path.c_str());
    refuse(" by the user " + account.name + ", which the server runs as", error);
}

void prepareLogs(const cli::ServeConfig& config, const controller::Account& account) {
    const auto whole = [](const std::string& path) {
        std::error_code unknown;  // opening the file reports the reason later
        return std::filesystem::weakly_canonical(path, unknown);
    };
    if (!(*config.access_log).empty() && whole(*config.access_log) == whole(*config.audit_log)) {
        throw cli::UsageError(config.access_log.origin + ": " + *config.access_log +
                                  " is the audit log (" + config.audit_log.origin + ")",
                              "give each of them a file of its own");
    }
    prepareLines(config.audit_log, "audit", metrics::AuditLog::kMode, account);
    prepareLines(config.access_log, "access", api::AccessLog::kMode, account);
}

constexpr std::string_view kUsed =
    "A server has used this directory. Without its state nobody is served until a token is made.\n";

/// Writes the mark of use. A failure is ignored: an intact state proves the use, too. An existing
/// mark is not rewritten, because on a full disk it would be emptied.
void rememberUse(const Instance& instance) noexcept {
    try {
        const std::string path = controller::usedPath(instance.data_dir);
        std::error_code none;
        const std::uintmax_t size = std::filesystem::file_size(path, none);
        if (!none && size > 0) return;
        sys::writeFile(path, kUsed, 0644);
    } catch (const std::exception&) {
        return;
    }
}

/// Holds the instance during the set-up; if the set-up fails, nothing of it stays in /run.
class Hold {
public:
    explicit Hold(const Instance& instance)
        : run_dir_(instance.run_dir), lock_(lockInstance(instance)) {}
    ~Hold() {
        if (!lock_) return;
        lock_.reset();
        try {
            removeDeadRunDir(run_dir_);
        } catch (const std::exception&) {
            return;  // another start removes it
        }
    }
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;

    Fd take() { return std::move(lock_); }

private:
    const std::string run_dir_;
    Fd lock_;
};

}  // namespace

PrivilegedSetup prepare(const cli::ServeConfig& config, const Replacements& replaced) {
    const RuntimeFactory* given = replaced.runtime;
    const RuntimeDecision decision = given == nullptr ? decideRuntime(config) : RuntimeDecision();
    const RuntimeFactory& factory = given == nullptr ? *decision.factory : *given;
    const bool root = ::geteuid() == 0;
    if (!root && factory.needsRoot()) {
        throw Error(ErrorCode::InvalidArgument, "hearth serve must be started as root")
            .hint(
                "it keeps root only in a small launcher process; the server itself gives it up; "
                "or use --runtime docker as a user who may open Docker's socket");
    }
    const controller::Account account = root ? controller::findAccount(*config.user)
                                             : controller::Account{"", ::geteuid(), ::getegid()};
    factory.require(config);
    PrivilegedSetup setup;
    setup.replaced = replaced;
    setup.declared = declaredInFiles(config.pools);
    setup.declared_once = declaredInFiles(config.pools_once);
    setup.quotas = quotasInFiles(config.quotas);
    setup.issuers = issuersInFile(config.oidc);
    setup.instance = openInstance(*config.data_dir);
    setup.used_before = controller::usedBefore(setup.instance.data_dir);
    if (setup.used_before) rememberUse(setup.instance);
    requireWritable(setup.instance);
    if (!setup.used_before) {
        // The server cannot create the file after it has given up root; it gets it open and empty.
        setup.use = Fd(::open(controller::usedPath(setup.instance.data_dir).c_str(),
                              O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0644));
    }
    if (root) requirePassable(setup.instance);
    Hold hold(setup.instance);
    removeDeadRunDirs(setup.instance);
    prepareLogs(config, account);
    controller::raiseFileLimit();
    if (root) {
        repairState(setup.instance.data_dir + "/state", account);
        repairState(setup.instance.run_dir + "/marks", account);
    }
    setup.runtime = factory.prepare(config, setup.instance, account);
    setup.gpus = prepareGpus(config, setup.instance);
    controller::widenFileTable();
    if (root) {
        controller::becomeAccount(account, setup.runtime->group());
    } else {
        controller::stayAsWeAre();
    }
    setup.lock = hold.take();
    return setup;
}

void noteUse(PrivilegedSetup& setup) noexcept {
    if (!setup.use) return;
    const ssize_t written = ::write(setup.use.get(), kUsed.data(), kUsed.size());
    if (written > 0) ::fsync(setup.use.get());
    setup.use.reset();
}

}  // namespace hearth::program
