#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/Json.h"
#include "base/Mutex.h"
#include "base/Subscribers.h"

namespace hearth::pool::kubernetes {

/// An object of the API server as it was last seen, shared by all readers, so never changed.
using KubeObject = std::shared_ptr<const Json>;

/// "NAMESPACE/NAME", or "NAME" for an object that has no namespace.
std::string objectKey(const Json& object);
/// metadata.uid, metadata.resourceVersion and others; empty if absent.
std::string metadataText(const Json& object, const char* field);
/// The value at a JSON pointer; null if there is none.
const Json& valueAt(const Json& object, const char* pointer);
/// The string at a JSON pointer; empty if there is none.
std::string valueText(const Json& object, const char* pointer);

/// One step of an object's life.
struct ObjectChange {
    enum class Kind { Added, Updated, Deleted };
    Kind kind = Kind::Added;
    KubeObject before;  ///< null for Added
    KubeObject now;     ///< null for Deleted
    /// Of Deleted: a relist found it gone, so `before` may be older than its last state.
    bool late = false;
};

/// The texts under which an index finds an object, e.g. the name of its node.
using IndexKeys = std::function<std::vector<std::string>(const Json&)>;
/// By metadata.ownerReferences[].uid.
std::vector<std::string> ownerUids(const Json& object);
/// By spec.nodeName.
std::vector<std::string> nodeName(const Json& object);
/// By the value of one label.
IndexKeys labelValue(std::string label);

/// The objects of one resource, as the last list and the events after it say.
/// metadata.managedFields is left out: it is often half of an object, and nobody here reads it.
///
/// Readers and subscribers are any threads. One thread at a time writes (replace, apply), and tells
/// the subscribers of each change, in order, while no lock is held. A subscriber gets no call for
/// what is there already: subscribe first, then list().
class ObjectCache {
public:
    /// Indexes by name, for find(). Their functions do not throw.
    explicit ObjectCache(std::map<std::string, IndexKeys> indexes = {});

    /// The subscription ends with the returned object. The callback neither blocks nor throws.
    std::shared_ptr<void> subscribe(std::function<void(const ObjectChange&)> changed);

    /// Makes the contents equal to a list: adds, updates, and deletes what is not in it. An object
    /// with the key of another uid is a new one: the old one is deleted first.
    void replace(std::vector<Json> items);
    /// An object that was added or modified.
    void put(Json object);
    /// An object that was deleted, in its last state.
    void remove(const Json& object);

    /// Null if there is none.
    KubeObject get(const std::string& key) const;
    std::vector<KubeObject> list() const;
    /// Those that the index finds under `value`. Throws std::out_of_range for an unknown index.
    std::vector<KubeObject> find(const std::string& index, const std::string& value) const;
    std::size_t size() const;
    /// True after the first replace().
    bool hasSynced() const;

private:
    using ByValue = std::unordered_map<std::string, std::map<std::string, KubeObject>>;

    /// Stores it and adds what has changed to `changes`.
    void store(Json object, std::vector<ObjectChange>& changes) HEARTH_REQUIRES(mutex_);
    void drop(const std::string& key, bool late, std::vector<ObjectChange>& changes)
        HEARTH_REQUIRES(mutex_);
    void index(const std::string& key, const KubeObject& object) HEARTH_REQUIRES(mutex_);
    void unindex(const std::string& key, const KubeObject& object) HEARTH_REQUIRES(mutex_);
    void tell(const std::vector<ObjectChange>& changes);

    const std::map<std::string, IndexKeys> indexes_;
    SubscribersTo<ObjectChange> subscribers_;
    mutable Mutex mutex_;
    std::map<std::string, KubeObject> objects_ HEARTH_GUARDED_BY(mutex_);
    std::map<std::string, ByValue> found_ HEARTH_GUARDED_BY(mutex_);
    bool synced_ HEARTH_GUARDED_BY(mutex_) = false;
};

}  // namespace hearth::pool::kubernetes
