#include "tests/fake/runtime/FakeFiles.h"

#include <nlohmann/json.hpp>

#include "pool/agent/protocol/Glob.h"

namespace hearth::pool {
namespace {

bool isBeneath(const std::string& path, const std::string& directory) {
    if (directory.empty()) return true;
    return path.size() > directory.size() && path.starts_with(directory) &&
           path[directory.size()] == '/';
}

}  // namespace

Json FakeRefusal::body() const {
    Json out{{"code", code}, {"message", message}};
    out.update(details);
    return out;
}

/// Converts "a//b/./c" to "a/b/c", and the root to "".
std::string FakeFiles::clean(const std::string& path, const Json& details) {
    std::string out;
    std::size_t at = 0;
    if (path.starts_with('/') || path.find('\0') != std::string::npos) {
        throw FakeRefusal{"BAD_PATH", "the path is not relative", details};
    }
    while (at < path.size()) {
        std::size_t end = path.find('/', at);
        if (end == std::string::npos) end = path.size();
        const std::string part = path.substr(at, end - at);
        if (part == "..") {
            throw FakeRefusal{"BAD_PATH", "the path leads out of the workspace", details};
        }
        if (!part.empty() && part != ".") out += (out.empty() ? "" : "/") + part;
        at = end + 1;
    }
    return out;
}

const FakeFiles::Entry& FakeFiles::at(const std::string& clean_path) const {
    static const Entry root{.content = nullptr, .mode = 0755};
    if (clean_path.empty()) return root;
    const auto it = entries_.find(clean_path);
    if (it == entries_.end()) throw FakeRefusal{"NOT_FOUND", "there is no such file"};
    return it->second;
}

FakeFiles::Entry FakeFiles::made(std::shared_ptr<const std::string> content, unsigned mode) const {
    return {std::move(content), mode, clock_.now().time_since_epoch().count(),
            toUnixMillis(clock_.wall())};
}

Json FakeFiles::describe(const std::string& clean_path, const Entry& entry) const {
    const std::size_t size = entry.content ? entry.content->size() : 0;
    return {{"path", clean_path},
            {"type", entry.content ? "file" : "directory"},
            {"size", size},
            {"mode", entry.mode},
            {"modifiedAtMs", entry.modified_unix_ms},
            {"etag", std::to_string(entry.modified_ns) + "-" + std::to_string(size)}};
}

Json FakeFiles::stat(const std::string& path) const {
    const std::string name = clean(path);
    return describe(name, at(name));
}

std::shared_ptr<const std::string> FakeFiles::read(const std::string& path) const {
    const Entry& entry = at(clean(path));
    if (!entry.content) throw FakeRefusal{"IS_A_DIRECTORY", "the path is a directory"};
    return entry.content;
}

void FakeFiles::checkWrite(const std::string& path) const {
    const std::string name = clean(path);
    if (name.empty()) throw FakeRefusal{"IS_A_DIRECTORY", "the path is a directory"};
    const auto it = entries_.find(name);
    if (it != entries_.end() && !it->second.content) {
        throw FakeRefusal{"IS_A_DIRECTORY", "the path is a directory"};
    }
    for (std::size_t slash = name.find('/'); slash != std::string::npos;
         slash = name.find('/', slash + 1)) {
        const auto parent = entries_.find(name.substr(0, slash));
        if (parent != entries_.end() && parent->second.content) {
            throw FakeRefusal{"NOT_A_DIRECTORY", "a part of the path is a file"};
        }
    }
}

void FakeFiles::makeParents(const std::string& clean_path) {
    for (std::size_t slash = clean_path.find('/'); slash != std::string::npos;
         slash = clean_path.find('/', slash + 1)) {
        entries_.try_emplace(clean_path.substr(0, slash), made(nullptr, 0755));
    }
}

Json FakeFiles::write(const std::string& path, std::optional<unsigned> mode, std::string bytes) {
    checkWrite(path);
    const std::string name = clean(path);
    if (used() + bytes.size() > capacity_) throw FakeRefusal{"NO_SPACE", "the workspace is full"};
    makeParents(name);
    Entry& entry = entries_[name];
    entry = made(std::make_shared<const std::string>(std::move(bytes)), mode.value_or(0644));
    return describe(name, entry);
}

Json FakeFiles::list(const std::string& path, bool recursive, std::size_t limit,
                     const std::string& after) const {
    const std::string name = clean(path);
    if (at(name).content) throw FakeRefusal{"NOT_A_DIRECTORY", "the path is a file"};
    Json answer{{"items", Json::array()}};
    for (const auto& [key, entry] : entries_) {
        if (!isBeneath(key, name) || (!after.empty() && key <= after)) continue;
        const std::size_t from = name.empty() ? 0 : name.size() + 1;
        if (!recursive && key.find('/', from) != std::string::npos) continue;
        if (answer["items"].size() == limit) {
            answer["next"] = answer["items"].back()["path"];
            break;
        }
        answer["items"].push_back(describe(key, entry));
    }
    return answer;
}

void FakeFiles::makeDirectory(const std::string& path) {
    const std::string name = clean(path);
    if (name.empty() || entries_.contains(name)) throw FakeRefusal{"EXISTS", "the path exists"};
    checkWrite(path);
    makeParents(name);
    entries_.emplace(name, made(nullptr, 0755));
}

void FakeFiles::move(const std::string& from, const std::string& to) {
    const std::string source = clean(from);
    if (source.empty()) throw FakeRefusal{"BAD_PATH", "the workspace itself stays"};
    at(source);
    const Json field{{"field", "to"}};
    const std::string target = clean(to, field);
    if (target.empty() || isBeneath(target, source)) {
        throw FakeRefusal{"BAD_PATH", "a directory cannot be moved into itself", field};
    }
    if (source == target) return;
    checkWrite(to);
    makeParents(target);
    std::map<std::string, Entry> moved;
    for (auto it = entries_.begin(); it != entries_.end();) {
        if (it->first != source && !isBeneath(it->first, source)) {
            ++it;
            continue;
        }
        moved.insert_or_assign(target + it->first.substr(source.size()), std::move(it->second));
        it = entries_.erase(it);
    }
    for (auto& [key, entry] : moved) entries_.insert_or_assign(key, std::move(entry));
}

void FakeFiles::remove(const std::string& path, bool recursive) {
    const std::string name = clean(path);
    if (name.empty()) throw FakeRefusal{"DENIED", "the workspace itself stays"};
    if (!at(name).content && !recursive) {
        const auto next = entries_.upper_bound(name + "/");
        if (next != entries_.end() && isBeneath(next->first, name)) {
            throw FakeRefusal{"IS_A_DIRECTORY", "the directory is not empty"};
        }
    }
    std::erase_if(entries_, [&](const auto& entry) {
        return entry.first == name || isBeneath(entry.first, name);
    });
}

Json FakeFiles::changes(std::int64_t since_ns, std::size_t limit,
                        const std::vector<std::string>& globs) const {
    Json items = Json::array();
    for (const auto& [key, entry] : entries_) {
        if (!entry.content || entry.modified_ns < since_ns) continue;
        if (!globs.empty() && !agent::anyGlobMatches(globs, key)) continue;
        if (items.size() == limit) return {{"items", std::move(items)}, {"more", true}};
        items.push_back(describe(key, entry));
    }
    return {{"items", std::move(items)}};
}

std::uint64_t FakeFiles::used() const {
    std::uint64_t sum = 0;
    for (const auto& [key, entry] : entries_) {
        if (entry.content) sum += entry.content->size();
    }
    return sum;
}

}  // namespace hearth::pool
