#include "api/cli/remote/SavedFiles.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/Error.h"
#include "base/Fd.h"
#include "base/Ids.h"

namespace hearth::cli {
namespace {

/// Opens the folder; makes it with its parents if needed.
Fd openFolder(const std::string& path) {
    for (std::size_t at = 1; at <= path.size(); ++at) {
        if (at < path.size() && path[at] != '/') continue;
        const std::string part = path.substr(0, at);
        if (::mkdir(part.c_str(), 0777) != 0 && errno != EEXIST) throwErrno("mkdir", part);
    }
    Fd folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!folder) throwErrno("open", path);
    return folder;
}

/// Makes a new file at a path below the folder; an unset Fd if the path may not be written.
Fd createBelow(const Fd& folder, const std::string& path) {
    Fd at(::fcntl(folder.get(), F_DUPFD_CLOEXEC, 0));
    std::size_t begin = 0;
    while (true) {
        const std::size_t slash = path.find('/', begin);
        const std::string name = path.substr(begin, slash - begin);
        if (name.empty() || name == "." || name == "..") return {};
        if (slash == std::string::npos) {
            return Fd(::openat(at.get(), name.c_str(),
                               O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0666));
        }
        ::mkdirat(at.get(), name.c_str(), 0777);
        at = Fd(::openat(at.get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
        if (!at) return {};
        begin = slash + 1;
    }
}

void writeTo(const Fd& file, std::string_view bytes, const std::string& name) {
    while (!bytes.empty()) {
        const ssize_t written = ::write(file.get(), bytes.data(), bytes.size());
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) throwErrno("write", name);
        bytes.remove_prefix(static_cast<std::size_t>(written));
    }
}

/// The target on this server for a URL that the server sent.
std::string targetOf(const std::string& url) {
    const std::size_t scheme = url.find("://");
    if (scheme == std::string::npos) return url;
    const std::size_t path = url.find('/', scheme + 3);
    return path == std::string::npos ? "/" : url.substr(path);
}

struct Media {
    const char* type;
    const char* extension;
    bool base64;
};
constexpr std::array<Media, 6> kMedia = {{{"image/png", "png", true},
                                          {"image/jpeg", "jpg", true},
                                          {"image/gif", "gif", true},
                                          {"image/svg+xml", "svg", false},
                                          {"application/pdf", "pdf", true},
                                          {"text/html", "html", false}}};

/// The first of these media that a result has; null if none.
const Media* mediaOf(const Json& result) {
    const auto mime = result.find("mime");
    if (mime == result.end() || !mime->is_object()) return nullptr;
    const auto found = std::ranges::find_if(
        kMedia, [&](const Media& media) { return !textAt(*mime, media.type).empty(); });
    return found == kMedia.end() ? nullptr : &*found;
}

}  // namespace

void saveArtifacts(Remote& remote, const Json& execution, const std::string& folder,
                   const Console& console) {
    const Fd into = openFolder(folder);
    const auto artifacts = execution.find("artifacts");
    if (artifacts == execution.end() || !artifacts->is_array()) return;
    for (const Json& artifact : *artifacts) {
        const std::string path = textAt(artifact, "path");
        const std::string shown = folder + "/" + printable(path);
        const std::string url = textAt(artifact, "url");
        if (url.empty()) {
            console.note("hearth: " + printable(path) + " was not kept by the server");
            continue;
        }
        const Fd file = createBelow(into, path);
        if (!file) {
            console.note("hearth: " + shown + " is left out: its name cannot be written there");
            continue;
        }
        remote.download(
            targetOf(url), [](const http::ClientResponse&) {},
            [&](std::string_view piece) { writeTo(file, piece, shown); });
        console.note("hearth: saved " + shown);
    }
}

void saveResults(const Json& execution, const std::string& folder, const Console& console) {
    const Fd into = openFolder(folder);
    const auto results = execution.find("results");
    if (results == execution.end() || !results->is_array()) return;
    int number = 0;
    for (const Json& result : *results) {
        const Media* media = mediaOf(result);
        if (media == nullptr) continue;
        const std::string text = textAt(result.at("mime"), media->type);
        std::string bytes = text;
        if (media->base64 && !base64Decode(text, bytes)) continue;
        const std::string name = "result-" + std::to_string(++number) + "." + media->extension;
        const Fd file = createBelow(into, name);
        if (!file) throwErrno("create", folder + "/" + name);
        writeTo(file, bytes, name);
        console.note("hearth: saved " + folder + "/" + name);
    }
}

void announceResults(const Json& execution, const Console& console) {
    const auto results = execution.find("results");
    if (results == execution.end() || !results->is_array()) return;
    const auto figures = std::ranges::count_if(
        *results, [](const Json& result) { return mediaOf(result) != nullptr; });
    if (figures == 0) return;
    console.note("hearth: " + std::to_string(figures) +
                 (figures == 1 ? " figure is" : " figures are") +
                 " not shown here; --save-results DIR saves them");
}

}  // namespace hearth::cli
