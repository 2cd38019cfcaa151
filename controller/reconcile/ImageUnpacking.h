#pragma once

#include <exception>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "base/Mutex.h"
#include "controller/queue/ReconcileLoop.h"
#include "controller/queue/WorkQueue.h"
#include "pool/runtime/ImageRuntime.h"

namespace hearth::controller {

/// Unpacks images by keys of their own ("unpack", image): work that needs an image is set aside and
/// comes back when the image is ready, so no worker of another lane waits for it. Thread-safe.
class ImageUnpacking {
public:
    ImageUnpacking(pool::ImageRuntime& runtime, WorkQueue& work) : runtime_(runtime), work_(work) {}

    /// Returns the digest of a ready image. nullopt: it is unpacked first, and then `waiting` is
    /// added to the queue. Throws the runtime's error for an image it does not have, and, once, the
    /// reason why the unpacking that `waiting` waited for has failed.
    std::optional<std::string> digestFor(const std::string& image, const WorkKey& waiting);
    /// Does the work on a key ("unpack", image).
    ReconcileResult unpack(const std::string& image);
    /// The work on `waiting` no longer needs an image.
    void forget(const WorkKey& waiting);

private:
    pool::ImageRuntime& runtime_;
    WorkQueue& work_;
    Mutex mutex_;
    std::map<std::string, std::set<WorkKey>> waiting_ HEARTH_GUARDED_BY(mutex_);  // by image
    std::map<WorkKey, std::exception_ptr> failed_ HEARTH_GUARDED_BY(mutex_);      // unreported
};

}  // namespace hearth::controller
