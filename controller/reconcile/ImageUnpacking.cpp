#include "controller/reconcile/ImageUnpacking.h"

namespace hearth::controller {

std::optional<std::string> ImageUnpacking::digestFor(const std::string& image,
                                                     const WorkKey& waiting) {
    {
        const MutexLock lock(mutex_);
        if (const auto found = failed_.find(waiting); found != failed_.end()) {
            const std::exception_ptr why = found->second;
            failed_.erase(found);
            std::rethrow_exception(why);
        }
    }
    std::optional<std::string> digest = runtime_.readyImage(image);
    if (digest) return digest;
    {
        const MutexLock lock(mutex_);
        waiting_[image].insert(waiting);
    }
    // After the entry: an unpacking that has just ended adds `waiting`, or a new one begins.
    work_.add({WorkKind::Unpack, image});
    return std::nullopt;
}

ReconcileResult ImageUnpacking::unpack(const std::string& image) {
    std::exception_ptr failure;
    try {
        runtime_.resolveImage(image);
    } catch (const std::exception&) {
        failure = std::current_exception();  // for the waiting work: its pool reports the reason
    }
    std::set<WorkKey> ready;
    {
        const MutexLock lock(mutex_);
        if (const auto found = waiting_.find(image); found != waiting_.end()) {
            ready = std::move(found->second);
            waiting_.erase(found);
        }
        for (const WorkKey& key : ready) {
            if (failure) failed_[key] = failure;
        }
    }
    for (const WorkKey& key : ready) work_.add(key);
    return ReconcileResult::settled();
}

void ImageUnpacking::forget(const WorkKey& waiting) {
    const MutexLock lock(mutex_);
    failed_.erase(waiting);
    for (auto each = waiting_.begin(); each != waiting_.end();) {
        each->second.erase(waiting);
        each = each->second.empty() ? waiting_.erase(each) : std::next(each);
    }
}

}  // namespace hearth::controller
