#include "base/yaml/Yaml.h"

#include <yaml-cpp/yaml.h>

#include <charconv>
#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <utility>

namespace hearth {
namespace {

constexpr std::size_t kMiB = 1U << 20U;

/// `line`: counted from 0, as yaml-cpp does.
[[noreturn]] void refuseAt(int line, const std::string& what) {
    throw YamlFault(line + 1, what);
}

std::string sizeText(std::size_t bytes) {
    return bytes % kMiB == 0 ? std::to_string(bytes / kMiB) + " MiB"
                             : std::to_string(bytes) + " bytes";
}

/// Read here because yaml-cpp takes "yes" for a boolean and "010" for eight, as YAML 1.1 did.
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
    YamlReader(const YamlLimits& limits, std::size_t& values, YamlDocument& out)
        : limits_(limits), values_(values), out_(out) {}

    Json read(const YAML::Node& node, const std::string& pointer, std::size_t depth) {
        const int line = node.Mark().line;
        out_.lines.emplace(pointer, line + 1);
        if (depth > limits_.depth) refuseAt(line, "nested too deeply");
        if (++values_ > limits_.values) refuseAt(line, "too many values (are there aliases?)");
        if (node.IsSequence()) {
            Json list = Json::array();
            for (const YAML::Node& item : node) {
                list.push_back(read(item, pointer + "/" + std::to_string(list.size()), depth + 1));
            }
            return list;
        }
        if (node.IsMap()) return object(node, pointer, depth);
        if (!node.IsScalar()) return nullptr;
        if (!isUtf8(node.Scalar())) refuseAt(line, "is not UTF-8");
        // Quoted scalars have the tag "!", plain ones "?".
        return node.Tag() == "!" ? Json(node.Scalar()) : scalarValue(node.Scalar());
    }

private:
    Json object(const YAML::Node& node, const std::string& pointer, std::size_t depth) {
        Json object = Json::object();
        for (const auto& entry : node) {
            const YAML::Node& key = entry.first;
            const int line = key.Mark().line;
            if (!key.IsScalar() || !isUtf8(key.Scalar())) refuseAt(line, "a key must be a name");
            const std::string& name = key.Scalar();
            if (object.contains(name)) refuseAt(line, "the key \"" + name + "\" is given twice");
            std::string inner = pointer;
            inner.append("/").append(name);
            out_.lines.emplace(inner, line + 1);  // reports a fault of the value at its key's line
            object[name] = read(entry.second, inner, depth + 1);
        }
        return object;
    }

    const YamlLimits& limits_;
    std::size_t& values_;  ///< counts all documents of the text
    YamlDocument& out_;
};

}  // namespace

std::vector<YamlDocument> parseYamlDocuments(const std::string& text, const YamlLimits& limits) {
    if (text.size() > limits.bytes) {
        refuseAt(0, "the text is larger than " + sizeText(limits.bytes));
    }
    std::vector<YAML::Node> nodes;
    try {
        nodes = YAML::LoadAll(text);
    } catch (const YAML::Exception& e) {
        refuseAt(std::max(e.mark.line, 0), e.msg);
    }
    std::vector<YamlDocument> documents;
    std::size_t values = 0;
    for (const YAML::Node& node : nodes) {
        YamlDocument& one = documents.emplace_back();
        one.json = YamlReader(limits, values, one).read(node, "", 0);
    }
    return documents;
}

Json parseYaml(const std::string& text, const YamlLimits& limits) {
    std::vector<YamlDocument> documents = parseYamlDocuments(text, limits);
    if (documents.size() != 1) {
        refuseAt(0, "must be one document, not " + std::to_string(documents.size()));
    }
    return std::move(documents.front().json);
}

}  // namespace hearth
