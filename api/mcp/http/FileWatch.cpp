#include "api/mcp/http/FileWatch.h"

#include <chrono>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "api/mcp/resources/WorkspaceResources.h"
#include "base/Error.h"

namespace hearth::mcp {
namespace {

/// The pause between a change and the look at the files, so that a burst costs one look.
constexpr std::chrono::milliseconds kGather{50};
/// How long an agent may take to answer about a file; a silent agent holds the thread no longer.
constexpr std::chrono::seconds kPatience{2};
/// The pause before a silent agent is asked again.
constexpr std::chrono::seconds kAskAgain{10};
constexpr std::size_t kFileThreads = 4;

}  // namespace

/// A workspace that a tenant watches.
struct FileWatch::Place {
    std::string tenant;
    std::string workspace;
    const std::shared_ptr<Signal> news = std::make_shared<Signal>();
    // Guarded by the table's mutex, which the checker cannot name here.
    std::set<Watched*> files;
    std::shared_ptr<void> task;  ///< destroying it ends follow()
};

/// One watched file; its destructor removes it from the table.
struct FileWatch::Watched : std::enable_shared_from_this<FileWatch::Watched> {
    controller::Principal who;
    std::string uri;
    FileUri file;
    std::weak_ptr<Table> table;
    Mutex mutex;
    /// Empty: there was no such file.
    std::string seen HEARTH_GUARDED_BY(mutex);

    Watched() = default;
    Watched(const Watched&) = delete;
    Watched& operator=(const Watched&) = delete;
    ~Watched() {
        const std::shared_ptr<Table> alive = table.lock();
        if (!alive) return;
        std::shared_ptr<void> task;  // ends after the lock
        const MutexLock lock(alive->mutex);
        const auto places = alive->places.find(file.workspace);
        if (places == alive->places.end()) return;
        const auto place = places->second.find(who.tenant);
        if (place == places->second.end() || place->second->files.erase(this) == 0) return;
        if (!place->second->files.empty()) return;
        task.swap(place->second->task);
        places->second.erase(place);
        if (places->second.empty()) alive->places.erase(places);
    }
};

namespace {

/// Returns the file's ETag, empty if there is no file; nullopt if it is unknown at the moment.
std::optional<std::string> tagOf(const controller::Services& services,
                                 const controller::Principal& who, const FileUri& file,
                                 std::chrono::milliseconds patience) {
    try {
        return services.workspaces.stat(who, file.workspace, file.path, patience).etag;
    } catch (const Error& error) {
        const ErrorCode code = error.code();
        const bool late = code == ErrorCode::Unavailable || code == ErrorCode::Deadline;
        return late ? std::nullopt : std::optional<std::string>("");
    }
}

}  // namespace

void FileWatch::Table::look(const std::string& workspace) {
    std::vector<PlacePtr> all;
    {
        const MutexLock lock(mutex);
        const auto found = places.find(workspace);
        if (found == places.end()) return;
        for (const auto& [tenant, place] : found->second) all.push_back(place);
    }
    for (const PlacePtr& place : all) place->news->set();
}

FileWatch::FileWatch(const controller::Services& services, Changed changed)
    : services_(services),
      changed_(std::move(changed)),
      of_files_(services.workspaces.subscribeToFiles(
          [table = table_](const std::string& workspace) { table->look(workspace); })),
      executor_(clock_, kFileThreads, "mcp-files") {}

std::shared_ptr<void> FileWatch::watch(const controller::Principal& who, const std::string& uri) {
    std::optional<FileUri> file = fileOf(uri);
    if (!file) return nullptr;
    auto watched = std::make_shared<Watched>();
    watched->who = {who.tenant, controller::Role::User, ""};
    watched->uri = uri;
    watched->file = std::move(*file);
    {
        const MutexLock lock(table_->mutex);
        auto& places = table_->places[watched->file.workspace];
        std::size_t files = 0;
        for (const auto& [tenant, place] : places) files += place->files.size();
        if (files >= kMostOfWorkspace) return nullptr;
        PlacePtr& place = places[who.tenant];
        if (!place) {
            place = std::make_shared<Place>();
            place->tenant = who.tenant;
            place->workspace = watched->file.workspace;
            place->task = executor_.start(who.tenant, follow(place));
        }
        place->files.insert(watched.get());
        watched->table = table_;
    }
    // After the entry is in the table: a later change leads to a look, which compares this tag.
    const std::string now =
        tagOf(services_, watched->who, watched->file, agent::kDataPatience).value_or("");
    const MutexLock lock(watched->mutex);
    watched->seen = now;
    return watched;
}

// NOLINTNEXTLINE(performance-unnecessary-value-param): the frame keeps it
Task<> FileWatch::follow(PlacePtr place) {
    std::shared_ptr<Signal> news = place->news;
    while (true) {
        co_await news;
        auto gathered = std::make_shared<Timer>(clock_.now() + kGather);
        co_await gathered;
        news->clear();
        if (compare(*place)) continue;
        auto later = std::make_shared<Timer>(clock_.now() + kAskAgain);
        auto first = std::make_shared<FirstOf>(std::vector<WaitablePtr>{later, news});
        co_await first;
        news->set();
    }
}

bool FileWatch::compare(const Place& place) {
    std::vector<std::shared_ptr<Watched>> all;
    {
        const MutexLock lock(table_->mutex);
        for (Watched* one : place.files) {
            // An entry whose destructor has begun waits for the lock to remove itself.
            if (auto held = one->weak_from_this().lock()) all.push_back(std::move(held));
        }
    }
    for (const auto& one : all) {
        std::optional<std::string> now;
        try {
            now = tagOf(services_, one->who, one->file, kPatience);
        } catch (const std::exception& error) {
            services_.log.error("mcp.file_unseen",
                                {{"workspace", place.workspace}, {"error", error.what()}});
        }
        // An agent that does not answer is not asked for the next file.
        if (!now) return false;
        bool changed = false;
        {
            const MutexLock lock(one->mutex);
            changed = one->seen != *now;
            one->seen = *now;
        }
        if (changed) changed_(one->who.tenant, one->uri);
    }
    return true;
}

}  // namespace hearth::mcp
