#include "controller/contract/RequestLimits.h"

#include <algorithm>

#include "base/Error.h"
#include "pool/image/Reference.h"

namespace hearth::controller {
namespace {

constexpr std::size_t kMostVariables = 128;
constexpr std::size_t kMostFaults = 20;

bool isLetter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/// As RFC 6901 writes it.
std::string pointerTo(const std::string& parent, const std::string& name) {
    std::string out = parent + "/";
    for (const char c : name) out += c == '~' ? "~0" : c == '/' ? "~1" : std::string(1, c);
    return out;
}

void checkVariables(const std::map<std::string, std::string>& variables, const std::string& field,
                    std::vector<FieldError>& faults) {
    if (variables.size() > kMostVariables) {
        faults.push_back(
            {field, "must have at most " + std::to_string(kMostVariables) + " entries"});
        return;
    }
    for (const auto& [name, value] : variables) {
        // An invalid name may have any length and any bytes.
        const std::string pointer = pointerTo(field, toUtf8(name.substr(0, 255)));
        if (!isEnvName(name)) {
            faults.push_back({pointer,
                              "the key must be letters, digits and underscores, not beginning "
                              "with a digit"});
        }
        if (!isEnvValue(value)) {
            faults.push_back({pointer, "must be at most 32768 bytes without NUL"});
        }
    }
}

}  // namespace

bool isEnvName(std::string_view text) {
    return !text.empty() && text.size() <= 255 && isLetter(text.front()) &&
           std::all_of(text.begin(), text.end(),
                       [](char c) { return isLetter(c) || (c >= '0' && c <= '9'); });
}

bool isEnvValue(std::string_view text) {
    return text.size() <= (32U << 10U) && text.find('\0') == std::string_view::npos;
}

bool isDisplayName(std::string_view text) {
    return !text.empty() && text.size() <= 253 && std::all_of(text.begin(), text.end(), [](char c) {
        const auto byte = static_cast<unsigned char>(c);
        return byte >= 0x20 && byte != 0x7F;
    });
}

void checkRequest(const WorkspaceRequest& request) {
    std::vector<FieldError> faults;
    checkVariables(request.env, "/env", faults);
    checkVariables(request.secrets, "/secrets", faults);
    const std::string name = request.name.value_or("");
    if (!name.empty() && !isDisplayName(name)) {
        faults.push_back({"/name", "must be 1 to 253 bytes without control characters"});
    }
    if (request.image && !pool::image::isImage(*request.image)) {
        faults.push_back({"/image", pool::image::kImageRule});
    }
    if (!faults.empty()) {
        const FieldError& first = faults.front();
        Error error(ErrorCode::InvalidArgument,
                    "the workspace's request is not valid: " + first.pointer + " " + first.reason);
        for (std::size_t i = 0; i < std::min(faults.size(), kMostFaults); ++i) {
            error.field(faults[i].pointer, faults[i].reason);
        }
        throw std::move(error);
    }
    checkLabels(request.labels);
}

void checkLabels(const std::map<std::string, std::string>& labels) {
    if (labels.size() > kMostLabels) {
        throw Error(ErrorCode::InvalidArgument,
                    "a workspace has at most " + std::to_string(kMostLabels) + " labels")
            .field("/labels", "would be " + std::to_string(labels.size()))
            .hint("a PATCH with null for a key removes it");
    }
    if (dumpJson(Json(labels)).size() > kMostTold) {
        throw Error(ErrorCode::InvalidArgument, "a workspace has at most 56 KiB of labels")
            .field("/labels", "would be more than 56 KiB");
    }
}

}  // namespace hearth::controller
