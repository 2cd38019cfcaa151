#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pool/image/Reference.h"

namespace hearth::controller {

/// The images that claims may use without a declared pool, as patterns of references: "python:*"
/// (every tag), "python:3.*-slim", "registry.example/team/*@sha256:*" (by digest only). A `*`
/// matches any characters except '/', and never part of a registry's host. An image named by
/// digest, with or without a tag, needs a pattern with a digest or with the tag `*`: a client
/// restricted to certain tags could otherwise use every old image.
class ImageAllowList {
public:
    ImageAllowList() = default;
    /// Throws Error(InvalidArgument) for a pattern that can match nothing, or has no tag and no
    /// digest.
    explicit ImageAllowList(const std::vector<std::string>& patterns);

    bool allows(std::string_view reference) const;
    bool empty() const { return patterns_.empty(); }
    /// The patterns as written, in one line.
    const std::string& text() const { return text_; }

private:
    struct Pattern {
        std::string repository;
        std::string tag;     ///< empty: none
        std::string digest;  ///< empty: none
    };
    static bool matches(const Pattern& pattern, const pool::image::Reference& reference);

    std::vector<Pattern> patterns_;
    std::string text_;
};

}  // namespace hearth::controller
