#include "pool/runtime/kubernetes/client/ObjectCache.h"

#include <nlohmann/json.hpp>
#include <unordered_set>

namespace hearth::pool::kubernetes {
namespace {

/// The object at `key`; null if there is none.
const Json* objectIn(const Json& object, const char* key) {
    const auto found = object.find(key);
    return found != object.end() && found->is_object() ? &*found : nullptr;
}

}  // namespace

std::string metadataText(const Json& object, const char* field) {
    const Json* const metadata = objectIn(object, "metadata");
    return metadata == nullptr ? std::string() : textAt(*metadata, field);
}

const Json& valueAt(const Json& object, const char* pointer) {
    static const Json none;
    const Json::json_pointer where(pointer);
    return object.contains(where) ? object[where] : none;
}

std::string valueText(const Json& object, const char* pointer) {
    const Json& value = valueAt(object, pointer);
    return value.is_string() ? value.get<std::string>() : std::string();
}

std::string objectKey(const Json& object) {
    const std::string ns = metadataText(object, "namespace");
    const std::string name = metadataText(object, "name");
    return ns.empty() ? name : ns + "/" + name;
}

std::vector<std::string> ownerUids(const Json& object) {
    std::vector<std::string> uids;
    const Json* const metadata = objectIn(object, "metadata");
    if (metadata == nullptr) return uids;
    const auto owners = metadata->find("ownerReferences");
    if (owners == metadata->end() || !owners->is_array()) return uids;
    for (const Json& owner : *owners) {
        if (owner.is_object()) uids.push_back(textAt(owner, "uid"));
    }
    return uids;
}

std::vector<std::string> nodeName(const Json& object) {
    const Json* const spec = objectIn(object, "spec");
    const std::string node = spec == nullptr ? std::string() : textAt(*spec, "nodeName");
    return node.empty() ? std::vector<std::string>() : std::vector<std::string>{node};
}

IndexKeys labelValue(std::string label) {
    return [label = std::move(label)](const Json& object) -> std::vector<std::string> {
        const Json* const metadata = objectIn(object, "metadata");
        const Json* const labels = metadata == nullptr ? nullptr : objectIn(*metadata, "labels");
        if (labels == nullptr || !labels->contains(label)) return {};
        return {textAt(*labels, label.c_str())};
    };
}

ObjectCache::ObjectCache(std::map<std::string, IndexKeys> indexes) : indexes_(std::move(indexes)) {
    const MutexLock lock(mutex_);
    for (const auto& [name, keys] : indexes_) found_[name];
}

std::shared_ptr<void> ObjectCache::subscribe(std::function<void(const ObjectChange&)> changed) {
    return subscribers_.add(std::move(changed));
}

void ObjectCache::replace(std::vector<Json> items) {
    std::vector<ObjectChange> changes;
    {
        const MutexLock lock(mutex_);
        std::unordered_set<std::string> listed;
        for (const Json& item : items) listed.insert(objectKey(item));
        std::vector<std::string> vanished;
        for (const auto& [key, object] : objects_) {
            if (!listed.contains(key)) vanished.push_back(key);
        }
        for (const std::string& key : vanished) drop(key, true, changes);
        for (Json& item : items) store(std::move(item), changes);
        synced_ = true;
    }
    tell(changes);
}

void ObjectCache::put(Json object) {
    std::vector<ObjectChange> changes;
    {
        const MutexLock lock(mutex_);
        store(std::move(object), changes);
    }
    tell(changes);
}

void ObjectCache::remove(const Json& object) {
    std::vector<ObjectChange> changes;
    {
        const MutexLock lock(mutex_);
        const std::string key = objectKey(object);
        const auto known = objects_.find(key);
        if (known == objects_.end()) return;
        // The event has the last state, unless it belongs to a successor that was never seen.
        const bool same = metadataText(*known->second, "uid") == metadataText(object, "uid");
        drop(key, !same, changes);
        if (same) {
            Json last = object;
            last["metadata"].erase("managedFields");
            changes.back().before = std::make_shared<const Json>(std::move(last));
        }
    }
    tell(changes);
}

void ObjectCache::store(Json object, std::vector<ObjectChange>& changes) {
    object["metadata"].erase("managedFields");
    const std::string key = objectKey(object);
    const auto fresh = std::make_shared<const Json>(std::move(object));
    const auto known = objects_.find(key);
    if (known != objects_.end() &&
        metadataText(*known->second, "uid") != metadataText(*fresh, "uid")) {
        drop(key, true, changes);
    } else if (known != objects_.end()) {
        const KubeObject before = known->second;
        const std::string version = metadataText(*before, "resourceVersion");
        if (!version.empty() && version == metadataText(*fresh, "resourceVersion")) return;
        unindex(key, before);
        known->second = fresh;
        index(key, fresh);
        changes.push_back({.kind = ObjectChange::Kind::Updated, .before = before, .now = fresh});
        return;
    }
    objects_[key] = fresh;
    index(key, fresh);
    changes.push_back({.kind = ObjectChange::Kind::Added, .before = nullptr, .now = fresh});
}

void ObjectCache::drop(const std::string& key, bool late, std::vector<ObjectChange>& changes) {
    const auto known = objects_.find(key);
    const KubeObject before = known->second;
    unindex(key, before);
    objects_.erase(known);
    changes.push_back(
        {.kind = ObjectChange::Kind::Deleted, .before = before, .now = nullptr, .late = late});
}

void ObjectCache::index(const std::string& key, const KubeObject& object) {
    for (const auto& [name, keys] : indexes_) {
        for (const std::string& value : keys(*object)) found_[name][value][key] = object;
    }
}

void ObjectCache::unindex(const std::string& key, const KubeObject& object) {
    for (const auto& [name, keys] : indexes_) {
        ByValue& by_value = found_[name];
        for (const std::string& value : keys(*object)) {
            const auto at = by_value.find(value);
            if (at == by_value.end()) continue;
            at->second.erase(key);
            if (at->second.empty()) by_value.erase(at);
        }
    }
}

void ObjectCache::tell(const std::vector<ObjectChange>& changes) {
    for (const ObjectChange& change : changes) subscribers_.notify(change);
}

KubeObject ObjectCache::get(const std::string& key) const {
    const MutexLock lock(mutex_);
    const auto found = objects_.find(key);
    return found == objects_.end() ? nullptr : found->second;
}

std::vector<KubeObject> ObjectCache::list() const {
    std::vector<KubeObject> out;
    const MutexLock lock(mutex_);
    out.reserve(objects_.size());
    for (const auto& [key, object] : objects_) out.push_back(object);
    return out;
}

std::vector<KubeObject> ObjectCache::find(const std::string& index,
                                          const std::string& value) const {
    std::vector<KubeObject> out;
    const MutexLock lock(mutex_);
    const ByValue& by_value = found_.at(index);
    const auto found = by_value.find(value);
    if (found == by_value.end()) return out;
    for (const auto& [key, object] : found->second) out.push_back(object);
    return out;
}

std::size_t ObjectCache::size() const {
    const MutexLock lock(mutex_);
    return objects_.size();
}

bool ObjectCache::hasSynced() const {
    const MutexLock lock(mutex_);
    return synced_;
}

}  // namespace hearth::pool::kubernetes
