#include "controller/contract/RichResults.h"

#include <algorithm>
#include <array>

#include "base/Error.h"
#include "base/Ids.h"
#include "pool/agent/protocol/Frame.h"

namespace hearth::controller {
namespace {

constexpr std::size_t kMostTypes = 16;
constexpr std::string_view kVendor = "application/vnd.";
constexpr std::array<std::string_view, 6> kTexts{"text/plain", "text/html", "text/markdown",
                                                 "text/latex", "text/csv",  "image/svg+xml"};
constexpr std::array<std::string_view, 4> kBinaries{"image/png", "image/jpeg", "image/gif",
                                                    "image/webp"};
constexpr std::array<std::string_view, 2> kJsons{"application/json", "application/geo+json"};

template <std::size_t N>
bool among(const std::array<std::string_view, N>& names, std::string_view type) {
    return std::find(names.begin(), names.end(), type) != names.end();
}

/// `application/vnd.NAME+json`: the types of plots and widgets.
bool isVendorJson(std::string_view type) {
    if (type.size() > 100 || !type.starts_with(kVendor) || !type.ends_with("+json")) return false;
    type = type.substr(kVendor.size(), type.size() - kVendor.size() - 5);
    return !type.empty() && std::all_of(type.begin(), type.end(), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '-';
    });
}

bool fits(const std::string& type, const Json& value) {
    if (isJsonType(type)) return true;
    if (!value.is_string()) return false;
    std::string ignored;
    return !isBinaryType(type) || base64Decode(value.get_ref<const std::string&>(), ignored);
}

std::size_t countValues(const Json& value) {
    std::size_t count = 1;
    if (value.is_structured()) {
        for (const Json& each : value) count += countValues(each);
    }
    return count;
}

constexpr JsonLimits kLimits{
    .bytes = agent::kMaxResult, .depth = 16, .values = 100'000, .members = 1'000};
/// In documents that the server wrote, numbers may be longer than they came.
constexpr JsonLimits kOwnLimits{
    .bytes = 4 * agent::kMaxResult, .depth = 16, .values = 100'000, .members = 1'000};

}  // namespace

Json Result::mime() const {
    return std::move(parseJson(document, kOwnLimits).at("mime"));
}

bool isJsonType(std::string_view type) {
    return among(kJsons, type) || isVendorJson(type);
}

bool isBinaryType(std::string_view type) {
    return among(kBinaries, type);
}

bool isResultType(std::string_view type) {
    return among(kTexts, type) || isBinaryType(type) || isJsonType(type);
}

ResultPtr readResult(std::string_view document, std::uint64_t behind) {
    Json json;
    try {
        json = parseJson(document, kLimits);
    } catch (const Error&) {
        return nullptr;  // untrusted: the caller counts it
    }
    if (!json.is_object() || json.size() > 2) return nullptr;
    const auto main = json.find("main");
    const auto mime = json.find("mime");
    if (main == json.end() || !main->is_boolean() || mime == json.end() || !mime->is_object() ||
        mime->empty() || mime->size() > kMostTypes) {
        return nullptr;
    }
    for (const auto& [type, value] : mime->items()) {
        if (!isResultType(type) || !fits(type, value)) return nullptr;
    }
    auto result = std::make_shared<Result>();
    result->behind = behind;
    result->main = main->get<bool>();
    result->values = countValues(json);
    if (document.size() > kLongResult) {
        Json whole = Json::object();
        whole["main"] = result->main;
        whole["mime"] = std::move(*mime);
        result->document = dumpJson(whole);
    } else {
        result->document = std::string(document);
    }
    return result;
}

ResultPtr keptResult(std::string_view document, std::uint64_t behind) {
    Json json;
    try {
        json = parseJson(document, kOwnLimits);
    } catch (const Error&) {
        return nullptr;  // the server did not write this file
    }
    if (!json.is_object() || !json.contains("main") || !json.contains("mime")) return nullptr;
    auto result = std::make_shared<Result>();
    result->behind = behind;
    result->main = json["main"] == true;
    result->values = countValues(json);
    result->document = std::string(document);
    return result;
}

}  // namespace hearth::controller
