#include "base/yaml/Yaml.h"

#include <yaml-cpp/yaml.h>

#include <charconv>
#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/Error.h"

namespace hearth {
namespace {

[[noreturn]] void refuseAt(int line, const std::string& what) {
    throw Error(ErrorCode::InvalidArgument, "line " + std::to_string(line + 1) + ": " + what);
}

/// yaml-cpp by itself reads "yes" as a boolean and "010" as eight, as YAML 1.1 did.
Json scalarValue(const std::string& text) {
    if (text.empty() || text == "~" || text == "null") return nullptr;
    if (text == "true") return true;
    if (text == "false") return false;
    const char* const end = text.data() + text.size();
    std::uint64_t natural = 0;
    if (const auto [at, error] = std::from_chars(text.data(), end, natural);
        error == std::errc{} && at == end) {
        return natural;
    }
    std::int64_t negative = 0;
    if (const auto [at, error] = std::from_chars(text.data(), end, negative);
        error == std::errc{} && at == end) {
        return negative;
    }
    double real = 0;
    if (const auto [at, error] = std::from_chars(text.data(), end, real);
        error == std::errc{} && at == end && std::isfinite(real)) {
        return real;
    }
    return text;
}

class YamlReader {
public:
    explicit YamlReader(const YamlLimits& limits) : limits_(limits) {}

    Json read(const YAML::Node& node, std::size_t depth) {
        const int line = node.Mark().line;
        if (depth > limits_.depth) refuseAt(line, "nested too deeply");
        if (++values_ > limits_.values) refuseAt(line, "too many values (are there aliases?)");
        if (node.IsSequence()) {
            Json list = Json::array();
            for (const YAML::Node& item : node) list.push_back(read(item, depth + 1));
            return list;
        }
        if (node.IsMap()) return object(node, depth);
        if (!node.IsScalar()) return nullptr;
        if (!isUtf8(node.Scalar())) refuseAt(line, "is not UTF-8");
        // Quoted scalars have the tag "!", plain ones "?".
        return node.Tag() == "!" ? Json(node.Scalar()) : scalarValue(node.Scalar());
    }

private:
    Json object(const YAML::Node& node, std::size_t depth) {
        Json object = Json::object();
        for (const auto& entry : node) {
            const YAML::Node& key = entry.first;
            const int line = key.Mark().line;
            if (!key.IsScalar() || !isUtf8(key.Scalar())) refuseAt(line, "a key must be a name");
            const std::string& name = key.Scalar();
            if (object.contains(name)) refuseAt(line, "the key \"" + name + "\" stands twice");
            object[name] = read(entry.second, depth + 1);
        }
        return object;
    }

    const YamlLimits& limits_;
    std::size_t values_ = 0;
};

}  // namespace

Json parseYaml(const std::string& text, const YamlLimits& limits) {
    if (text.size() > limits.bytes) {
        throw Error(ErrorCode::InvalidArgument,
                    "line 1: the text is larger than " + std::to_string(limits.bytes) + " bytes");
    }
    std::vector<YAML::Node> documents;
    try {
        documents = YAML::LoadAll(text);
    } catch (const YAML::Exception& e) {
        refuseAt(std::max(e.mark.line, 0), e.msg);
    }
    if (documents.size() != 1) {
        refuseAt(0, "must be one document, not " + std::to_string(documents.size()));
    }
    return YamlReader(limits).read(documents.front(), 0);
}

}  // namespace hearth
