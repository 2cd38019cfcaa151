#include "metrics/LineFile.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "base/Error.h"

namespace hearth::metrics {
namespace {

constexpr std::chrono::seconds kFileLook{1};
constexpr std::chrono::milliseconds kRetry{500};
constexpr std::chrono::milliseconds kLastLines{5'000};
/// A buffer that grew beyond this in a burst is released.
constexpr std::size_t kKeptBuffer = 1U << 20U;

}  // namespace

LineFile::LineFile(LineFileSettings settings, const Clock& clock, Log& log)
    : settings_(std::move(settings)), clock_(clock), log_(log) {
    if (!enabled()) return;
    if (!open()) throwErrno("open " + settings_.name + " " + settings_.path);
    thread_ = std::jthread([this] { work(); });
}

LineFile::~LineFile() {
    if (!enabled()) return;
    flush(kLastLines);
    {
        const MutexLock lock(mutex_);
        stopping_ = true;
    }
    changed_.notifyAll();
}

void LineFile::add(std::string_view line) {
    if (!enabled()) return;
    bool wakes = false;
    bool lost = false;
    {
        const MutexLock lock(mutex_);
        const std::size_t before = queue_.size();
        lost = before + line.size() > kMost;
        if (!lost) {
            queue_.append(line);
            added_ += line.size();
        }
        // The thread sleeps while lines gather, unless half of the room is taken.
        wakes = before == 0 || (before < kMost / 2 && queue_.size() >= kMost / 2);
    }
    if (lost) settings_.count(LineFate::Lost);
    if (wakes) changed_.notifyAll();
}

void LineFile::reopen() {
    {
        const MutexLock lock(mutex_);
        reopen_ = true;
    }
    changed_.notifyAll();
}

bool LineFile::flush(std::chrono::milliseconds patience) {
    const MutexLock lock(mutex_);
    const std::uint64_t goal = added_;
    ++hurried_;
    changed_.notifyAll();
    const bool written = changed_.waitFor(
        mutex_, patience, [this, goal]() HEARTH_REQUIRES(mutex_) { return written_ >= goal; });
    --hurried_;
    return written;
}

void LineFile::work() {
    std::string batch;
    UniqueMutexLock lock(mutex_);
    while (true) {
        if (batch.empty()) {
            changed_.wait(mutex_, [this]() HEARTH_REQUIRES(mutex_) {
                return stopping_ || reopen_ || !queue_.empty();
            });
            changed_.waitFor(mutex_, settings_.gather, [this]() HEARTH_REQUIRES(mutex_) {
                return stopping_ || reopen_ || hurried_ > 0 || queue_.size() >= kMost / 2;
            });
        }
        if (stopping_) return;
        const bool anew = std::exchange(reopen_, false);
        if (batch.empty()) batch.swap(queue_);
        lock.unlock();
        if (anew && !open()) {
            due_ = true;
            failed("open", errno);
        }
        const std::size_t due = batch.size();
        const int error = append(batch);
        const std::size_t left = batch.size();
        if (error != 0) failed(file_ ? "write" : "open", error);
        if (batch.empty() && batch.capacity() > kKeptBuffer) batch.shrink_to_fit();
        lock.lock();
        written_ += due - left;
        if (hurried_ > 0) changed_.notifyAll();
        if (left > 0) {
            changed_.waitFor(mutex_, kRetry,
                             [this]() HEARTH_REQUIRES(mutex_) { return stopping_; });
        }
    }
}

Fd LineFile::open(const std::string& path, mode_t mode) {
    constexpr int kFlags = O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW;
    Fd there(::open(path.c_str(), kFlags));
    if (there || errno != ENOENT) return there;
    Fd made(::open(path.c_str(), kFlags | O_CREAT | O_EXCL, mode));
    if (!made && errno == EEXIST) return Fd(::open(path.c_str(), kFlags));
    // The umask has removed bits. Even without them the file can take lines.
    if (made) static_cast<void>(::fchmod(made.get(), mode));
    return made;
}

bool LineFile::open() {
    Fd opened = open(settings_.path, settings_.mode);
    if (!opened) return false;
    file_ = std::move(opened);
    looked_at_ = clock_.now();
    torn_ = false;  // a torn line stays in the previous file
    due_ = false;
    return true;
}

bool LineFile::moved() const {
    struct stat ours {};
    struct stat there {};
    if (::fstat(file_.get(), &ours) != 0) return true;
    if (::stat(settings_.path.c_str(), &there) != 0) return errno == ENOENT;
    return ours.st_ino != there.st_ino || ours.st_dev != there.st_dev;
}

int LineFile::append(std::string& batch) {
    if (batch.empty()) return 0;
    if (clock_.now() - looked_at_ >= kFileLook || !file_) {
        looked_at_ = clock_.now();
        // If the new file cannot be opened, the old one still takes lines: none is lost.
        if ((!file_ || due_ || moved()) && !open()) {
            const int error = errno;
            due_ = true;
            if (!file_) return error;
            failed("open", error);
        }
    }
    std::size_t done = 0;
    // A partly written line is ended first, so that the next one is complete.
    if (torn_ && !put("\n", done)) return errno;
    torn_ = false;
    done = 0;
    const int error = put(batch, done) ? 0 : errno;
    const std::size_t lines_end = done == 0 ? 0 : batch.rfind('\n', done - 1) + 1;
    torn_ = done > lines_end;
    for (auto lines = std::count(batch.begin(),
                                 batch.begin() + static_cast<std::ptrdiff_t>(lines_end), '\n');
         lines > 0; --lines) {
        settings_.count(LineFate::Written);
    }
    batch.erase(0, lines_end);
    if (error == 0 && !due_ && std::exchange(failing_, false)) {
        log_.info(settings_.event + ".recovered", {{"file", settings_.path}});
    }
    return error;
}

bool LineFile::put(std::string_view bytes, std::size_t& done) const {
    while (done < bytes.size()) {
        const ssize_t written = ::write(file_.get(), bytes.data() + done, bytes.size() - done);
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) return false;
        done += static_cast<std::size_t>(written);
    }
    return true;
}

void LineFile::failed(const char* what, int error) {
    settings_.count(LineFate::Failed);
    if (std::exchange(failing_, true)) return;
    log_.error(settings_.event + ".failed", {{"file", settings_.path},
                                             {"what", what},
                                             {"error", std::generic_category().message(error)}});
}

}  // namespace hearth::metrics
