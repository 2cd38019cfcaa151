#include "api/mcp/http/FileWatch.h"

#include <chrono>
#include <optional>
#include <utility>
#include <vector>

#include "api/mcp/resources/WorkspaceResources.h"
#include "base/Error.h"

namespace hearth::mcp {
namespace {

/// Between a change and the look at the files, so that a burst costs one.
constexpr std::chrono::milliseconds kGather{50};

}  // namespace

/// One watched file; its owner's end takes it out of the table.
struct FileWatch::Watched : std::enable_shared_from_this<FileWatch::Watched> {
    controller::Principal who;
    std::string uri;
    FileUri file;
    std::weak_ptr<State> state;
    Mutex mutex;
    /// Empty: there was no such file.
    std::string seen HEARTH_GUARDED_BY(mutex);

    Watched() = default;
    Watched(const Watched&) = delete;
    Watched& operator=(const Watched&) = delete;
    ~Watched() {
        const std::shared_ptr<State> table = state.lock();
        if (!table) return;
        const MutexLock lock(table->mutex);
        const auto found = table->watched.find(file.workspace);
        if (found == table->watched.end()) return;
        found->second.erase(this);
        if (found->second.empty()) table->watched.erase(found);
    }
};

namespace {

/// The ETag of the file, empty if there is none; nullopt if nobody can tell at the moment.
std::optional<std::string> tagOf(const controller::Services& services,
                                 const controller::Principal& who, const FileUri& file) {
    try {
        return services.workspaces.stat(who, file.workspace, file.path).etag;
    } catch (const Error& error) {
        const ErrorCode code = error.code();
        const bool late = code == ErrorCode::Unavailable || code == ErrorCode::Deadline;
        return late ? std::nullopt : std::optional<std::string>("");
    }
}

}  // namespace

void FileWatch::State::look(const std::string& workspace) {
    const MutexLock lock(mutex);
    if (!watched.contains(workspace)) return;
    due.insert(workspace);
    rung.notifyOne();
}

FileWatch::FileWatch(const controller::Services& services, Changed changed)
    : services_(services),
      changed_(std::move(changed)),
      of_files_(services.workspaces.subscribeToFiles(
          [state = state_](const std::string& workspace) { state->look(workspace); })),
      thread_([this](const std::stop_token& stop) { loop(stop); }) {}

std::shared_ptr<void> FileWatch::watch(const controller::Principal& who, const std::string& uri) {
    std::optional<FileUri> file = fileOf(uri);
    if (!file) return nullptr;
    auto watched = std::make_shared<Watched>();
    watched->who = {who.tenant, controller::Role::User, ""};
    watched->uri = uri;
    watched->file = std::move(*file);
    {
        const MutexLock lock(state_->mutex);
        std::set<Watched*>& all = state_->watched[watched->file.workspace];
        if (all.size() >= kMostOfWorkspace) return nullptr;
        all.insert(watched.get());
        watched->state = state_;
    }
    // Behind the entry: a change from now on leads to a look, which finds what is put down here.
    const std::string now = tagOf(services_, watched->who, watched->file).value_or("");
    const MutexLock lock(watched->mutex);
    watched->seen = now;
    return watched;
}

void FileWatch::loop(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
        {
            const MutexLock lock(state_->mutex);
            const auto due = [this]()
                                 HEARTH_REQUIRES(state_->mutex) { return !state_->due.empty(); };
            if (!state_->rung.wait(state_->mutex, stop, due)) return;
            state_->rung.waitFor(state_->mutex, stop, kGather, [] { return false; });
        }
        std::set<std::string> due;
        {
            const MutexLock lock(state_->mutex);
            due.swap(state_->due);
        }
        for (const std::string& workspace : due) {
            if (stop.stop_requested()) return;
            compare(workspace);
        }
    }
}

void FileWatch::compare(const std::string& workspace) {
    std::vector<std::shared_ptr<Watched>> all;
    {
        const MutexLock lock(state_->mutex);
        const auto found = state_->watched.find(workspace);
        if (found == state_->watched.end()) return;
        for (Watched* one : found->second) {
            // One that ends at this moment waits for the lock to take itself out.
            if (auto held = one->weak_from_this().lock()) all.push_back(std::move(held));
        }
    }
    for (const auto& one : all) {
        std::optional<std::string> now;
        try {
            now = tagOf(services_, one->who, one->file);
        } catch (const std::exception& error) {
            services_.log.error("mcp.file_unseen",
                                {{"workspace", workspace}, {"error", error.what()}});
        }
        // An agent that does not answer is not asked for the next file; its next change is.
        if (!now) return;
        bool changed = false;
        {
            const MutexLock lock(one->mutex);
            changed = one->seen != *now;
            one->seen = *now;
        }
        if (changed) changed_(one->who.tenant, one->uri);
    }
}

}  // namespace hearth::mcp
