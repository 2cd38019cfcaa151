#include "controller/egress/mirror/apt/AptMirror.h"

#include <algorithm>
#include <array>

#include "base/ScopeExit.h"
#include "base/http/Url.h"
#include "controller/egress/mirror/store/Decompressor.h"
#include "controller/egress/policy/Refused.h"

namespace hearth::broker {
namespace {

constexpr auto kReleaseFresh = std::chrono::minutes(5);
/// How long the previous Release is used if no newer one can be fetched.
constexpr auto kFreshBefore = std::chrono::seconds(60);
/// A table stays valid; it is dropped only to free memory for other tables.
constexpr auto kKeptUnused = std::chrono::minutes(30);
constexpr std::size_t kMostTables = 64;
constexpr std::size_t kMostTableBytes = 64U << 20U;
constexpr std::uint64_t kMaxRelease = 8ULL << 20U;
constexpr std::uint64_t kMaxIndex = 256ULL << 20U;
constexpr std::uint64_t kMaxUnpacked = 512ULL << 20U;
constexpr std::uint64_t kMaxPackage = 8ULL << 30U;

#if defined(__x86_64__)
constexpr const char* kArchitecture = "amd64";
#elif defined(__aarch64__)
constexpr const char* kArchitecture = "arm64";
#elif defined(__riscv)
constexpr const char* kArchitecture = "riscv64";
#elif defined(__powerpc64__)
constexpr const char* kArchitecture = "ppc64el";
#elif defined(__s390x__)
constexpr const char* kArchitecture = "s390x";
#elif defined(__i386__)
constexpr const char* kArchitecture = "i386";
#elif defined(__arm__)
constexpr const char* kArchitecture = "armhf";
#else
constexpr const char* kArchitecture = "all";
#endif
/// The endings that apt is configured to ask for (pool/agent/program/egress/AptFiles.cpp), so each
/// index file is fetched once.
constexpr std::array<const char*, 3> kEndings{".gz", ".xz", ""};

std::string dists(const AptSource& source, std::string_view path) {
    return source.url + "dists/" + source.suite + "/" + percentEncode(path, true);
}

/// An index file's URLs: by hash, which stays right while the archive is replaced, then by name.
IndexFile indexFile(const AptSource& source, const AptRelease& release, const std::string& path,
                    const AptRelease::File& file) {
    IndexFile out{{}, {"sha256", file.sha256}, std::min(file.size, kMaxIndex)};
    if (release.by_hash) {
        const std::string directory = path.substr(0, path.rfind('/') + 1);
        out.urls.push_back(dists(source, directory + "by-hash/SHA256/" + file.sha256));
    }
    out.urls.push_back(dists(source, path));
    return out;
}

}  // namespace

AptMirror::AptMirror(const std::vector<AptSource>& sources, Fetcher& fetcher,
                     const IndexFiles& files, const Clock& clock)
    : fetcher_(fetcher), files_(files), clock_(clock) {
    for (const AptSource& source : sources) {
        auto suite = std::make_unique<Suite>();
        suite->source = source;
        suites_[source.suite] = std::move(suite);
    }
}

void AptMirror::answer(const MirrorRequest& asked, std::string_view path, MirrorAnswer& answer) {
    const std::string_view name = path.substr(0, path.find('/'));
    const auto found = suites_.find(name);
    if (found == suites_.end()) {
        std::string known;
        for (const auto& [suite, of] : suites_) known += (known.empty() ? "" : ", ") + suite;
        refuseUnknown("that suite is not mirrored here; these are: " + known);
    }
    answer.what = "apt:" + found->first;
    path.remove_prefix(std::min(name.size() + 1, path.size()));
    if (takePrefix(path, "dists/" + found->first + "/")) {
        return index(*found->second, asked, path, answer);
    }
    if (path.starts_with("./")) path.remove_prefix(2);
    package(*found->second, asked, path, answer);
}

std::optional<std::string> AptMirror::text(const std::string& url, const std::string& etag,
                                           FetchAnswer& answer) {
    FetchRequest request{url, {}, kMaxRelease};
    if (!etag.empty()) request.headers.push_back("If-None-Match: " + etag);
    auto [got, body] = fetcher_.text(request);
    answer = std::move(got);
    if (answer.status == 200) return std::move(body);
    if (answer.status == kNotFound || (answer.status == kNotModified && !etag.empty())) {
        return std::nullopt;
    }
    throw Refused(kBadGateway, "index_failed",
                  "the archive answers " + std::to_string(answer.status) + " for its Release");
}

std::shared_ptr<const AptMirror::Release> AptMirror::fetch(
    const AptSource& source, const std::shared_ptr<const Release>& before) {
    const std::string etag = before && before->in_release ? before->etag : std::string();
    auto release = std::make_shared<Release>();
    FetchAnswer answer;
    std::optional<std::string> body = text(dists(source, "InRelease"), etag, answer);
    if (answer.status == kNotModified) return before;
    release->etag = answer.etag;
    const bool in_release = body.has_value();
    if (!in_release) body = text(dists(source, "Release"), "", answer);
    if (!body) {
        throw Refused(kBadGateway, "index_failed", "the archive has no suite " + source.suite);
    }
    if (!in_release) {
        if (auto signature = text(dists(source, "Release.gpg"), "", answer)) {
            release->signature = std::make_shared<const std::string>(std::move(*signature));
        }
    }
    release->index = parseAptRelease(*body, source.components);
    (in_release ? release->in_release : release->text) =
        std::make_shared<const std::string>(std::move(*body));
    return release;
}

AptMirror::Releases AptMirror::releases(Suite& suite) {
    UniqueMutexLock lock(suite.mutex);
    // During a request the other readers get the previous answer; they wait only for the first one.
    suite.asked.wait(suite.mutex,
                     [&]() HEARTH_REQUIRES(suite.mutex) { return !suite.asking || suite.release; });
    if (suite.asking) return {suite.release, suite.previous};
    if (clock_.now() < suite.fresh_until) {
        if (!suite.failure.empty()) throw Refused(kBadGateway, "index_failed", suite.failure);
        return {suite.release, suite.previous};
    }
    suite.failure.clear();
    suite.asking = true;
    const ScopeExit done([&suite]() HEARTH_REQUIRES(suite.mutex) {
        suite.asking = false;
        suite.asked.notifyAll();
    });
    try {
        const std::shared_ptr<const Release> before = suite.release;
        lock.unlock();
        std::shared_ptr<const Release> now;
        try {
            now = fetch(suite.source, before);
        } catch (...) {
            lock.lock();
            throw;
        }
        lock.lock();
        if (now != suite.release) {
            suite.previous = std::move(suite.release);
            suite.release = std::move(now);
        }
        suite.fresh_until = clock_.now() + kReleaseFresh;
    } catch (const Refused& e) {
        // An old Release is better than none, and the next waiting readers must not wait for the
        // same failure.
        suite.fresh_until = clock_.now() + (suite.release ? kFreshBefore : kFreshFailure);
        if (suite.release) return {suite.release, suite.previous};
        suite.failure = e.what();
        throw;
    }
    return {suite.release, suite.previous};
}

void AptMirror::index(Suite& suite, const MirrorRequest& asked, std::string_view path,
                      MirrorAnswer& answer) {
    const Releases known = releases(suite);
    const std::array<std::pair<std::string_view, const std::shared_ptr<const std::string>*>, 3>
        texts{{{"InRelease", &known.current->in_release},
               {"Release", &known.current->text},
               {"Release.gpg", &known.current->signature}}};
    for (const auto& [name, content] : texts) {
        if (path != name) continue;
        if (!*content) refuseUnknown("the suite has no " + std::string(name));
        answer.text = *content;
        return;
    }
    // A client that has just read the previous Release requests its files by their hash.
    for (const auto& release : {known.current, known.previous}) {
        if (!release) continue;
        const auto* const file = release->index.find(path);
        if (file == nullptr) continue;
        answer.what += "/" + file->first;
        if (file->second.size == 0) {
            answer.text = std::make_shared<const std::string>();
            return;
        }
        return files_.answer(
            asked, indexFile(suite.source, release->index, file->first, file->second), answer);
    }
    refuseUnknown("the suite's Release names no such file of its components");
}

void AptMirror::package(Suite& suite, const MirrorRequest& asked, std::string_view path,
                        MirrorAnswer& answer) {
    constexpr std::string_view kPackage = ".deb";
    if (!isAptPath(path) || !path.ends_with(kPackage)) refuseUnknown("there is no such package");
    answer.what = "apt:" + std::string(path.substr(path.rfind('/') + 1));
    const std::shared_ptr<const Release> release = releases(suite).current;
    for (const std::string& component : suite.source.components) {
        for (const char* const architecture : {kArchitecture, "all"}) {
            const std::string directory = component + "/binary-" + architecture + "/Packages";
            const std::pair<const std::string, AptRelease::File>* file = nullptr;
            for (const char* const ending : kEndings) {
                if (file == nullptr) file = release->index.find(directory + ending);
            }
            if (file == nullptr || file->second.size == 0) continue;
            const auto packages = table(suite, release->index, file->first, file->second);
            const std::optional<AptTable::Package> found = packages->find(path);
            if (!found) continue;
            return files_.answer(asked,
                                 {{suite.source.url + percentEncode(path, true)},
                                  {"sha256", found->sha256},
                                  std::min(found->size, kMaxPackage)},
                                 answer);
        }
    }
    refuseUnknown("no index of the suite has this package; apt-get update may help");
}

std::shared_ptr<const AptTable> AptMirror::table(const Suite& suite, const AptRelease& release,
                                                 const std::string& path,
                                                 const AptRelease::File& file) {
    const std::shared_ptr<Table> slot = this->slot(file.sha256);
    const MutexLock lock(slot->mutex);
    if (slot->content) return slot->content;
    if (clock_.now() < slot->failed_until) {
        throw Refused(kBadGateway, "index_failed", slot->failure);
    }
    try {
        slot->content = std::make_shared<const AptTable>(read(suite, release, path, file));
    } catch (const Refused& e) {
        slot->failed_until = clock_.now() + kFreshFailure;
        slot->failure = e.what();
        throw;
    }
    slot->bytes = slot->content->bytes();
    const MutexLock tables(tables_mutex_);
    forget(kMostTables, kMostTableBytes);
    return slot->content;
}

AptTable AptMirror::read(const Suite& suite, const AptRelease& release, const std::string& path,
                         const AptRelease::File& file) {
    // Fetched for no particular tenant, because all tenants share the table.
    const FileCache::Found found = files_.open(indexFile(suite.source, release, path, file), "");
    std::string piece(64U << 10U, '\0');
    std::uint64_t size = 0;
    // Reads the whole file first, so that it is verified and a slow archive does not occupy a
    // reader's place.
    while (const std::size_t n = found.file->read(size, piece.data(), piece.size())) size += n;
    readers_.acquire();
    const ScopeExit leave([this] { readers_.release(); });
    AptTableReader reader;
    const std::unique_ptr<Decompressor> decoder =
        Decompressor::forName(path, kMaxUnpacked, [&](std::string_view text) { reader.add(text); });
    for (std::uint64_t at = 0; at < size;) {
        const std::size_t n = found.file->read(at, piece.data(), piece.size());
        if (n == 0) break;
        decoder->add({piece.data(), n});
        at += n;
    }
    decoder->finish();
    return reader.finish();
}

std::shared_ptr<AptMirror::Table> AptMirror::slot(const std::string& hash) {
    const MutexLock lock(tables_mutex_);
    KnownTable& known = tables_[hash];
    if (!known.table) known.table = std::make_shared<Table>();
    known.used = clock_.now();
    return known.table;
}

void AptMirror::forget(std::size_t most_tables, std::size_t most_bytes) {
    const TimePoint now = clock_.now();
    std::erase_if(tables_, [&](const auto& t) { return now - t.second.used > kKeptUnused; });
    std::size_t bytes = 0;
    for (const auto& [hash, known] : tables_) bytes += known.table->bytes;
    while (tables_.size() > 1 && (tables_.size() > most_tables || bytes > most_bytes)) {
        const auto oldest = std::ranges::min_element(
            tables_, {}, [](const auto& known) { return known.second.used; });
        bytes -= oldest->second.table->bytes;
        tables_.erase(oldest);
    }
}

void AptMirror::tidy() {
    const MutexLock lock(tables_mutex_);
    forget(kMostTables, kMostTableBytes);
}

std::size_t AptMirror::tableBytes() const {
    const MutexLock lock(tables_mutex_);
    std::size_t bytes = 0;
    for (const auto& [hash, known] : tables_) bytes += known.table->bytes;
    return bytes;
}

}  // namespace hearth::broker
