#include "controller/contract/RequestLimits.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/Error.h"
#include "pool/agent/protocol/Frame.h"
#include "pool/agent/protocol/WorkspacePath.h"
#include "pool/image/Reference.h"

namespace hearth::controller {
namespace {

constexpr std::size_t kMostVariables = 128;
constexpr std::size_t kMostFaults = 20;
/// Bytes of an agent's execution message that are reserved for fields the client does not set.
constexpr std::size_t kRoomForRest = 8U << 10U;

bool isLetter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/// Appends a name to a JSON pointer, escaped as in RFC 6901.
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
            faults.push_back({pointer, "must be at most 32 KiB without NUL"});
        }
    }
}

/// Orders paths so that a folder's entries come directly after it, before "folder.txt".
bool isBefore(std::string_view a, std::string_view b) {
    return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) {
        const auto rank = [](char c) { return c == '/' ? 0 : 1 + static_cast<unsigned char>(c); };
        return rank(x) < rank(y);
    });
}

/// Checks that the agent takes each path and that none needs a directory where another is a file.
/// Works on a sorted list: a list of all folders of all paths would be a thousand times as large.
void checkFiles(const std::vector<InlineFile>& files, std::vector<FieldError>& faults) {
    std::vector<std::pair<std::string, std::size_t>> names;
    const auto fault = [&faults](std::size_t at, const char* reason) {
        faults.push_back({"/files/" + std::to_string(at) + "/path", reason});
    };
    for (std::size_t i = 0; i < files.size(); ++i) {
        std::optional<std::string> path = agent::workspacePath(files[i].path);
        if (path && !path->empty()) {
            names.emplace_back(std::move(*path), i);
        } else {
            fault(i, "must name a file in the workspace, as src/main.py");
        }
    }
    std::stable_sort(names.begin(), names.end(),
                     [](const auto& a, const auto& b) { return isBefore(a.first, b.first); });
    std::set<std::size_t> clashes;
    const std::pair<std::string, std::size_t>* file = nullptr;
    for (const auto& each : names) {
        const bool below = file != nullptr && each.first.size() > file->first.size() &&
                           each.first[file->first.size()] == '/' &&
                           each.first.starts_with(file->first);
        if (below) {
            clashes.insert(std::max(each.second, file->second));
        } else {
            file = &each;
        }
    }
    for (const std::size_t at : clashes) fault(at, "is a file and a directory at once");
}

/// The number of bytes before escaping, including the punctuation around each text.
std::size_t roughSize(const ExecutionRequest& request) {
    constexpr std::size_t kSigns = 8;
    std::size_t size = request.cwd.size();
    if (request.command) size += request.command->size();
    if (request.code) size += request.code->size();
    for (const auto* texts : {&request.argv, &request.packages, &request.packages, &request.collect,
                              &request.collect}) {
        for (const std::string& text : *texts) size += text.size() + kSigns;
    }
    for (const auto& [name, value] : request.env) size += name.size() + value.size() + kSigns;
    return size;
}

/// Throws an error with the first fault as a sentence, and all of them as fields.
void refuse(const std::string& what, const std::vector<FieldError>& faults) {
    if (faults.empty()) return;
    const FieldError& first = faults.front();
    Error error(ErrorCode::InvalidArgument,
                what + " is not valid: " + first.pointer + " " + first.reason);
    for (std::size_t i = 0; i < std::min(faults.size(), kMostFaults); ++i) {
        error.field(faults[i].pointer, faults[i].reason);
    }
    throw std::move(error);
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
    checkFiles(request.files, faults);
    refuse("the workspace's request", faults);
    checkLabels(request.labels);
}

void checkRequest(const ExecutionRequest& request) {
    std::vector<FieldError> faults;
    const int ways =
        (request.argv.empty() ? 0 : 1) + (request.command ? 1 : 0) + (request.code ? 1 : 0);
    if (ways != 1) {
        faults.push_back({"", "needs exactly one of command, argv and code"});
    } else if (request.command && request.command->empty()) {
        faults.push_back({"/command", R"(must not be empty; write a shell command, as "ls -l")"});
    } else if (!request.argv.empty() && request.argv.front().empty()) {
        faults.push_back({"/argv/0", R"(must name a program, as in ["ls", "-l"])"});
    }
    refuse("the execution's request", faults);
    // Encode only a request that could be too large.
    if (kMostEscaped * roughSize(request) < agent::kMaxPayload - kRoomForRest) return;
    const Json told{request.argv,
                    request.command.value_or(""),
                    request.code.value_or(""),
                    request.cwd,
                    request.env,
                    request.packages,
                    request.packages,
                    request.collect,
                    request.collect};
    if (dumpJson(told).size() > agent::kMaxPayload - kRoomForRest) {
        throw Error(ErrorCode::PayloadTooLarge,
                    "the command or code and its environment are more than 248 KiB as JSON")
            .hint("write large input to a file first, or send it as stdin");
    }
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
