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

/// Something that code showed: a value, a figure, a table. Kept as the text it came as: read, JSON
/// of many small values takes twenty times as much memory.
struct Result {
    std::uint64_t behind = 0;  ///< stands behind so much output
    bool main = false;         ///< the value of the last expression
    std::size_t values = 0;    ///< of JSON, in all of it
    /// `{main, mime}`; of a long one exactly as dumpJson() writes it.
    std::string document;

    /// Type to value: text, base64, or JSON; untrusted. Read anew by each call.
    Json mime() const;
};
using ResultPtr = std::shared_ptr<const Result>;

/// The document of a result with more bytes than this can be sent as it stands.
inline constexpr std::size_t kLongResult = 64U << 10U;

/// So many values of JSON the results of one execution may have, for whoever reads them all.
inline constexpr std::size_t kMostResultValues = 200'000;

/// Whether a type may stand in `mime`: text/plain, html, markdown, latex, csv; image/png, jpeg,
/// gif, webp, svg+xml; application/json, geo+json and vnd.….
bool isResultType(std::string_view type);
/// Whether its value is JSON; else it is text.
bool isJsonType(std::string_view type);
/// Whether its value is base64 of bytes.
bool isBinaryType(std::string_view type);

/// Reads what a tenant's interpreter sent: an object of `main` and `mime`, each value of the kind
/// that its type wants, within bounds of depth and size. Null if it is anything else.
ResultPtr readResult(std::string_view document, std::uint64_t behind);
/// Takes up a document that readResult() made. Null if it is none.
ResultPtr keptResult(std::string_view document, std::uint64_t behind);

}  // namespace hearth::controller
