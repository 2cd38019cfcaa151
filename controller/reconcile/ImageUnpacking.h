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

/// Unpacks images by keys of their own ("unpack", image): work that needs an image is put aside and
/// comes back when the image is ready, so no worker of another lane waits for it. Thread-safe.
class ImageUnpacking {
public:
    ImageUnpacking(pool::ImageRuntime& runtime, WorkQueue& work) : runtime_(runtime), work_(work) {}

    /// The digest of an image that is ready. nullopt: it is unpacked first, and `waiting` is added
    /// to the queue after that. Throws what the runtime says of an image it does not have, and once
    /// why the unpacking that `waiting` waited for has failed.
    std::optional<std::string> digestFor(const std::string& image, const WorkKey& waiting);
    /// The work on a key ("unpack", image).
    ReconcileResult unpack(const std::string& image);
    /// The work on `waiting` needs no image any more.
    void forget(const WorkKey& waiting);

private:
    pool::ImageRuntime& runtime_;
    WorkQueue& work_;
    Mutex mutex_;
    std::map<std::string, std::set<WorkKey>> waiting_ HEARTH_GUARDED_BY(mutex_);  // by image
    std::map<WorkKey, std::exception_ptr> failed_ HEARTH_GUARDED_BY(mutex_);      // not told yet
};

}  // namespace hearth::controller
