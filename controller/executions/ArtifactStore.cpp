#include "controller/executions/ArtifactStore.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <vector>

#include "base/Digest.h"
#include "base/Error.h"
#include "controller/journal/DiskReserve.h"
#include "controller/journal/Journal.h"
#include "controller/workspaces/WorkspaceTable.h"

namespace hearth::controller {
namespace {

namespace fs = std::filesystem;

constexpr auto kKeep = std::chrono::hours(1);
constexpr auto kPruneArtifactsEvery = std::chrono::seconds(60);
/// The pause between slices, so that other work of the lane can run.
constexpr auto kNextSlice = std::chrono::milliseconds(20);
constexpr std::size_t kMostRemoved = 32;
constexpr std::size_t kMostLooked = 64;
constexpr std::uint64_t kBlock = 4096;
constexpr std::string_view kUnfinished = ".part";

/// Rounds up: small files cost blocks and inodes, too.
std::uint64_t roomOf(std::uint64_t bytes) {
    if (bytes > UINT64_MAX - kBlock) return bytes;
    return std::max<std::uint64_t>((bytes + kBlock - 1) / kBlock, 1) * kBlock;
}

/// Tenants choose their names, so a folder is named by a digest.
std::string placeOf(const ArtifactStore::Name& which) {
    return toHex(sha256(which.tenant)).substr(0, 16) + "/" + which.workspace;
}

/// The directories in `path`; none if it cannot be read. Other entries are not the store's copies.
std::vector<std::string> foldersIn(const std::string& path) {
    std::vector<std::string> names;
    std::error_code failure;
    for (fs::directory_iterator at(path, failure), end; !failure && at != end;
         at.increment(failure)) {
        std::error_code unknown;
        if (fs::is_directory(at->symlink_status(unknown))) {
            names.push_back(at->path().filename().string());
        }
    }
    return names;
}

}  // namespace

ArtifactStore::Copy::Copy(ArtifactStore& store, std::string place, const std::string& name,
                          std::uint64_t room)
    : store_(store),
      place_(std::move(place)),
      path_(store.directory_ + "/" + place_ + "/" + name),
      room_(room),
      fd_(::open((path_ + std::string(kUnfinished)).c_str(),
                 O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600)) {
    if (!fd_) throwErrno("open", path_);
}

ArtifactStore::Copy::~Copy() {
    if (finished_) return;
    ::unlink((path_ + std::string(kUnfinished)).c_str());
    store_.giveBack(place_, room_);
}

bool ArtifactStore::Copy::add(std::string_view bytes) {
    while (!bytes.empty()) {
        const ssize_t n = ::write(fd_.get(), bytes.data(), bytes.size());
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return false;
        bytes.remove_prefix(static_cast<std::size_t>(n));
    }
    return true;
}

void ArtifactStore::Copy::finish() {
    // It may be made twice: the server ended before the execution's record was on disk.
    struct stat before {};
    const bool replaced = ::lstat(path_.c_str(), &before) == 0;
    if (::rename((path_ + std::string(kUnfinished)).c_str(), path_.c_str()) != 0) {
        throwErrno("rename", path_);
    }
    finished_ = true;
    if (replaced) store_.giveBack(place_, roomOf(static_cast<std::uint64_t>(before.st_size)));
}

ArtifactStore::ArtifactStore(std::string directory, WorkspaceTable& table, Journal& journal,
                             metrics::Log& log, const Clock& clock, Limits limits)
    : directory_(std::move(directory)),
      table_(table),
      journal_(journal),
      log_(log),
      clock_(clock),
      limits_(limits) {
    fs::create_directories(directory_);
    sweep();
}

void ArtifactStore::sweep() {
    for (const std::string& owner : foldersIn(directory_)) {
        for (const std::string& workspace : foldersIn(directory_ + "/" + owner)) {
            std::string place = owner;
            sweepPlace(place.append("/").append(workspace));
        }
        ::rmdir((directory_ + "/" + owner).c_str());  // if it is empty
    }
}

void ArtifactStore::sweepPlace(const std::string& place) {
    // If the data file was lost, all records were lost with it, and only the copies remain.
    const bool has_history = journal_.workspace(workspaceOf(place)).has_value();
    std::map<std::string, bool> recorded;  // by execution
    std::uint64_t total = 0;
    std::size_t removed = 0;
    std::error_code failure;
    for (fs::directory_iterator at(directory_ + "/" + place, failure), end; !failure && at != end;
         at.increment(failure)) {
        const std::string name = at->path().filename().string();
        const std::string execution = name.substr(0, name.rfind('-'));
        if (has_history && !recorded.contains(execution)) {
            recorded[execution] = journal_.hasExecution(execution);
        }
        if (name.ends_with(kUnfinished) || (has_history && !recorded[execution])) {
            std::error_code ignored;  // counted below if it stays
            if (fs::remove(at->path(), ignored)) {
                ++removed;
                continue;
            }
        }
        struct stat st {};
        if (::lstat(at->path().c_str(), &st) == 0) {
            total += roomOf(static_cast<std::uint64_t>(std::max<off_t>(st.st_size, 0)));
        }
    }
    if (removed > 0) {
        log_.info("artifacts.orphans_removed",
                  {{"workspace", workspaceOf(place)}, {"files", removed}});
    }
    if (total == 0 && ::rmdir((directory_ + "/" + place).c_str()) == 0) return;
    const MutexLock lock(mutex_);
    kept_.put(place, total);
}

std::unique_ptr<ArtifactStore::Copy> ArtifactStore::begin(const Name& which, std::uint64_t bytes) {
    const std::string place = placeOf(which);
    const std::uint64_t room = roomOf(bytes);
    if (limits_.reserve != nullptr && limits_.reserve->low())
        throwErrno(ENOSPC, "keep an artifact");
    while (true) {
        const Room found = take(place, room);
        if (found == Room::Given) break;
        if (found == Room::NoneHere) return nullptr;
        const std::optional<std::string> victim =
            toEvict(ownerOf(place), found == Room::TenantFull);
        if (!victim || !remove(*victim)) return nullptr;
        log_.info("artifacts.evicted",
                  {{"workspace", workspaceOf(*victim)}, {"for", which.workspace}});
    }
    try {
        fs::create_directories(directory_ + "/" + place);
        return std::unique_ptr<Copy>(new Copy(*this, place, which.name, room));
    } catch (...) {
        giveBack(place, room);
        throw;
    }
}

ArtifactStore::Room ArtifactStore::take(const std::string& place, std::uint64_t bytes) {
    const MutexLock lock(mutex_);
    const auto fits = [bytes](std::uint64_t used, std::uint64_t limit) {
        return bytes <= limit && used <= limit - bytes;
    };
    if (!fits(kept_.of(place), limits_.workspace) || bytes > limits_.tenant ||
        bytes > limits_.all) {
        return Room::NoneHere;
    }
    if (!fits(kept_.ofOwner(ownerOf(place)), limits_.tenant)) return Room::TenantFull;
    if (!fits(kept_.all(), limits_.all)) return Room::Full;
    kept_.add(place, bytes);
    return Room::Given;
}

void ArtifactStore::giveBack(const std::string& place, std::uint64_t bytes) {
    const MutexLock lock(mutex_);
    kept_.take(place, bytes);  // none are left if the place was removed meanwhile
}

std::optional<ArtifactStore::End> ArtifactStore::endOf(const std::string& place) const {
    const std::string workspace = workspaceOf(place);
    if (table_.find(workspace)) return std::nullopt;
    ++asked_;
    // The end is written after its answer: a row that is still open will be closed.
    if (const auto past = journal_.workspace(workspace)) {
        if (!past->ended_ms) return std::nullopt;
        return End{*past->ended_ms, true};
    }
    // Without a record its last change is taken as the end.
    struct stat st {};
    if (::lstat((directory_ + "/" + place).c_str(), &st) != 0) return End{0, false};
    return End{static_cast<std::int64_t>(st.st_mtime) * 1000, false};
}

void ArtifactStore::learnEnds(const std::vector<std::string>& places) {
    for (const std::string& place : places) {
        const std::optional<End> end = endOf(place);
        const MutexLock lock(mutex_);
        if (end) kept_.ended(place, end->unix_ms, end->final);
    }
}

bool ArtifactStore::learnNextEnds() {
    std::vector<std::string> places;
    {
        const MutexLock lock(mutex_);
        places = kept_.open(looked_, kMostLooked);
    }
    learnEnds(places);
    const bool more = places.size() == kMostLooked;
    const MutexLock lock(mutex_);
    looked_ = more ? places.back() : std::string();
    return more;
}

std::optional<std::string> ArtifactStore::toEvict(const std::string& owner, bool own_only) {
    std::vector<std::string> own;
    {
        const MutexLock lock(mutex_);
        own = kept_.openOf(owner);
    }
    learnEnds(own);
    const auto known = [&] {
        const MutexLock lock(mutex_);
        return kept_.toEvict(owner, own_only);
    };
    // Only if no known place can go, looks for other workspaces that have just ended.
    if (std::optional<std::string> place = known(); place || own_only) return place;
    while (learnNextEnds()) {
    }
    return known();
}

bool ArtifactStore::remove(const std::string& place) {
    std::error_code failure;
    fs::remove_all(directory_ + "/" + place, failure);
    if (failure) {
        log_.warn("artifacts.not_removed",
                  {{"workspace", workspaceOf(place)}, {"error", failure.message()}});
        return false;
    }
    const MutexLock lock(mutex_);
    kept_.erase(place);
    return true;
}

std::string ArtifactStore::path(const Name& which) const {
    return directory_ + "/" + placeOf(which) + "/" + which.name;
}

ArtifactStore::Kept ArtifactStore::open(const Name& which) const {
    const std::string file = path(which);
    Kept kept;
    kept.fd = Fd(::open(file.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
    struct stat st {};
    if (!kept.fd || ::fstat(kept.fd.get(), &st) != 0) {
        throw Error(ErrorCode::Gone, "the artifact is no longer kept")
            .hint("Artifacts are kept for an hour after their workspace's end");
    }
    kept.size = static_cast<std::uint64_t>(st.st_size);
    return kept;
}

bool ArtifactStore::has(const Name& which) const {
    return ::faccessat(AT_FDCWD, path(which).c_str(), F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

ReconcileResult ArtifactStore::prune() {
    const std::int64_t keep = std::chrono::milliseconds(kKeep).count();
    bool more = learnNextEnds();
    std::vector<std::string> places;
    {
        const MutexLock lock(mutex_);
        places = kept_.endedBy(toUnixMillis(clock_.wall()) - keep, kMostRemoved);
    }
    std::size_t removed = 0;
    for (const std::string& place : places) removed += remove(place) ? 1 : 0;
    // A place that cannot be removed is not tried again at once.
    more = more || (places.size() == kMostRemoved && removed > 0);
    return ReconcileResult::after(more ? std::chrono::nanoseconds(kNextSlice)
                                       : kPruneArtifactsEvery);
}

std::uint64_t ArtifactStore::kept() const {
    const MutexLock lock(mutex_);
    return kept_.all();
}

}  // namespace hearth::controller
