#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <functional>
#include <thread>

#include "api/serve/process/ServerFilter.h"

namespace hearth::controller {
namespace {

/// Returns the errno of a call in a child under the filter, 0 if it succeeded.
int underFilter(const std::function<long()>& call) {
    const pid_t pid = ::fork();
    if (pid == 0) {
        ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        enterServerFilter();
        errno = 0;
        ::_exit(call() < 0 ? errno : 0);
    }
    int status = 0;
    ::waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

}  // namespace

TEST_CASE("the server runs no program, leaves no namespace and sees no other process",
          "[unit][controller]") {
    static char program[] = "/bin/true";
    static char* const argv[] = {program, nullptr};
    CHECK(underFilter([] { return ::execv(program, argv); }) == EPERM);
    CHECK(underFilter([] { return ::syscall(SYS_execveat, -100, program, argv, nullptr, 0); }) ==
          EPERM);
    CHECK(underFilter([] { return ::unshare(0x10000000); }) == EPERM);  // CLONE_NEWUSER
    CHECK(underFilter([] { return ::mount("none", "/", "tmpfs", 0, nullptr); }) == EPERM);
    for (const long call :
         {SYS_bpf, SYS_userfaultfd, SYS_io_uring_setup, SYS_keyctl, SYS_perf_event_open,
          SYS_open_by_handle_at, SYS_setns, SYS_finit_module, SYS_kexec_load, SYS_process_vm_readv,
          SYS_pidfd_getfd, SYS_setresuid, SYS_capset}) {
        INFO(call);
        CHECK(underFilter([call] { return ::syscall(call, 0, 0, 0, 0, 0, 0); }) == EPERM);
    }
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    CHECK(underFilter([] { return ::ptrace(PTRACE_ATTACH, ::getppid(), 0, 0); }) == EPERM);
    CHECK(underFilter([] { return ::syscall(SYS_fork); }) == EPERM);
    CHECK(underFilter([] { return ::syscall(SYS_clone, 17, 0, 0, 0, 0); }) == EPERM);
#endif
}

TEST_CASE("only the server's socket families are allowed, also with high bits set",
          "[unit][controller]") {
    for (const long family : {1L, 2L, 10L, 16L}) {
        INFO(family);
        CHECK(underFilter([family] { return ::syscall(SYS_socket, family, 2, 0); }) != EPERM);
    }
    for (const long family : {3L, 17L, 38L, 40L, 44L, 45L, (1L << 32) | 38L}) {
        INFO(family);
        CHECK(underFilter([family] { return ::syscall(SYS_socket, family, 3, 0); }) == EPERM);
    }
}

TEST_CASE("threads begin under the server's filter", "[unit][controller]") {
    CHECK(underFilter([] {
              int ran = 0;
              std::thread([&ran] { ran = 1; }).join();
              return ran == 1 ? 0L : -1L;
          }) == 0);
}

}  // namespace hearth::controller
