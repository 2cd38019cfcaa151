#include "api/command/Yaml.h"

#include <yaml-cpp/yaml.h>

#include <nlohmann/json.hpp>
#include <string_view>

namespace hearth::cli {
namespace {

/// Starts with a letter, without special characters: every YAML version reads it as a string.
bool isPlain(const std::string& text) {
    constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_/";
    constexpr std::string_view kOthers = "0123456789.-";
    if (text.empty() || kLetters.find(text[0]) == std::string_view::npos) return false;
    for (const char c : text) {
        if (kLetters.find(c) == std::string_view::npos && kOthers.find(c) == std::string_view::npos)
            return false;
    }
    for (const char* word : {"true", "false", "null", "yes", "no", "on", "off", "y", "n"}) {
        if (text.size() <= 5 && ::strcasecmp(text.c_str(), word) == 0) return false;
    }
    return true;
}

void emit(YAML::Emitter& out, const std::string& text) {
    if (isPlain(text)) {
        out << text;
    } else {
        out << YAML::DoubleQuoted << text;
    }
}

void emit(YAML::Emitter& out, const Json& value) {
    if (value.is_object()) {
        if (value.empty()) out << YAML::Flow;
        out << YAML::BeginMap;
        for (const auto& [key, member] : value.items()) {
            out << YAML::Key;
            emit(out, key);
            out << YAML::Value;
            emit(out, member);
        }
        out << YAML::EndMap;
    } else if (value.is_array()) {
        if (value.empty()) out << YAML::Flow;
        out << YAML::BeginSeq;
        for (const Json& item : value) emit(out, item);
        out << YAML::EndSeq;
    } else if (value.is_string()) {
        emit(out, value.get<std::string>());
    } else if (value.is_null()) {
        out << YAML::Null;
    } else {
        out << dumpJson(value);  // YAML writes numbers and booleans like JSON
    }
}

}  // namespace

std::string yamlText(const Json& value) {
    YAML::Emitter out;
    out.SetOutputCharset(YAML::EscapeNonAscii);
    emit(out, value);
    return std::string(out.c_str()) + "\n";
}

}  // namespace hearth::cli
