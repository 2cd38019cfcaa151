#include "controller/spec/ImageAllowList.h"

#include <algorithm>

#include "base/Error.h"

namespace hearth::controller {
namespace {

constexpr char kAny = '*';
constexpr std::string_view kAlgorithm = "sha256:";

/// Returns whether `text` matches `glob`; each `*` stands for any characters except '/'.
bool matchesGlob(std::string_view glob, std::string_view text) {
    std::size_t g = 0;
    std::size_t t = 0;
    std::size_t star = std::string_view::npos;  // the last one, and where its text ends so far
    std::size_t taken = 0;
    while (t < text.size()) {
        if (g < glob.size() && glob[g] == kAny) {
            star = g++;
            taken = t;
        } else if (g < glob.size() && glob[g] == text[t]) {
            ++g;
            ++t;
        } else if (star != std::string_view::npos && text[taken] != '/') {
            g = star + 1;
            t = ++taken;
        } else {
            return false;
        }
    }
    while (g < glob.size() && glob[g] == kAny) ++g;
    return g == glob.size();
}

bool isPatternOf(std::string_view text, std::string_view further) {
    return !text.empty() && std::all_of(text.begin(), text.end(), [&](char c) {
        return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == kAny || c == '.' ||
               c == '_' || c == '-' || further.find(c) != std::string_view::npos;
    });
}

bool isUpper(char c) {
    return c >= 'A' && c <= 'Z';
}

[[noreturn]] void refusePattern(const std::string& written, const std::string& why) {
    throw Error(ErrorCode::InvalidArgument,
                "\"" + written + "\" is not a pattern of images: " + why)
        .hint(
            "write it as python:*, registry.example/team/*:* or "
            "registry.example/team/*@sha256:*");
}

}  // namespace

ImageAllowList::ImageAllowList(const std::vector<std::string>& patterns) {
    for (const std::string& written : patterns) {
        const auto refuse = [&](const char* why) { refusePattern(written, why); };
        std::string_view rest = written;
        Pattern pattern;
        if (const std::size_t at = rest.find('@'); at != std::string_view::npos) {
            pattern.digest = rest.substr(at + 1);
            rest = rest.substr(0, at);
            const std::string_view digest = pattern.digest;
            if (!digest.starts_with(kAlgorithm) ||
                !isPatternOf(digest.substr(kAlgorithm.size()), "")) {
                refuse("a digest begins with sha256:");
            }
        }
        const std::size_t slash = rest.rfind('/');
        const std::size_t colon = rest.rfind(':');
        if (colon != std::string_view::npos && (slash == std::string_view::npos || colon > slash)) {
            pattern.tag = rest.substr(colon + 1);
            rest = rest.substr(0, colon);
            std::string lower = pattern.tag;
            std::replace_if(lower.begin(), lower.end(), isUpper, 'a');
            if (!isPatternOf(lower, "")) refuse("its tag is not valid");
        }
        if (pattern.tag.empty() && pattern.digest.empty()) {
            refuse("it names neither tags nor digests");
        }
        for (const std::string_view usual : {"docker.io/", "index.docker.io/", "library/"}) {
            if (rest.starts_with(usual)) rest.remove_prefix(usual.size());
        }
        if (!isPatternOf(rest, "/:") || rest.front() == '/' || rest.back() == '/') {
            refuse("its repository is not valid");
        }
        if (pool::image::registryOf(rest).find(kAny) != std::string::npos) {
            refuse("* cannot stand for a registry's host");
        }
        pattern.repository = rest;
        patterns_.push_back(std::move(pattern));
        text_ += (text_.empty() ? "" : ", ") + written;
    }
}

bool ImageAllowList::matches(const Pattern& pattern, const pool::image::Reference& reference) {
    if (pool::image::registryOf(pattern.repository) !=
        pool::image::registryOf(reference.repository))
        return false;
    if (!matchesGlob(pattern.repository, reference.repository)) return false;
    if (!reference.digest.empty()) {
        if (pattern.digest.empty()) return pattern.tag == "*";
        return matchesGlob(pattern.digest, reference.digest) &&
               (pattern.tag.empty() || matchesGlob(pattern.tag, reference.tag));
    }
    return pattern.digest.empty() && matchesGlob(pattern.tag, reference.tag);
}

bool ImageAllowList::allows(std::string_view text) const {
    const auto reference = pool::image::parseReference(text);
    return reference && std::any_of(patterns_.begin(), patterns_.end(),
                                    [&](const Pattern& each) { return matches(each, *reference); });
}

}  // namespace hearth::controller
