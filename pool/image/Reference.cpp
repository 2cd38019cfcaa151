#include "pool/image/Reference.h"

#include <algorithm>

namespace hearth::pool::image {
namespace {

constexpr std::size_t kMaxName = 64;
constexpr std::size_t kMaxReference = 255;
constexpr std::size_t kMaxTag = 128;
constexpr std::string_view kAlgorithm = "sha256:";
constexpr std::string_view kHex = "0123456789abcdef";

bool isLower(char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

bool isWord(char c) {
    return isLower(c) || (c >= 'A' && c <= 'Z') || c == '.' || c == '_' || c == '-';
}

/// Checks the parts between slashes; the first may be a host with a port.
bool isRepository(std::string_view text) {
    for (bool first = true;; first = false) {
        const std::size_t slash = text.find('/');
        const std::string_view part = text.substr(0, slash);
        if (part.empty() || !isWord(part.front()) || part.front() == '.' || part.front() == '-' ||
            part.back() == '.') {
            return false;
        }
        const bool host = first && slash != std::string_view::npos;
        const bool plain = std::all_of(part.begin(), part.end(), [&](char c) {
            return isLower(c) || c == '.' || c == '_' || c == '-' ||
                   (host && (isWord(c) || c == ':'));
        });
        if (!plain) return false;
        if (slash == std::string_view::npos) return true;
        text.remove_prefix(slash + 1);
    }
}

}  // namespace

bool isImageName(std::string_view text) {
    return !text.empty() && text.size() <= kMaxName && isLower(text.front()) &&
           std::all_of(text.begin(), text.end(),
                       [](char c) { return isLower(c) || c == '.' || c == '_' || c == '-'; });
}

bool isDigest(std::string_view text) {
    return text.starts_with(kAlgorithm) && text.size() == kAlgorithm.size() + 64 &&
           text.find_first_not_of(kHex, kAlgorithm.size()) == std::string_view::npos;
}

bool isTag(std::string_view text) {
    return !text.empty() && text.size() <= kMaxTag && text.front() != '.' && text.front() != '-' &&
           std::all_of(text.begin(), text.end(), isWord);
}

std::string Reference::text() const {
    return repository + (tag.empty() ? "" : ":" + tag) + (digest.empty() ? "" : "@" + digest);
}

std::optional<Reference> parseReference(std::string_view text) {
    if (text.size() > kMaxReference) return std::nullopt;
    Reference reference;
    if (const std::size_t at = text.find('@'); at != std::string_view::npos) {
        reference.digest = text.substr(at + 1);
        if (!isDigest(reference.digest)) return std::nullopt;
        text = text.substr(0, at);
    }
    const std::size_t slash = text.rfind('/');
    const std::size_t colon = text.rfind(':');
    if (colon != std::string_view::npos && (slash == std::string_view::npos || colon > slash)) {
        reference.tag = text.substr(colon + 1);
        if (!isTag(reference.tag)) return std::nullopt;
        text = text.substr(0, colon);
    }
    for (const std::string_view usual : {"docker.io/", "index.docker.io/"}) {
        if (text.starts_with(usual)) text.remove_prefix(usual.size());
    }
    constexpr std::string_view kOfficial = "library/";
    if (text.starts_with(kOfficial)) text.remove_prefix(kOfficial.size());
    if (!isRepository(text)) return std::nullopt;
    reference.repository = text;
    if (reference.tag.empty() && reference.digest.empty()) reference.tag = "latest";
    return reference;
}

bool isImage(std::string_view text) {
    return isImageName(text) || parseReference(text);
}

std::string registryOf(std::string_view repository) {
    const std::size_t slash = repository.find('/');
    if (slash == std::string_view::npos) return {};
    const std::string_view first = repository.substr(0, slash);
    const bool host = first == "localhost" || first.find_first_of(".:") != std::string_view::npos;
    return std::string(host ? first : std::string_view());
}

std::string storeName(const Reference& reference) {
    std::string name = reference.repository;
    if (!reference.tag.empty() && reference.tag != "latest") name += "-" + reference.tag;
    for (char& c : name) {
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
        if (c == '/' || c == ':') c = '-';
    }
    name.resize(std::min(name.size(), kMaxName));
    return isImageName(name) ? name : std::string();
}

}  // namespace hearth::pool::image
