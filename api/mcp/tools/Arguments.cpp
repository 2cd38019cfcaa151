#include "api/mcp/tools/Arguments.h"

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "controller/contract/Fingerprint.h"

namespace hearth::mcp {
namespace {

bool hasType(const Json& value, const std::string& type) {
    if (type == "string") return value.is_string();
    if (type == "integer") return value.is_number_integer();
    if (type == "number") return value.is_number();
    if (type == "boolean") return value.is_boolean();
    if (type == "array") return value.is_array();
    if (type == "null") return value.is_null();
    return type == "object" && value.is_object();
}

std::string namesOf(const Json& properties) {
    std::string names;
    for (const auto& [name, schema] : properties.items()) {
        names += (names.empty() ? "" : ", ") + name;
    }
    return names.empty() ? "none" : names;
}

std::string shortened(std::string text) {
    if (text.size() > 60) text = text.substr(0, 60) + "…";
    return toUtf8(text);
}

class Checker {
public:
    std::vector<std::string> problems;

    void check(const Json& schema, const Json& value, const std::string& name) {
        if (const Json* any = member(schema, "anyOf")) checkAny(*any, value, name);
        if (const auto type = stringMember(schema, "type"); type && !hasType(value, *type)) {
            const bool vowel = *type == "integer" || *type == "object" || *type == "array";
            problems.push_back(name + " must be " + (vowel ? "an " : "a ") + *type);
            return;
        }
        if (const Json* allowed = member(schema, "enum")) checkEnum(*allowed, value, name);
        if (value.is_number()) checkNumber(schema, value, name);
        if (value.is_string()) checkLength(schema, value, name);
        if (value.is_array()) checkArray(schema, value, name);
        if (value.is_object()) checkObject(schema, value, name);
    }

private:
    /// Checks anyOf. If no form fits, only the faults of the first form are reported: that form is
    /// meant most often.
    void checkAny(const Json& forms, const Json& value, const std::string& name) {
        std::vector<std::string> first;
        for (const Json& form : forms) {
            Checker one;
            one.check(form, value, name);
            if (one.problems.empty()) return;
            if (first.empty()) first = std::move(one.problems);
        }
        problems.insert(problems.end(), first.begin(), first.end());
    }

    void checkEnum(const Json& allowed, const Json& value, const std::string& name) {
        std::string list;
        for (const Json& one : allowed) {
            if (one == value) return;
            list += (list.empty() ? "" : ", ") + dumpJson(one);
        }
        problems.push_back(name + " must be one of " + list);
    }

    void checkNumber(const Json& schema, const Json& value, const std::string& name) {
        const Json* least = member(schema, "minimum");
        const Json* most = member(schema, "maximum");
        if (least != nullptr && value < *least) {
            problems.push_back(name + " must be at least " + dumpJson(*least));
        }
        if (most != nullptr && value > *most) {
            problems.push_back(name + " must be at most " + dumpJson(*most));
        }
    }

    void checkLength(const Json& schema, const Json& value, const std::string& name) {
        const std::size_t size = value.get_ref<const std::string&>().size();
        const Json* least = member(schema, "minLength");
        const Json* most = member(schema, "maxLength");
        if (least != nullptr && size < least->get<std::size_t>()) {
            problems.push_back(name + " must not be empty");
        }
        if (most != nullptr && size > most->get<std::size_t>()) {
            problems.push_back(name + " must be at most " + dumpJson(*most) + " bytes");
        }
    }

    void checkArray(const Json& schema, const Json& value, const std::string& name) {
        const Json* most = member(schema, "maxItems");
        if (most != nullptr && value.size() > most->get<std::size_t>()) {
            problems.push_back(name + " must have at most " + dumpJson(*most) + " items");
            return;
        }
        const Json* items = member(schema, "items");
        for (std::size_t i = 0; items != nullptr && i < value.size(); ++i) {
            check(*items, value[i], name + "[" + std::to_string(i) + "]");
        }
    }

    void checkObject(const Json& schema, const Json& value, const std::string& name) {
        static const Json none = Json::object();
        const Json* properties = member(schema, "properties");
        if (properties == nullptr) properties = &none;
        const Json* others = member(schema, "additionalProperties");
        const std::string prefix = name.empty() ? "" : name + ".";
        for (const auto& [key, one] : value.items()) {
            if (const Json* known = member(*properties, key)) {
                check(*known, one, prefix + key);
            } else if (others != nullptr && others->is_object()) {
                check(*others, one, prefix + shortened(key));
            } else {
                problems.push_back("unknown argument " + prefix + shortened(key) +
                                   "; allowed: " + namesOf(*properties));
            }
        }
        if (const Json* required = member(schema, "required")) {
            for (const Json& key : *required) {
                if (member(value, key.get<std::string>()) == nullptr) {
                    problems.push_back(prefix + key.get<std::string>() + " is required");
                }
            }
        }
    }
};

bool takesNull(const Json& schema) {
    Checker checker;
    checker.check(schema, nullptr, "");
    return checker.problems.empty();
}

}  // namespace

Json withoutNulls(const Json& schema, Json arguments) {
    if (arguments.is_array()) {
        if (const Json* items = member(schema, "items")) {
            for (Json& item : arguments) item = withoutNulls(*items, std::move(item));
        }
        return arguments;
    }
    const Json* properties = member(schema, "properties");
    if (!arguments.is_object() || properties == nullptr) return arguments;
    const Json* required = member(schema, "required");
    Json kept = Json::object();
    for (auto& [key, value] : arguments.items()) {
        const Json* known = member(*properties, key);
        const bool needed = required != nullptr && std::find(required->begin(), required->end(),
                                                             Json(key)) != required->end();
        if (known != nullptr && value.is_null() && !needed && !takesNull(*known)) continue;
        kept[key] = known == nullptr ? std::move(value) : withoutNulls(*known, std::move(value));
    }
    return kept;
}

std::vector<std::string> argumentProblems(const Json& schema, const Json& arguments) {
    if (!arguments.is_object()) return {"arguments must be an object"};
    Checker checker;
    checker.check(schema, arguments, "");
    return std::move(checker.problems);
}

std::optional<std::string> Arguments::text(const std::string& name) const {
    return stringMember(values_, name);
}

std::string Arguments::textOr(const std::string& name, std::string fallback) const {
    return text(name).value_or(std::move(fallback));
}

std::optional<std::uint64_t> Arguments::number(const std::string& name) const {
    const Json* value = member(values_, name);
    if (value == nullptr) return std::nullopt;
    return value->get<std::uint64_t>();
}

std::optional<std::chrono::milliseconds> Arguments::seconds(const std::string& name) const {
    const Json* value = member(values_, name);
    if (value == nullptr) return std::nullopt;
    return std::chrono::milliseconds(static_cast<std::int64_t>(value->get<double>() * 1000.0));
}

bool Arguments::flag(const std::string& name) const {
    const Json* value = member(values_, name);
    return value != nullptr && value->get<bool>();
}

std::vector<std::string> Arguments::textList(const std::string& name) const {
    const Json* value = member(values_, name);
    return value == nullptr ? std::vector<std::string>{} : value->get<std::vector<std::string>>();
}

std::map<std::string, std::string> Arguments::textMap(const std::string& name) const {
    std::map<std::string, std::string> out;
    if (const Json* value = member(values_, name)) {
        for (const auto& [key, text] : value->items()) out[key] = text.get<std::string>();
    }
    return out;
}

std::string Arguments::fingerprint(std::string_view secret_key) const {
    return controller::fingerprintOf(secret_key, dumpJson(values_));
}

}  // namespace hearth::mcp
