#pragma once

#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "base/Error.h"
#include "base/Ids.h"
#include "base/Subscribers.h"
#include "controller/Services.h"
#include "tests/support/FakeIds.h"
#include "tests/support/FakeStock.h"

namespace hearth::test {

/// Workspaces with files in memory. Each belongs to the tenant that opened it.
class FakeWorkspaces final : public controller::Workspaces {
public:
    explicit FakeWorkspaces(FakeStock& stock) : stock_(stock) {}

    std::optional<Error> refuse_create;                       ///< thrown by create() if set
    std::optional<std::set<std::string>> images;              ///< existing images; nullopt: all
    egress::NetworkMode network = egress::NetworkMode::None;  ///< of all workspaces
    bool change_before_read = false;  ///< each file changes before it is read
    /// Called with the workspace's id before a stat, like an agent that answers late.
    std::function<void(const std::string& id)> before_stat;
    controller::WorkspaceRequest request;  ///< the last; read between calls, like the others
    std::optional<unsigned> mode;
    std::string listed, moved, removed;

    /// Keeps only kWorkspace from now on, which every tenant owns and create() returns.
    void keepOne() {
        only_ = true;
        entries_[kWorkspace] = {viewOf(kWorkspace, "default", {}), {{"a.txt", "hello world"}}};
        entries_[kWorkspace].view.labels = {{"app", "x"}};
    }
    std::map<std::string, std::string>& filesOf(const std::string& id) {
        return entries_.at(id).files;
    }

    Task<std::vector<controller::WorkspaceView>> createAll(controller::Principal who,
                                                           controller::WorkspaceRequest given,
                                                           std::size_t count) override {
        std::vector<controller::WorkspaceView> all;
        while (all.size() < count) {
            Task<controller::WorkspaceView> one = create(who, given);
            all.push_back(co_await one);
        }
        co_return all;
    }
    Task<controller::WorkspaceView> create(controller::Principal who,
                                           controller::WorkspaceRequest given) override {
        if (refuse_create) throw Error(*refuse_create);
        if (images && given.image && !images->contains(*given.image)) {
            throw Error(ErrorCode::InvalidSpec, "no pool has image " + *given.image)
                .hint("pools have: python");
        }
        Task<> taking = stock_.take();
        co_await taking;
        co_return made(who, given);
    }
    controller::WorkspaceView made(const Principal& who,
                                   const controller::WorkspaceRequest& given) {
        const std::lock_guard lock(mutex_);
        request = given;
        const std::string id = only_ ? kWorkspace : newId("ws_");
        if (!only_) entries_[id] = {viewOf(id, who.tenant, given), {}};
        Entry& entry = entries_[id];
        for (const controller::InlineFile& file : given.files) entry.files[file.path] = file.bytes;
        controller::WorkspaceView view = entry.view;
        view.claim = controller::ClaimLedger{.bind_ms = 0.2, .total_ms = 0.3};
        view.replayed =
            !given.idempotency_key.empty() && !keys_.insert(given.idempotency_key).second;
        return view;
    }
    controller::WorkspaceView get(const Principal& who, const std::string& id) override {
        const std::lock_guard lock(mutex_);
        return find(who, id).view;
    }
    controller::Page<controller::WorkspaceView> list(const Principal& who,
                                                     const controller::ListQuery& query) override {
        const std::lock_guard lock(mutex_);
        controller::Page<controller::WorkspaceView> page;
        for (const auto& [id, entry] : entries_) {
            const auto& labels = entry.view.labels;
            const bool fits =
                std::all_of(query.labels.begin(), query.labels.end(), [&](const auto& wanted) {
                    const auto found = labels.find(wanted.first);
                    return found != labels.end() && found->second == wanted.second;
                });
            if (fits && (only_ || entry.view.tenant == who.tenant))
                page.items.push_back(entry.view);
        }
        return page;
    }
    controller::WorkspaceView patch(const Principal& who, const std::string& id,
                                    const controller::WorkspacePatch& patch) override {
        const std::lock_guard lock(mutex_);
        controller::WorkspaceView& view = find(who, id).view;
        if (!patch.labels) return view;
        for (const auto& [key, value] : *patch.labels) {
            if (value) {
                view.labels[key] = *value;
            } else {
                view.labels.erase(key);
            }
        }
        return view;
    }
    controller::WorkspaceView touch(const Principal& who, const std::string& id) override {
        return get(who, id);
    }
    void close(const Principal& who, const std::string& id) override {
        const std::lock_guard lock(mutex_);
        find(who, id);
        if (only_) return;
        entries_.erase(id);
        gone_.insert(id);
    }
    controller::WorkspaceUsage usage(const Principal&, const std::string&) override { return {}; }
    egress::EgressReport egress(const Principal&, const std::string&) override { return {}; }
    std::vector<std::string> languages(const Principal&, const std::string&) override {
        return {"python", "sh"};
    }
    using Workspaces::stat;
    agent::FileStat stat(const Principal& who, const std::string& id, const std::string& path,
                         std::chrono::milliseconds) override {
        if (before_stat) before_stat(id);
        const std::lock_guard lock(mutex_);
        return statOf(find(who, id), path);
    }
    void readFile(const Principal& who, const std::string& id, const std::string& path,
                  std::uint64_t offset, std::uint64_t length,
                  const std::function<void(const agent::FileStat&)>& begin,
                  const std::function<bool(std::string_view)>& chunk) override {
        if (change_before_read) ++version_;
        begin(stat(who, id, path));
        const std::lock_guard lock(mutex_);
        std::string_view bytes = find(who, id).files.at(path);
        bytes = bytes.substr(static_cast<std::size_t>(offset), static_cast<std::size_t>(length));
        constexpr std::size_t kPiece = 100'000;
        for (; !bytes.empty(); bytes.remove_prefix(std::min(kPiece, bytes.size()))) {
            if (!chunk(bytes.substr(0, kPiece))) return;
        }
    }
    agent::FileStat writeFile(const Principal& who, const std::string& id, const std::string& path,
                              std::optional<unsigned> given,
                              const std::function<std::size_t(char*, std::size_t)>& next) override {
        std::string bytes;
        char piece[7];
        while (const std::size_t n = next(piece, sizeof piece)) bytes.append(piece, n);
        agent::FileStat written;
        {
            const std::lock_guard lock(mutex_);
            mode = given;
            Entry& entry = find(who, id);
            if (entry.files.contains(path)) ++version_;
            entry.files[path] = bytes;
            written = statOf(entry, path);
        }
        of_files_.notify(id);
        return written;
    }
    void readArchive(const Principal&, const std::string&, const std::string& path,
                     const std::function<bool(std::string_view)>& chunk) override {
        chunk("tar of " + path);
    }
    agent::ArchiveCount writeArchive(
        const Principal&, const std::string&, const std::string&,
        const std::function<std::size_t(char*, std::size_t)>& next) override {
        agent::ArchiveCount count;
        char piece[7];
        while (const std::size_t size = next(piece, sizeof piece)) count.bytes += size;
        return count;
    }
    agent::FileList listFiles(const Principal& who, const std::string& id, const std::string& path,
                              bool recursive, std::size_t limit,
                              const std::string& after) override {
        const std::lock_guard lock(mutex_);
        listed = path + (recursive ? " recursive " : " ") + std::to_string(limit) + " " + after;
        agent::FileList list;
        const Entry& entry = find(who, id);
        for (const auto& [name, bytes] : entry.files) {
            if (name <= after) continue;
            if (list.items.size() == limit) {
                list.next = list.items.back().path;
                break;
            }
            list.items.push_back(statOf(entry, name));
        }
        return list;
    }
    void makeDirectory(const Principal&, const std::string&, const std::string&) override {}
    void moveFile(const Principal&, const std::string&, const std::string& from,
                  const std::string& to) override {
        moved = from + " " + to;
    }
    void removeFile(const Principal&, const std::string&, const std::string& path,
                    bool recursive) override {
        removed = path + (recursive ? " recursive" : "");
    }
    std::shared_ptr<void> subscribeToFiles(
        std::function<void(const std::string& workspace)> changed) override {
        return of_files_.add(std::move(changed));
    }
    /// Overwrites a file like a program in the workspace: nobody is notified.
    void overwrite(const std::string& id, const std::string& path, const std::string& bytes) {
        const std::lock_guard lock(mutex_);
        ++version_;
        entries_.at(id).files[path] = bytes;
    }

private:
    struct Entry {
        controller::WorkspaceView view;
        std::map<std::string, std::string> files;
    };

