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

/// The last seen state of an API object, shared by all readers and never changed.
using KubeObject = std::shared_ptr<const Json>;

/// Returns "NAMESPACE/NAME", or "NAME" for an object without a namespace.
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
    /// For Deleted: a relist found it gone, so `before` may be older than its last state.
    bool late = false;
};

/// Returns the texts under which an index finds an object, for example its node's name.
using IndexKeys = std::function<std::vector<std::string>(const Json&)>;
/// Indexes by metadata.ownerReferences[].uid.
std::vector<std::string> ownerUids(const Json& object);
/// Indexes by spec.nodeName.
std::vector<std::string> nodeName(const Json& object);
/// Indexes by the value of one label.
IndexKeys labelValue(std::string label);

/// The objects of one resource, according to the last list and the later events.
/// metadata.managedFields is removed: it is often half of an object, and no code here reads it.
///
/// Readers and subscribers may be any threads. One thread at a time writes (replace, apply), and
/// reports each change to the subscribers, in order, while no lock is held. A subscriber gets no
/// call for existing objects: subscribe first, then list().
class ObjectCache {
public:
    /// Named indexes for find(). Their functions must not throw.
    explicit ObjectCache(std::map<std::string, IndexKeys> indexes = {});

    /// The subscription ends with the returned object. The callback must neither block nor throw.
    std::shared_ptr<void> subscribe(std::function<void(const ObjectChange&)> changed);

    /// Makes the contents equal to a list: adds, updates, and deletes objects that are missing in
    /// it. A new uid under a known key means a new object: the old one is deleted first.
    void replace(std::vector<Json> items);
    /// Stores an object that was added or modified.
    void put(Json object);
    /// Removes an object that was deleted, given in its last state.
    void remove(const Json& object);

    /// Null if there is none.
    KubeObject get(const std::string& key) const;
    std::vector<KubeObject> list() const;
    /// Returns the index's objects for `value`. Throws std::out_of_range for an unknown index.
    std::vector<KubeObject> find(const std::string& index, const std::string& value) const;
    std::size_t size() const;
    /// True after the first replace().
    bool hasSynced() const;

private:
    using ByValue = std::unordered_map<std::string, std::map<std::string, KubeObject>>;

    /// Stores the object and adds the changes to `changes`.
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
