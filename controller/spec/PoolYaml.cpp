#include <yaml-cpp/yaml.h>

#include <charconv>
#include <cmath>
#include <map>

#include "base/Error.h"
#include "controller/spec/PoolSpec.h"
#include "controller/spec/YamlDocument.h"

namespace hearth::controller {
namespace {

constexpr std::size_t kMaxYamlBytes = 1U << 20U;
constexpr std::size_t kMaxDepth = 32;
constexpr std::size_t kMaxNodes = 20'000;

using Lines = std::map<std::string, int>;

/// The meaning of a plain scalar (YAML 1.2 core schema; yaml-cpp would read "yes" as a boolean and
/// "010" as eight).
Json plainScalar(const std::string& text) {
    if (text.empty() || text == "~" || text == "null") return nullptr;
    if (text == "true") return true;
    if (text == "false") return false;
    const char* end = text.data() + text.size();
    std::int64_t whole = 0;
    if (const auto [at, error] = std::from_chars(text.data(), end, whole);
        error == std::errc{} && at == end) {
        if (whole >= 0) return static_cast<std::uint64_t>(whole);
        return whole;
    }
    double real = 0;
    if (const auto [at, error] = std::from_chars(text.data(), end, real);
        error == std::errc{} && at == end && std::isfinite(real)) {
        return real;
    }
    return text;
}

class Converter {
public:
    Converter(std::string_view source, Lines& lines) : source_(source), lines_(lines) {}

    Json convert(const YAML::Node& node, const std::string& pointer, std::size_t depth) {
        const int line = node.Mark().line + 1;
        lines_[pointer] = line;
        if (depth > kMaxDepth) fail(line, "nested too deeply");
        if (++nodes_ > kMaxNodes) fail(line, "too many values (are there aliases?)");
        if (node.IsScalar()) {
            // yaml-cpp tags quoted scalars "!" and plain ones "?".
            if (node.Tag() == "!") return node.Scalar();
            return plainScalar(node.Scalar());
        }
        if (node.IsSequence()) {
            Json out = Json::array();
            std::size_t index = 0;
            for (const YAML::Node& item : node) {
                out.push_back(convert(item, pointer + "/" + std::to_string(index++), depth + 1));
            }
            return out;
        }
        if (node.IsMap()) {
            Json out = Json::object();
            for (const auto& entry : node) {
                if (!entry.first.IsScalar()) fail(line, "a key must be a plain name");
                const std::string& key = entry.first.Scalar();
                if (out.contains(key)) {
                    fail(entry.first.Mark().line + 1, "the key \"" + key + "\" stands twice");
                }
                std::string inner = pointer;
                inner.append("/").append(key);
                out[key] = convert(entry.second, inner, depth + 1);
                lines_[inner] = entry.first.Mark().line + 1;
            }
            return out;
        }
        return nullptr;
    }

private:
    [[noreturn]] void fail(int line, const std::string& what) const {
        throw Error(ErrorCode::InvalidSpec,
                    std::string(source_) + ":" + std::to_string(line) + ": " + what);
    }

    std::string_view source_;
    Lines& lines_;
    std::size_t nodes_ = 0;
};

/// The line of the nearest thing that exists: a missing field is reported at its parent.
int lineOf(const Lines& lines, std::string pointer) {
    while (true) {
        if (const auto found = lines.find(pointer); found != lines.end()) return found->second;
        const std::size_t slash = pointer.rfind('/');
        if (slash == std::string::npos) return 1;
        pointer.resize(slash);
    }
}

std::vector<YAML::Node> loadYaml(const std::string& text, std::string_view source) {
    if (text.size() > kMaxYamlBytes) {
        throw Error(ErrorCode::InvalidSpec, std::string(source) + ": larger than 1 MiB");
    }
    try {
        return YAML::LoadAll(text);
    } catch (const YAML::Exception& e) {
        throw Error(ErrorCode::InvalidSpec,
                    std::string(source) + ":" + std::to_string(e.mark.line + 1) + ": " + e.msg);
    }
}

}  // namespace

Json parseYamlDocument(const std::string& text, std::string_view source) {
    const std::vector<YAML::Node> documents = loadYaml(text, source);
    if (documents.size() != 1) {
        throw Error(ErrorCode::InvalidSpec, std::string(source) + ": is not one document");
    }
    Lines lines;
    return Converter(source, lines).convert(documents.front(), "", 0);
}

std::vector<Pool> parsePoolYaml(const std::string& text, std::string_view source) {
    const std::vector<YAML::Node> documents = loadYaml(text, source);
    std::vector<Pool> pools;
    for (const YAML::Node& node : documents) {
        if (node.IsNull()) continue;
        Lines lines;
        const Json document = Converter(source, lines).convert(node, "", 0);
        try {
            pools.push_back(parsePool(document));
        } catch (const Error& e) {
            std::string message;
            for (const FieldError& field : e.fields()) {
                message += (message.empty() ? "" : "\n") + std::string(source) + ":" +
                           std::to_string(lineOf(lines, field.pointer)) + ": " + field.pointer +
                           " " + field.reason;
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
