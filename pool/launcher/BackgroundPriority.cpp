#include "pool/launcher/BackgroundPriority.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/Fd.h"
#include "pool/sys/Files.h"

namespace hearth::pool::launcher {
namespace {

/// A failure is accepted: the work is then done in the foreground.
void tryWrite(const std::string& path, char value) noexcept {
    const Fd file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
    if (file) static_cast<void>(::write(file.get(), &value, 1));
}

}  // namespace

BackgroundPriority::BackgroundPriority(const sys::Cgroups& cgroups, const std::string& path) {
    const auto directory = cgroups.directory("cpu", path);
    if (!directory) return;
    static_cast<void>(sys::makeDirectory(*directory, 0755));  // a group left from before is fine
    if (::access((*directory + "/cpu.idle").c_str(), W_OK) != 0) {
        ::rmdir(directory->c_str());
        return;
    }
    directory_ = *directory;
    idle(true);
}

BackgroundPriority::~BackgroundPriority() {
    if (!directory_.empty()) ::rmdir(directory_.c_str());
}

void BackgroundPriority::enter() const noexcept {
    if (directory_.empty()) return;
    // A process that moves itself costs 50 us; a move by number would wait for a grace period. The
    // file that takes a single thread exists in the older trees only.
    const std::string threads = directory_ + "/tasks";
    const bool old = ::access(threads.c_str(), W_OK) == 0;
    tryWrite(old ? threads : directory_ + "/cgroup.procs", '0');
}

void BackgroundPriority::hurry(bool on) noexcept {
    if (directory_.empty() || on == hurried_) return;
    hurried_ = on;
    idle(!on);
}

void BackgroundPriority::idle(bool on) const noexcept {
    tryWrite(directory_ + "/cpu.idle", on ? '1' : '0');
}

}  // namespace hearth::pool::launcher
