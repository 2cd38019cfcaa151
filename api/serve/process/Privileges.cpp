#include "api/serve/process/Privileges.h"

#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <stdexcept>

#include "api/serve/process/ServerFilter.h"
#include "base/Error.h"
#include "base/Fd.h"
#include "pool/sys/Capabilities.h"

namespace hearth::controller {

Account findAccount(const std::string& name) {
    const passwd* entry = ::getpwnam(name.c_str());
    if (entry == nullptr) {
        throw Error(ErrorCode::InvalidArgument, "there is no user " + name)
            .hint("adduser --system --group --no-create-home " + name);
    }
    if (entry->pw_uid == 0) {
        throw Error(ErrorCode::InvalidArgument, "the server does not run as root")
            .hint("name another account with --user");
    }
    return {name, entry->pw_uid, entry->pw_gid};
}

void becomeAccount(const Account& account, std::optional<gid_t> group) {
    const gid_t kept = group.value_or(0);
    sys::boundCapabilities({});
    if (::setgroups(group ? 1 : 0, &kept) != 0) throwErrno("setgroups");
    if (::setresgid(account.gid, account.gid, account.gid) != 0) throwErrno("setresgid");
    if (::setresuid(account.uid, account.uid, account.uid) != 0) throwErrno("setresuid");
    if (::setuid(0) == 0) throw std::runtime_error("privileges came back");
    stayAsWeAre();
}

void stayAsWeAre() {
    if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) throwErrno("prctl", "no_new_privs");
    if (::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0) throwErrno("prctl", "dumpable");
    const rlimit no_core{0, 0};
    if (::setrlimit(RLIMIT_CORE, &no_core) != 0) throwErrno("setrlimit", "core");
    sys::holdCapabilities({});
    enterServerFilter();
}

void raiseFileLimit() {
    rlimit limit{};
    if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) throwErrno("getrlimit");
    limit.rlim_cur = limit.rlim_max;
    if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) throwErrno("setrlimit");
}

void widenFileTable() noexcept {
    rlimit limit{};
    if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
    const rlim_t last = std::min(limit.rlim_cur, kFileTable) - 1;
    const Fd any(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    // The table keeps its size when this one is closed again. If it fails, the table grows later.
    const Fd highest(::fcntl(any.get(), F_DUPFD_CLOEXEC, static_cast<int>(last)));
}

}  // namespace hearth::controller
