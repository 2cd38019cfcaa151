#include "controller/contract/RichResults.h"

#include <algorithm>
#include <array>

#include "base/Error.h"
#include "base/Ids.h"
#include "controller/contract/RawMembers.h"
#include "controller/contract/ResultForms.h"
#include "pool/agent/protocol/Frame.h"

namespace hearth::controller {
namespace {

constexpr std::size_t kMostTypes = 16;
constexpr std::size_t kMostForms = 64;  // of `mime`, with those that are left out
constexpr std::size_t kMostReason = 200;
constexpr std::size_t kMostDepth = 48;  // of one form; clients read answers 64 deep
constexpr std::size_t kMostFormValues = 100'000;
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
    if (type.size() > 100 || !type.starts_with(kVendor)) return false;
    if (!type.ends_with("+json") && !type.ends_with(".json")) return false;  // as altair 6 ends
    type = type.substr(kVendor.size(), type.size() - kVendor.size() - 5);
    return !type.empty() && std::all_of(type.begin(), type.end(), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '-';
    });
}

std::size_t countValues(const Json& value) {
    std::size_t count = 1;
    if (value.is_structured()) {
        for (const Json& each : value) count += countValues(each);
    }
    return count;
}

/// In documents that the server wrote, numbers may be longer than they came.
constexpr JsonLimits kOwnLimits{.bytes = 4 * agent::kMaxResult,
                                .depth = 64,
                                .values = 2 * kMostResultValues,
                                .members = 100'000};

/// One result while it is read.
class ResultReader {
public:
    /// `room`: how many JSON values it may have.
    explicit ResultReader(std::size_t room) : room_(room) {}

    /// Adds the forms of `mime`, the plain text first: it is there for those that cannot be shown.
    void addForms(const std::vector<RawMember>& forms) {
        for (const bool plain : {true, false}) {
            for (const RawMember& form : forms) {
                if ((form.key == kTexts[0]) == plain) addForm(form);
            }
        }
    }
    /// Adds the forms that the interpreter left out itself: pairs of type and reason.
    void addLeftOut(std::string_view raw) {
        const ForeignValue list =
            foreignValue(raw, {.bytes = 64U << 10U, .depth = 3, .values = 256});
        if (!list.json || !list.json->is_array()) return;
        for (const Json& each : *list.json) {
            if (each.is_object()) leaveOut(textAt(each, "type"), textAt(each, "reason"));
        }
    }
    bool empty() const { return mime_.empty() && left_out_.empty(); }
    Json document(bool main) && {
        Json out{{"main", main}, {"mime", std::move(mime_)}};
        if (!left_out_.empty()) out["leftOut"] = std::move(left_out_);
        return out;
    }

private:
    void addForm(const RawMember& form) {
        if (!isResultType(form.key)) return leaveOut(form.key, "results have no such type");
        if (mime_.contains(form.key)) return leaveOut(form.key, "it is given twice");
        if (mime_.size() == kMostTypes) return leaveOut(form.key, "the result has too many forms");
        const bool is_json = isJsonType(form.key);
        const JsonLimits limits{.bytes = 2 * agent::kMaxResult,
                                .depth = kMostDepth,
                                .values = std::min(room_, kMostFormValues),
                                .members = kMostFormValues};
        ForeignValue value = foreignValue(form.value, is_json ? limits : JsonLimits{limits.bytes});
        if (!value.json) return leaveOut(form.key, value.problem);
        if (is_json) {
            room_ -= countValues(*value.json);
        } else if (!value.json->is_string()) {
            return leaveOut(form.key, "its value is no text");
        } else if (isBinaryType(form.key) && !isBase64(value.json->get_ref<std::string&>())) {
            return leaveOut(form.key, "it is not base64");
        }
        mime_[form.key] = std::move(*value.json);
    }
    /// Checks for base64 and takes out the ends of lines, which encoders for mail write.
    static bool isBase64(std::string& text) {
        std::erase_if(text, [](char c) { return c == '\n' || c == '\r'; });
        std::string ignored;
        return base64Decode(text, ignored);
    }
    void leaveOut(std::string_view type, std::string_view reason) {
        if (left_out_.size() == kMostForms) return;
        const auto text = [](std::string_view foreign) {
            return toUtf8(foreign.substr(0, kMostReason));
        };
        left_out_.push_back({{"type", text(type)}, {"reason", text(reason)}});
    }

    std::size_t room_;
    Json mime_ = Json::object();
    Json left_out_ = Json::array();
};

}  // namespace

Json documentOf(const Result& result) {
    return parseJson(result.document, kOwnLimits);
}

Json Result::mime() const {
    return std::move(documentOf(*this).at("mime"));
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
    return readResult(document, behind, kMostResultValues);
}

ResultPtr readResult(std::string_view document, std::uint64_t behind, std::size_t most) {
    const auto members = rawMembers(document, 3);
    if (!members) return nullptr;  // untrusted: the caller counts it
    std::optional<bool> main;
    std::optional<std::vector<RawMember>> forms;
    ResultReader reader(most);
    for (const RawMember& member : *members) {
        if (member.key == "main" && (member.value == "true" || member.value == "false")) {
            main = member.value == "true";
        } else if (member.key == "mime") {
            forms = rawMembers(member.value, kMostForms);
        } else if (member.key == "leftOut") {
            reader.addLeftOut(member.value);
        } else {
            return nullptr;
        }
    }
    if (!main || !forms) return nullptr;
    reader.addForms(*forms);
    if (reader.empty()) return nullptr;
    const Json whole = std::move(reader).document(*main);
    auto result = std::make_shared<Result>();
    result->behind = behind;
    result->main = *main;
    result->values = countValues(whole);
    result->document = dumpJson(whole);
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
