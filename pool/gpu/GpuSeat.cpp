#include "pool/gpu/GpuSeat.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/Digest.h"
#include "base/Error.h"
#include "base/Ids.h"

namespace hearth::pool::gpu {
namespace {

constexpr std::size_t kPathDigits = 12;
constexpr std::size_t kMostNote = 256;

/// The holder of the seat writes this into the lock.
struct Note {
    std::string boot;   ///< id of the machine's boot
    std::string name;   ///< name of the instance
    std::string start;  ///< random name of the server's start
    std::string pid;
};

std::string seatPath(const Instance& instance, const std::string& library) {
    std::string name = "gpus";
    if (library.find('/') != std::string::npos) {
        name += "-" + toHex(sha256(library)).substr(0, kPathDigits);
    }
    return std::filesystem::path(instance.run_dir).replace_filename(name + ".lock").string();
}

/// Returns the boot's id: a folder for run_dirs may survive the end of the boot. If the boot has no
/// id, no record from before this start is believed.
std::string thisBoot() {
    std::ifstream file("/proc/sys/kernel/random/boot_id");
    std::string id;
    file >> id;
    return id.empty() ? newId("boot_") : id;
}

Note read(const Fd& lock) {
    std::array<char, kMostNote> text{};
    const ssize_t n = ::pread(lock.get(), text.data(), text.size(), 0);
    std::istringstream words(std::string(text.data(), n < 0 ? 0 : static_cast<std::size_t>(n)));
    Note note;
    words >> note.boot >> note.name >> note.start >> note.pid;
    return note;
}

void write(const Fd& lock, const Note& note) {
    const std::string text = note.boot + " " + note.name + " " + note.start + " " + note.pid + "\n";
    if (::ftruncate(lock.get(), 0) != 0 ||
        ::pwrite(lock.get(), text.data(), text.size(), 0) != static_cast<ssize_t>(text.size())) {
        throwErrno("write", "the lock of this machine's GPUs");
    }
}

/// True if sandboxes of a server that has ended may live on: they keep their devices.
bool leftSandboxes(const Instance& instance, const std::string& name) {
    const std::string run_dir =
        std::filesystem::path(instance.run_dir).replace_filename(name).string();
    return std::filesystem::exists(run_dir) && !removeDeadRunDir(run_dir) &&
           std::filesystem::exists(run_dir);
}

}  // namespace

GpuSeat GpuSeat::take(const Instance& instance, const std::string& library) {
    const std::string path = seatPath(instance, library);
    GpuSeat seat;
    Fd lock(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!lock) throwErrno("open", path);
    const std::string what_to_do =
        "; start this server again when that has ended, or with --gpu-library none";
    if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
        if (errno != EWOULDBLOCK) throwErrno("flock", path);
        seat.refusal_ = "another hearth serve, process " + read(lock).pid +
                        ", has the GPUs of this machine" + what_to_do;
        return seat;
    }
    const Note last = read(lock);
    const Note now{thisBoot(), instance.name, newId(""), std::to_string(::getpid())};
    const bool known = last.boot == now.boot && !last.start.empty();
    if (known && last.name != now.name && leftSandboxes(instance, last.name)) {
        seat.refusal_ = "sandboxes of another hearth serve (" + last.name +
                        ") may have GPUs of this machine" + what_to_do;
        return seat;
    }
    write(lock, now);
    if (known && last.name == now.name) seat.tenure_.before = last.boot + "/" + last.start;
    seat.tenure_.now = now.boot + "/" + now.start;
    seat.lock_ = std::move(lock);
    return seat;
}

}  // namespace hearth::pool::gpu
