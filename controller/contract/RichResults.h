#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "base/Json.h"

namespace hearth::controller {

/// Something that code showed: a value, a figure, a table. Kept as the original text: parsed JSON
/// with many small values takes twenty times as much memory.
struct Result {
    std::uint64_t behind = 0;  ///< bytes of output before it
    bool main = false;         ///< the value of the last expression
    std::size_t values = 0;    ///< JSON values in the whole document
    /// `{main, mime, leftOut?}`; a long one is exactly as dumpJson() writes it.
    std::string document;

    /// Maps type to value: text, base64, or JSON; untrusted. Each call parses it anew.
    Json mime() const;
};
using ResultPtr = std::shared_ptr<const Result>;

/// A result's document with more bytes than this can be sent as it is.
inline constexpr std::size_t kLongResult = 64U << 10U;

/// The most JSON values in one execution's results; it bounds the cost of reading them all.
inline constexpr std::size_t kMostResultValues = 200'000;

/// Returns whether a type may stand in `mime`: text/plain, html, markdown, latex, csv; image/png,
/// jpeg, gif, webp, svg+xml; application/json, geo+json and vnd.….
bool isResultType(std::string_view type);
/// Returns whether a value of this type is JSON; else it is text.
bool isJsonType(std::string_view type);
/// Returns whether a value of this type is bytes in base64.
bool isBinaryType(std::string_view type);

/// Reads a document from a tenant's interpreter: an object of `main` and `mime`. A form that does
/// not fit is left out (ResultForms.h). Null if the document is anything else.
ResultPtr readResult(std::string_view document, std::uint64_t behind);
/// Loads a document that readResult() made. Null if it is not one.
ResultPtr keptResult(std::string_view document, std::uint64_t behind);

}  // namespace hearth::controller
