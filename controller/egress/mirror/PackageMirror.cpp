#include "controller/egress/mirror/PackageMirror.h"

#include <algorithm>

#include "base/ScopeExit.h"
#include "base/http/Url.h"
#include "controller/egress/policy/Refused.h"

namespace hearth::egress {
namespace {

constexpr auto kFresh = std::chrono::minutes(10);
/// A project that the index does not know is soon requested again: it may just be published.
constexpr auto kFreshAbsence = std::chrono::seconds(30);
constexpr std::size_t kMostPages = 4'096;
constexpr std::size_t kMostPageBytes = 128U << 20U;
constexpr std::uint64_t kMaxPage = 64ULL << 20U;
constexpr const char* kPypiJson = "application/vnd.pypi.simple.v1+json";
constexpr const char* kPypiLatestJson = "application/vnd.pypi.simple.latest+json";
constexpr const char* kPypiHtml = "text/html; charset=utf-8";

std::string withSlash(std::string url) {
    if (!url.empty() && url.back() != '/') url += '/';
    return url;
}

bool accepts(const RequestHead& head, std::string_view type) {
    const RequestHead::Field* accept = head.find("Accept");
    return accept != nullptr && accept->value.find(type) != std::string_view::npos;
}

}  // namespace

PackageMirror::PackageMirror(const MirrorSources& sources, std::string base, Fetcher& fetcher,
                             FileCache& cache, const Clock& clock)
    : sources_{withSlash(sources.pypi), withSlash(sources.npm), {}},
      base_(std::move(base)),
      fetcher_(fetcher),
      files_(fetcher, cache),
      clock_(clock) {}

std::map<std::string, std::string> PackageMirror::environment() const {
    std::map<std::string, std::string> env;
    if (!sources_.pypi.empty()) {
        const std::string index = base_ + "/pypi/simple/";
        env["PIP_INDEX_URL"] = index;
        env["UV_DEFAULT_INDEX"] = index;
        // The mirror has the cache: a second copy would only fill the workspace.
        env["PIP_NO_CACHE_DIR"] = "1";
        env["PIP_DISABLE_PIP_VERSION_CHECK"] = "1";
        env["PIP_NO_WARN_SCRIPT_LOCATION"] = "1";
        // The image is read-only; installed packages belong to the workspace in any case.
        env["PIP_BREAK_SYSTEM_PACKAGES"] = "1";
    }
    if (!sources_.npm.empty()) {
        env["NPM_CONFIG_REGISTRY"] = base_ + "/npm/";
        env["NPM_CONFIG_AUDIT"] = "false";
        env["NPM_CONFIG_FUND"] = "false";
        env["NPM_CONFIG_UPDATE_NOTIFIER"] = "false";
        // An unreachable index is reported after 5 s, not after 70.
        env["NPM_CONFIG_FETCH_RETRIES"] = "2";
        env["NPM_CONFIG_FETCH_RETRY_MINTIMEOUT"] = "1000";
        env["NPM_CONFIG_FETCH_RETRY_MAXTIMEOUT"] = "4000";
    }
    return env;
}

std::size_t PypiPage::bytes() const {
    constexpr std::size_t kOfFile = 600;
    return html->size() + json->size() + project.files.size() * kOfFile;
}

template <typename Content>
void PackageMirror::Pages<Content>::drop(const std::string& key) {
    all.erase(key);
    if (const auto size = sizes.find(key); size != sizes.end()) {
        bytes -= size->second;
        sizes.erase(size);
    }
}

template <typename Content>
std::shared_ptr<PackageMirror::Page<Content>> PackageMirror::Pages<Content>::get(
    const std::string& key) {
    const MutexLock lock(mutex);
    const auto found = all.find(key);
    if (found != all.end()) {
        by_use.remove(key);
        by_use.push_back(key);
        return found->second;
    }
    while (all.size() >= kMostPages) {
        drop(by_use.front());
        by_use.pop_front();
    }
    by_use.push_back(key);
    return all[key] = std::make_shared<Page<Content>>();
}

template <typename Content>
void PackageMirror::Pages<Content>::sized(const std::string& key, std::size_t size) {
    const MutexLock lock(mutex);
    if (all.count(key) == 0) return;  // already dropped
    std::size_t& known = sizes[key];
    bytes += size - known;
    known = size;
    while (bytes > kMostPageBytes && by_use.size() > 1) {
        const std::string oldest = by_use.front();
        by_use.pop_front();
        drop(oldest);
    }
}

template <typename Content, typename Parse>
std::shared_ptr<const Content> PackageMirror::page(Pages<Content>& pages, const std::string& key,
                                                   const std::string& url,
                                                   const std::string& accept, std::uint64_t most,
                                                   const Parse& parse) {
    const std::shared_ptr<Page<Content>> page = pages.get(key);
    const MutexLock lock(page->mutex);  // concurrent readers wait for the one request
    if (clock_.now() < page->fresh_until) {
        if (!page->failure.empty()) throw Refused(kBadGateway, "index_failed", page->failure);
        return page->content;
    }
    page->failure.clear();
    FetchRequest request{url, {"Accept: " + accept}, most};
    if (page->content && !page->etag.empty()) {
        request.headers.push_back("If-None-Match: " + page->etag);
    }
    try {
        const auto [answer, body] = fetcher_.text(request);
        constexpr int kGone = 410;
        if (answer.status == 200) {
            parsers_.acquire();
            const ScopeExit leave([this] { parsers_.release(); });
            page->content = std::make_shared<const Content>(parse(answer, body));
            page->etag = answer.etag;
            pages.sized(key, page->content->bytes());
        } else if (answer.status == kNotFound || answer.status == kGone) {
            page->content = nullptr;
            page->fresh_until = clock_.now() + kFreshAbsence;
            return nullptr;
        } else if (answer.status != kNotModified || !page->content) {
            throw Refused(kBadGateway, "index_failed",
                          "the index answers " + std::to_string(answer.status));
        }
        page->fresh_until = clock_.now() + kFresh;
    } catch (const Refused& e) {
        // An old answer is better than none, and the next waiting readers must not wait for the
        // same failure.
        page->fresh_until = clock_.now() + (page->content ? kFreshAbsence : kFreshFailure);
        if (page->content) return page->content;
        page->failure = e.what();
        throw;
    }
    return page->content;
}

std::shared_ptr<const PypiPage> PackageMirror::project(const std::string& name) {
    return page(
        projects_, name, sources_.pypi + name + "/", std::string(kPypiJson) + ", text/html;q=0.5",
        kMaxPage, [&](const FetchAnswer& answer, const std::string& body) {
            PypiPage page;
            page.project = parsePypi(name, answer.url, answer.content_type, body);
            page.html = std::make_shared<const std::string>(pypiHtml(page.project, "/pypi/files"));
            page.json = std::make_shared<const std::string>(pypiJson(page.project, "/pypi/files"));
            return page;
        });
}

std::shared_ptr<const NpmPackage> PackageMirror::package(const std::string& name) {
    // The slash of a scope is part of the name, not of the path.
    return page(packages_, name, sources_.npm + percentEncode(name),
                "application/vnd.npm.install-v1+json, application/json;q=0.5", kMaxPage,
                [&](const FetchAnswer& answer, const std::string& body) {
                    return parseNpm(name, answer.url, body, base_ + "/npm");
                });
}

void PackageMirror::pypi(const MirrorRequest& asked, std::string_view path, MirrorAnswer& answer) {
    if (sources_.pypi.empty()) refuseUnknown("no Python index is mirrored here");
    if (takePrefix(path, "simple/")) {
        if (path.ends_with('/')) path.remove_suffix(1);
        const std::optional<std::string> name = normalisedProject(path);
        if (!name) refuseUnknown("there is no such project");
        answer.what = "pypi:" + *name;
        const std::shared_ptr<const PypiPage> found = project(*name);
        if (!found) refuseUnknown("the index has no project " + *name);
        const bool json = accepts(asked.head, kPypiJson) || accepts(asked.head, kPypiLatestJson);
        answer.content_type = json ? kPypiJson : kPypiHtml;
        answer.text = json ? found->json : found->html;
        return;
    }
    if (!takePrefix(path, "files/")) refuseUnknown("there is nothing here");
    const std::size_t slash = path.find('/');
    const std::optional<std::string> name = normalisedProject(path.substr(0, slash));
    if (slash == std::string_view::npos || !name) refuseUnknown("there is no such file");
    std::string_view filename = path.substr(slash + 1);
    answer.what = "pypi:" + std::string(filename);
    constexpr std::string_view kMetadata = ".metadata";
    const bool metadata = filename.ends_with(kMetadata);
    if (metadata) filename.remove_suffix(kMetadata.size());
    const std::shared_ptr<const PypiPage> found = project(*name);
    const PypiFile* const known = found ? found->project.find(filename) : nullptr;
    if (known == nullptr || (metadata && !known->metadata_sha256)) {
        refuseUnknown("there is no such file");
    }
    if (metadata) {
        return files_.answer(
            asked, {{known->url + std::string(kMetadata)}, {"sha256", *known->metadata_sha256}},
            answer);
    }
    IndexFile file{{known->url}, {"sha256", known->sha256}};
    file.size = known->size;
    files_.answer(asked, file, answer);
}

void PackageMirror::npm(const MirrorRequest& asked, std::string_view path, MirrorAnswer& answer) {
    if (sources_.npm.empty()) refuseUnknown("no npm registry is mirrored here");
    constexpr std::string_view kSeparator = "/-/";
    const std::size_t separator = path.find(kSeparator);
    const std::optional<std::string> name = npmName(path.substr(0, separator));
    if (!name) refuseUnknown("there is nothing here");
    answer.what = "npm:" + *name;
    const std::shared_ptr<const NpmPackage> found = package(*name);
    if (!found) refuseUnknown("the registry has no package " + *name);
    if (separator == std::string_view::npos) {
        answer.content_type = "application/json";
        answer.text = found->document;
        return;
    }
    const std::string filename(path.substr(separator + kSeparator.size()));
    answer.what = "npm:" + *name + "/" + filename;
    const auto tarball = found->tarballs.find(filename);
    if (tarball == found->tarballs.end()) refuseUnknown("there is no such file");
    files_.answer(asked, {{tarball->second.url}, tarball->second.hash}, answer);
}

void PackageMirror::dispatch(const MirrorRequest& asked, MirrorAnswer& answer) {
    if (asked.head.method != "GET" && asked.head.method != "HEAD") {
        constexpr int kMethodNotAllowed = 405;
        throw Refused(kMethodNotAllowed, "read_only", "the mirror is read-only");
    }
    std::string_view path = asked.head.path;
    if (takePrefix(path, "/pypi/")) return pypi(asked, path, answer);
    if (takePrefix(path, "/npm/")) return npm(asked, path, answer);
    refuseUnknown("the mirror has /pypi/simple/ and /npm/");
}

MirrorAnswer PackageMirror::answer(const MirrorRequest& asked) {
    MirrorAnswer answer;
    try {
        dispatch(asked, answer);
    } catch (const Refused& e) {
        answer.file = nullptr;
        answer.status = e.status();
        answer.content_type = "text/plain; charset=utf-8";
        answer.text = std::make_shared<const std::string>(std::string(e.what()) + "\n");
        answer.result = "error";
    }
    return answer;
}

}  // namespace hearth::egress
