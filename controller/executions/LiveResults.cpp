#include "controller/executions/LiveResults.h"

#include <algorithm>
#include <utility>

#include "base/ScopeExit.h"
#include "controller/contract/ResultForms.h"

namespace hearth::controller {
namespace {

/// On the wire each result follows its length, which has this many bytes.
constexpr std::uint64_t kLength = 4;

}  // namespace

std::shared_ptr<void> LiveResults::counted(std::uint64_t bytes, bool& fits) const {
    std::shared_ptr<void> counted = count_ ? count_(bytes) : nullptr;
    fits = counted != nullptr || !count_;
    return counted;
}

void LiveResults::add(std::string_view json, std::uint64_t behind) {
    bool fits = false;
    auto unread = std::make_shared<Unread>();
    unread->counted = counted(json.size(), fits);
    if (fits) unread->json = json;
    unread->behind = behind;
    const MutexLock lock(mutex_);
    end_ += kLength + json.size();
    if (fits) {
        unread_.push_back(std::move(unread));
    } else {
        ++dropped_;
    }
}

void LiveResults::readNext() {
    std::shared_ptr<Unread> next;
    std::size_t room = 0;
    {
        const MutexLock lock(mutex_);
        if (reading_ || unread_.empty()) return;
        reading_ = true;
        next = unread_.front();
        room = kMostResultValues - values_;
    }
    ResultPtr read;
    std::shared_ptr<void> count;
    const ScopeExit done([&] {
        const MutexLock lock(mutex_);
        reading_ = false;
        unread_.pop_front();
        keep(std::move(read), std::move(count));
    });
    read = readResult(next->json, next->behind, room);
    next->counted.reset();  // the count of the raw text; the kept one is counted below
    bool fits = true;
    if (read) count = counted(read->document.size(), fits);
    if (!fits) read.reset();
}

void LiveResults::keep(ResultPtr read, std::shared_ptr<void> counted) {
    if (!read) {
        ++dropped_;
        return;
    }
    values_ = std::min(values_ + read->values, kMostResultValues);
    bytes_ += read->document.size();
    results_.push_back(std::move(read));
    if (counted) counted_.push_back(std::move(counted));
}

bool LiveResults::waiting() const {
    const MutexLock lock(mutex_);
    return !unread_.empty();
}

std::uint64_t LiveResults::showable(std::uint64_t output) const {
    const MutexLock lock(mutex_);
    return unread_.empty() ? output : std::min(output, unread_.front()->behind);
}

std::vector<ResultPtr> LiveResults::all() const {
    const MutexLock lock(mutex_);
    return results_;
}

ResultPtr LiveResults::at(std::size_t index) const {
    const MutexLock lock(mutex_);
    return index < results_.size() ? results_[index] : nullptr;
}

std::size_t LiveResults::count() const {
    const MutexLock lock(mutex_);
    return results_.size();
}

std::uint64_t LiveResults::bytes() const {
    const MutexLock lock(mutex_);
    return bytes_;
}

std::uint64_t LiveResults::dropped() const {
    const MutexLock lock(mutex_);
    return dropped_;
}

std::uint64_t LiveResults::end() const {
    const MutexLock lock(mutex_);
    return end_;
}

void LiveResults::clear() {
    const MutexLock lock(mutex_);
    results_ = {};
    counted_ = {};
}

}  // namespace hearth::controller
