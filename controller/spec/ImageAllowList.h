#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pool/image/Reference.h"

namespace hearth::controller {

/// Which images claims may use without a declared pool, as patterns of references:
/// "python:*" (every tag), "python:3.*-slim", "registry.example/team/*@sha256:*" (by digest only).
/// A `*` stands for any characters but '/', and never for a registry's host. An image that is named
/// by digest, with or without a tag, needs a pattern with a digest or one whose tag is just `*`:
/// whoever may have only some tags could otherwise have every old one.
class ImageAllowList {
public:
    ImageAllowList() = default;
    /// Throws Error(InvalidArgument) for a pattern that can match nothing, or names no tag and no
    /// digest.
    explicit ImageAllowList(const std::vector<std::string>& patterns);

    bool allows(std::string_view reference) const;
    bool empty() const { return patterns_.empty(); }
    /// The patterns as they were written, in one line.
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
