#include "pool/runtime/docker/RootArchive.h"

#include <stdexcept>

#include "base/Json.h"
#include "pool/runtime/docker/TarHeader.h"

namespace hearth::pool::docker {

void RootArchive::addFolder(const std::string& name) {
    tar_ += tarHeader({.name = name + "/", .mode = 0755, .folder = true});
}

void RootArchive::addFile(const std::string& name, const std::string& content, unsigned mode) {
    tar_ += tarHeader({.name = name, .size = content.size(), .mode = mode}) + content;
    tar_.append(tarPadding(content.size()), '\0');
}

std::string RootArchive::bytes() const {
    return tar_ + tarEnd();
}

void RootArchive::load(EngineClient& engine, const std::string& repository, const std::string& tag,
                       TimePoint until) const {
    const std::string whole = bytes();
    std::size_t at = 0;
    EngineRequest request{.method = "POST",
                          .target = "/images/create?fromSrc=-&repo=" + percentEncoded(repository) +
                                    "&tag=" + percentEncoded(tag),
                          .body = {}};
    request.archive = [&](char* out, std::size_t size) {
        const std::size_t n = whole.copy(out, size, at);
        at += n;
        return n;
    };
    const EngineResponse response = engine.call(std::move(request), until);
    // Failures after the start come in the stream of progress.
    if (response.body.find("\"errorDetail\"") != std::string::npos) {
        throw std::runtime_error("docker: image import: " + toUtf8(response.body.substr(0, 500)));
    }
}

}  // namespace hearth::pool::docker
