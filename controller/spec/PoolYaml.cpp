#include <map>

#include "base/Error.h"
#include "base/yaml/Yaml.h"
#include "controller/spec/PoolSpec.h"
#include "controller/spec/YamlDocument.h"

namespace hearth::controller {
namespace {

using Lines = std::map<std::string, int>;

/// Returns the line of the nearest existing parent: a missing field is reported there.
int lineOf(const Lines& lines, std::string pointer) {
    while (true) {
        if (const auto found = lines.find(pointer); found != lines.end()) return found->second;
        const std::size_t slash = pointer.rfind('/');
        if (slash == std::string::npos) return 1;
        pointer.resize(slash);
    }
}

std::vector<YamlDocument> documentsOf(const std::string& text, std::string_view source) {
    try {
        return parseYamlDocuments(text);
    } catch (const YamlFault& e) {
        throw Error(ErrorCode::InvalidSpec,
                    std::string(source) + ":" + std::to_string(e.line()) + ": " + e.reason());
    }
}

}  // namespace

Json parseYamlDocument(const std::string& text, std::string_view source) {
    const std::vector<YamlDocument> documents = documentsOf(text, source);
    if (documents.size() != 1) {
        throw Error(ErrorCode::InvalidSpec, std::string(source) + ": is not one document");
    }
    return documents.front().json;
}

std::vector<Pool> parsePoolYaml(const std::string& text, std::string_view source) {
    std::vector<Pool> pools;
    for (const YamlDocument& document : documentsOf(text, source)) {
        if (document.json.is_null()) continue;
        try {
            pools.push_back(parsePool(document.json));
        } catch (const Error& e) {
            std::string message;
            for (const FieldError& field : e.fields()) {
                message += (message.empty() ? "" : "\n") + std::string(source) + ":" +
                           std::to_string(lineOf(document.lines, field.pointer)) + ": " +
                           field.pointer + " " + field.reason;
            }
            Error located(e.code(), message.empty() ? e.what() : message);
            for (const FieldError& field : e.fields()) located.field(field.pointer, field.reason);
            throw located;
        }
    }
    if (pools.empty()) throw Error(ErrorCode::InvalidSpec, std::string(source) + ": no manifest");
    return pools;
}

}  // namespace hearth::controller
