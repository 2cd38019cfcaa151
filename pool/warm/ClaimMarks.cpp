#include "pool/warm/ClaimMarks.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <system_error>

#include "base/Error.h"
#include "base/Ids.h"

namespace hearth::pool {
namespace {

constexpr std::size_t kSlotSize = 64;
constexpr std::size_t kFirstSlots = 256;
constexpr std::size_t kEndMark = kSlotSize - 1;  // in a slot: 0, or the reason of its end and 1

}  // namespace

ClaimMarks::ClaimMarks(const std::string& path)
    : file_(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600)), path_(path) {
    if (!file_) throwErrno("open", path);
    struct stat info {};
    if (::fstat(file_.get(), &info) != 0) throwErrno("fstat", path);
    resize(std::max(kFirstSlots, static_cast<std::size_t>(info.st_size) / kSlotSize));
}

ClaimMarks::~ClaimMarks() {
    ::munmap(memory_, slots_ * kSlotSize);
}

char* ClaimMarks::slot(std::size_t index) const {
    return memory_ + index * kSlotSize;
}

/// Grows to `slots` and reads the new ones: empty, or an id that an earlier server left.
void ClaimMarks::resize(std::size_t slots) {
    // Reserved first: a store to a page without room in tmpfs would raise SIGBUS.
    const int error = ::posix_fallocate(file_.get(), 0, static_cast<off_t>(slots * kSlotSize));
    if (error != 0) throwErrno(error, "fallocate", path_);
    void* memory = memory_ == nullptr
                       ? ::mmap(nullptr, slots * kSlotSize, PROT_READ | PROT_WRITE,
                                MAP_SHARED | MAP_POPULATE, file_.get(), 0)
                       : ::mremap(memory_, slots_ * kSlotSize, slots * kSlotSize, MREMAP_MAYMOVE);
    if (memory == MAP_FAILED) throwErrno("mmap", path_);
    memory_ = static_cast<char*>(memory);
    for (std::size_t i = slots; i-- > slots_;) {
        const char* text = slot(i);
        const std::string id(text, ::strnlen(text, kEndMark));
        // A slot with an invalid id was being written when its server died: no frame was sent.
        if (!isId(id, "sb_") || !taken_.emplace(id, i).second) free_.push_back(i);
    }
    slots_ = slots;
}

void ClaimMarks::set(const SandboxId& id) {
    const MutexLock lock(mutex_);
    slotOf(id);
}

void ClaimMarks::end(const SandboxId& id, std::uint8_t reason) {
    const MutexLock lock(mutex_);
    char& end = slotOf(id)[kEndMark];
    if (end == 0) end = static_cast<char>(reason + 1);  // one byte: there is no half of it
    std::atomic_signal_fence(std::memory_order_seq_cst);
}

std::optional<std::uint8_t> ClaimMarks::ended(const SandboxId& id) const {
    const MutexLock lock(mutex_);
    const auto found = taken_.find(id);
    if (found == taken_.end()) return std::nullopt;
    const auto end = static_cast<std::uint8_t>(slot(found->second)[kEndMark]);
    return end == 0 ? std::nullopt : std::optional<std::uint8_t>(end - 1);
}

char* ClaimMarks::slotOf(const SandboxId& id) {
    if (const auto found = taken_.find(id); found != taken_.end()) return slot(found->second);
    if (id.size() >= kEndMark) throwErrno(EINVAL, "mark", id);
    if (free_.empty()) resize(slots_ * 2);
    const std::size_t index = free_.back();
    char* text = slot(index);
    std::memset(text, 0, kSlotSize);
    id.copy(text, id.size());  // shorter than the slot, whose rest is zero
    // The caller then sends the bind; the compiler must not move the mark after it.
    std::atomic_signal_fence(std::memory_order_seq_cst);
    free_.pop_back();
    taken_.emplace(id, index);
    return text;
}

void ClaimMarks::clear(const SandboxId& id) {
    const MutexLock lock(mutex_);
    const auto found = taken_.find(id);
    if (found == taken_.end()) return;
    std::memset(slot(found->second), 0, kSlotSize);
    free_.push_back(found->second);
    taken_.erase(found);
}

bool ClaimMarks::exists(const SandboxId& id) const {
    const MutexLock lock(mutex_);
    return taken_.contains(id);
}

std::vector<SandboxId> ClaimMarks::all() const {
    const MutexLock lock(mutex_);
    std::vector<SandboxId> found;
    found.reserve(taken_.size());
    for (const auto& [id, index] : taken_) found.push_back(id);
    return found;
}

}  // namespace hearth::pool
