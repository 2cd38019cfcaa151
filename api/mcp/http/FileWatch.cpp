#include "api/mcp/http/FileWatch.h"

#include <algorithm>
#include <utility>

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
constexpr std::chrono::nanoseconds kLongestQuiet = std::chrono::seconds(60);

}  // namespace

/// One watched file; its destructor removes it from the table.
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

void FileWatch::State::look(const std::string& workspace) {
    const MutexLock lock(mutex);
    const auto found = watched.find(workspace);
    if (found == watched.end()) return;
    const Time soon = std::chrono::steady_clock::now() + kGather;
    for (const Watched* one : found->second) {
        const Place place{one->who.tenant, workspace};
        if (in_line.contains(place)) continue;
        const auto [at, first] = due.try_emplace(place, soon);
        at->second = std::min(at->second, soon);
    }
    ring();
}

void FileWatch::State::ring() {
    ++rings;
    rung.notifyAll();
}

std::optional<FileWatch::Place> FileWatch::State::next() {
    const Time now = std::chrono::steady_clock::now();
    for (auto each = due.begin(); each != due.end();) {
        if (each->second > now || compared.contains(each->first)) {
            ++each;
            continue;
        }
        line.push(each->first.tenant, each->first);
        in_line.insert(each->first);
        each = due.erase(each);
    }
    std::optional<Place> place = line.pop();
    if (place) {
        in_line.erase(*place);
        compared.insert(*place);
    }
    return place;
}

void FileWatch::State::done(const Place& place, std::optional<Time> again) {
    const MutexLock lock(mutex);
    compared.erase(place);
    line.done(place.tenant);
    if (again) due.try_emplace(place, *again);
    ring();
}

std::chrono::nanoseconds FileWatch::State::quiet() const {
    Time first = Time::max();
    for (const auto& [place, at] : due) {
        if (!compared.contains(place)) first = std::min(first, at);
    }
    if (first == Time::max()) return kLongestQuiet;
    return std::clamp<std::chrono::nanoseconds>(first - std::chrono::steady_clock::now(),
                                                std::chrono::milliseconds(1), kLongestQuiet);
}

FileWatch::FileWatch(const controller::Services& services, Changed changed)
    : services_(services),
      changed_(std::move(changed)),
      of_files_(services.workspaces.subscribeToFiles(
          [state = state_](const std::string& workspace) { state->look(workspace); })) {
    for (unsigned i = 0; i < kTurns.workers; ++i) {
        threads_.emplace_back([this](const std::stop_token& stop) { loop(stop); });
    }
}

FileWatch::~FileWatch() {
    // Stops all before the first join, because each may have to wait for an agent.
    for (std::jthread& thread : threads_) thread.request_stop();
}

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
    // After the entry is in the table: a later change leads to a look, which compares this tag.
    const std::string now =
        tagOf(services_, watched->who, watched->file, agent::kDataPatience).value_or("");
    const MutexLock lock(watched->mutex);
    watched->seen = now;
    return watched;
}

void FileWatch::loop(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
        std::optional<Place> place;
        {
            const MutexLock lock(state_->mutex);
            place = state_->next();
            if (!place) {
                state_->rung.waitFor(state_->mutex, stop, state_->quiet(),
                                     [this, seen = state_->rings]() HEARTH_REQUIRES(state_->mutex) {
                                         return state_->rings != seen;
                                     });
                continue;
            }
        }
        const bool answered = compare(*place);
        std::optional<Time> again;
        if (!answered) again = std::chrono::steady_clock::now() + kAskAgain;
        state_->done(*place, again);
    }
}

bool FileWatch::compare(const Place& place) {
    std::vector<std::shared_ptr<Watched>> all;
    {
        const MutexLock lock(state_->mutex);
        const auto found = state_->watched.find(place.workspace);
        if (found == state_->watched.end()) return true;
        for (Watched* one : found->second) {
            if (one->who.tenant != place.tenant) continue;
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