    controller::WorkspaceView viewOf(const std::string& id, const std::string& tenant,
                                     const controller::WorkspaceRequest& given) const {
        controller::WorkspaceView view;
        view.id = id;
        view.pool = given.pool.value_or("python");
        view.sandbox_id = kSandbox;
        view.phase = controller::WorkspacePhase::Active;
        view.tenant = tenant;
        view.name = given.name;
        view.labels = given.labels;
        view.network = network;
        view.created_at = view.last_active_at = kTime;
        view.idle_expires_at = "2026-11-21T03:14:05.678Z";
        view.expires_at = "2030-01-01T04:00:00.000Z";
        return view;
    }
    /// "." and "dir" are directories.
    agent::FileStat statOf(const Entry& entry, const std::string& path) const {
        agent::FileStat out;
        out.path = path;
        out.mode = 0644;
        out.modified_unix_ms = 1'700'000'000'000;
        out.type = agent::FileType::Directory;
        out.etag = "e" + std::to_string(version_);
        if (path == "." || path == "dir") return out;
        const auto found = entry.files.find(path);
        if (found == entry.files.end()) throw Error(ErrorCode::NotFound, path + ": no such file");
        out.type = agent::FileType::File;
        out.size = found->second.size();
        return out;
    }
    Entry& find(const Principal& who, const std::string& id) {
        const auto found = entries_.find(id);
        if (found == entries_.end() || (!only_ && found->second.view.tenant != who.tenant)) {
            if (!gone_.contains(id)) throw Error(ErrorCode::NotFound, "no workspace " + id);
            throw Error(ErrorCode::Gone, "the workspace has ended")
                .ended("deleted", "2026-01-01T00:00:00.000Z");
        }
        return found->second;
    }

    FakeStock& stock_;
    SubscribersTo<std::string> of_files_;
    std::mutex mutex_;
    std::map<std::string, Entry> entries_;
    std::set<std::string> gone_;
    std::set<std::string> keys_;
    std::atomic<int> version_ = 1;
    bool only_ = false;
};

}  // namespace hearth::test
