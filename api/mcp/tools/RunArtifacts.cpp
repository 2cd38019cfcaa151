#include "api/mcp/tools/RunArtifacts.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/Ids.h"

namespace hearth::mcp {
namespace {

using controller::Artifact;

constexpr std::size_t kMostPictures = 4;
constexpr std::size_t kMostListed = 40;
constexpr std::size_t kRoomForList = 150'000;  ///< 40 names and links
/// The name's beginning of a file that a driver saves of a figure it also shows smaller.
constexpr std::string_view kSavedFigure = "hearth-figure-";

/// Returns the kept copy; empty if it is gone or larger than `most`.
std::string copyOf(const controller::Services& services, const Artifact& artifact,
                   std::size_t most) {
    constexpr std::string_view kPrefix = "/v1/links/";
    if (!services.open_artifact || !artifact.url.starts_with(kPrefix)) return {};
    const std::string token =
        artifact.url.substr(kPrefix.size(), artifact.url.rfind('/') - kPrefix.size());
    try {
        const auto [fd, size] = services.open_artifact(
            controller::readLink(services.secret_key, token, services.clock.wall()));
        if (size > most) return {};
        std::string bytes(static_cast<std::size_t>(size), '\0');
        std::size_t have = 0;
        while (have < bytes.size()) {
            const ssize_t n = ::pread(fd.get(), bytes.data() + have, bytes.size() - have,
                                      static_cast<off_t>(have));
            if (n < 0 && errno == EINTR) continue;
            if (n <= 0) return {};
            have += static_cast<std::size_t>(n);
        }
        return bytes;
    } catch (const Error& e) {
        if (e.code() != ErrorCode::Gone) throw;
        return {};
    }
}

/// True if a result has exactly this picture: the program has saved it and shown it.
bool isResult(const controller::ExecutionView& view, const std::string& bytes) {
    const std::string form = '"' + base64Encode(bytes) + '"';
    return std::any_of(view.results.begin(), view.results.end(),
                       [&](const controller::ResultPtr& result) {
                           return result->document.find(form) != std::string::npos;
                       });
}

}  // namespace

void addArtifacts(ToolResult& result, const controller::Services& services,
                  const controller::ExecutionView& view, const std::string& origin) {
    if (view.artifacts.empty() && !view.artifacts_truncated) return;
    std::string list = "files made or changed:";
    std::size_t listed = 0;
    std::size_t pictures = 0;
    std::size_t room = result.room();
    room = (room - std::min(room, kRoomForList)) / 4 * 3;
    for (const Artifact& artifact : view.artifacts) {
        std::string how;
        const bool shown_smaller =
            artifact.path.substr(artifact.path.rfind('/') + 1).starts_with(kSavedFigure);
        if (artifact.mime.starts_with("image/") && artifact.size <= std::min(kImageCap, room) &&
            pictures < kMostPictures && !shown_smaller) {
            const std::string bytes = copyOf(services, artifact, std::min(kImageCap, room));
            if (!bytes.empty() && isResult(view, bytes)) {
                how = "; shown";
            } else if (const auto type = imageType(bytes)) {
                result.image(bytes, *type);
                room -= bytes.size();
                ++pictures;
                how = "; shown";
            }
        }
        if (++listed > kMostListed) continue;
        list += "\n- " + artifact.path + " (" + std::to_string(artifact.size) + " bytes, " +
                artifact.mime + how + ")";
        if (artifact.url.empty()) {
            list += artifact.not_kept ? std::string("; no copy kept: ") +
                                            controller::kNotKept.of(*artifact.not_kept)
                                      : "";
        } else {
            list += " " + origin + artifact.url;
        }
    }
    if (listed > kMostListed) list += "\n- and " + std::to_string(listed - kMostListed) + " more";
    if (view.artifacts_truncated) list += "\n- and perhaps others that are not listed";
    result.text(list);
}

}  // namespace hearth::mcp
