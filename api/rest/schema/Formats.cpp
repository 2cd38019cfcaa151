#include <algorithm>
#include <array>
#include <charconv>

#include "api/rest/schema/Schema.h"
#include "base/Ids.h"
#include "controller/contract/RequestLimits.h"
#include "controller/contract/RichResults.h"
#include "controller/contract/TenantName.h"
#include "controller/spec/DnsSubdomain.h"
#include "controller/spec/PoolName.h"
#include "pool/image/Reference.h"
#include "pool/spec/LanguageName.h"

namespace hearth::rest {
namespace {

bool isLower(char c) {
    return c >= 'a' && c <= 'z';
}
bool isDigit(char c) {
    return c >= '0' && c <= '9';
}
bool isAlnum(char c) {
    return isLower(c) || (c >= 'A' && c <= 'Z') || isDigit(c);
}
bool noNul(std::string_view text) {
    return text.find('\0') == std::string_view::npos;
}

template <typename Rule>
bool each(std::string_view text, Rule rule) {
    return std::all_of(text.begin(), text.end(), rule);
}

bool isLabelName(std::string_view text) {
    return !text.empty() && text.size() <= 63 && isAlnum(text.front()) && isAlnum(text.back()) &&
           each(text, [](char c) { return isAlnum(c) || c == '-' || c == '_' || c == '.'; });
}

bool isLabelKey(std::string_view text) {
    const std::size_t slash = text.find('/');
    if (slash == std::string_view::npos) return isLabelName(text);
    return controller::isDnsSubdomain(text.substr(0, slash)) && isLabelName(text.substr(slash + 1));
}

bool isLabelValue(std::string_view text) {
    return text.empty() || isLabelName(text);
}

bool isLanguage(std::string_view text) {
    return text.empty() || pool::isLanguageName(text);
}

bool isLabelSelector(std::string_view text) {
    const std::size_t equals = text.find('=');
    return equals != std::string_view::npos && isLabelKey(text.substr(0, equals)) &&
           isLabelValue(text.substr(equals + 1));
}

bool isPath(std::string_view text) {
    return !text.empty() && text.size() <= 4096 && noNul(text);
}

bool isArgument(std::string_view text) {
    return text.size() < (128U << 10U) && noNul(text);
}

bool isBase64(std::string_view text) {
    std::string ignored;
    return base64Decode(text, ignored);
}

bool isDateTime(std::string_view text) {
    constexpr std::string_view kShape = "dddd-dd-ddTdd:dd:dd";
    if (text.size() <= kShape.size() || text.back() != 'Z') return false;
    for (std::size_t i = 0; i < kShape.size(); ++i) {
        if (kShape[i] == 'd' ? !isDigit(text[i]) : text[i] != kShape[i]) return false;
    }
    return true;
}

bool isContextId(std::string_view text) {
    return isId(text, "cx_");
}

bool isDecimal(std::string_view text) {
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return !text.empty() && error == std::errc{} && end == text.data() + text.size();
}

}  // namespace

const Format kPoolName{"pool-name",
                       "^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$",
                       controller::kPoolNameRule,
                       controller::isPoolName,
                       "python",
                       63};
const Format kImageName{"image-name",
                        "^[A-Za-z0-9][A-Za-z0-9._/:@-]{0,254}$",
                        pool::image::kImageRule,
                        pool::image::isImage,
                        "python",
                        255};
const Format kEnvName{"env-name",
                      "^[A-Za-z_][A-Za-z0-9_]{0,254}$",
                      "must be letters, digits and underscores, not beginning with a digit",
                      controller::isEnvName,
                      "NAME",
                      255};
const Format kEnvValue{
    "env-value", "", "must be at most 32 KiB without NUL", controller::isEnvValue, "value", 32768};
const Format kLabelKey{
    "label-key",
    "^([a-z0-9.-]{1,253}/)?[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$",
    "must be a name of up to 63 letters, digits, '-', '_' and '.', with an optional DNS prefix and "
    "'/'",
    isLabelKey,
    "app",
    317};
const Format kLabelValue{"label-value",
                         "^([A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?$",
                         "must be up to 63 letters, digits, '-', '_' and '.', or empty",
                         isLabelValue,
                         "shop",
                         63};
const Format kLanguage{"language",
                       "^([a-z0-9+#._-]{1,32})?$",
                       "must be up to 32 of a-z, 0-9 and + # . _ -, or empty",
                       isLanguage,
                       "python",
                       32};
const Format kPath{"path", "", "must be 1 to 4096 bytes without NUL", isPath, "a.txt", 4096};
const Format kArgument{"argument", "",     "must be less than 128 KiB without NUL",
                       isArgument, "true", 131071};
const Format kBase64{"base64", "",     "must be base64 (standard alphabet, with padding)",
                     isBase64, "aGk=", kLargestJson};
const Format kTenant{"tenant-name",
                     "^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$",
                     controller::kTenantNameRule,
                     controller::isTenantName,
                     "default",
                     63};
const Format kDisplayName{"display-name",
                          "",
                          "must be 1 to 253 bytes without control characters",
                          controller::isDisplayName,
                          "example",
                          253};
const Format kDateTime{"date-time", "", "must be an RFC 3339 time in UTC", isDateTime,
                       "2026-11-21T03:04:05.678Z"};
const Format kDecimal{"decimal", "^[0-9]{1,20}$", "must be a decimal number", isDecimal, "0", 20};
const Format kContextId{"context-id",
                        "^cx_[0-9a-f]{32}$",
                        "must be a context's id, \"cx_…\"",
                        isContextId,
                        "cx_5f0c2c9a3d1e4b7f8a6b5c4d3e2f1a0b",
                        35};
const Format kResultType{"result-type", "", "must be a media type that a result may have",
                         controller::isResultType, "text/plain"};
const Format kLabelSelector{"label-selector", "^[^=]+=[^=]*$", "must be key=value of a label",
                            isLabelSelector,  "app=shop",      381};

}  // namespace hearth::rest
