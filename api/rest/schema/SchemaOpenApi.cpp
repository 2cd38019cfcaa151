#include <cmath>

#include "api/rest/schema/Schema.h"

namespace hearth::rest {
namespace {

Json numberOf(double value) {
    if (std::floor(value) == value && std::abs(value) < 1e15) {
        return static_cast<std::int64_t>(value);
    }
    return value;
}

std::string oneOfWords(const std::vector<std::string>& names) {
    std::string text = "Exactly one of ";
    for (std::size_t i = 0; i < names.size(); ++i) {
        if (i > 0) text += i + 1 == names.size() ? " and " : ", ";
        text += "`" + names[i] + "`";
    }
    return text + " must be there";
}

}  // namespace

Json Schema::toOpenApi(Json& components) const {
    if (shown_) return shown_->toOpenApi(components);
    if (name_.empty()) return body(components);
    if (!components.contains(name_)) {
        components[name_] = Json::object();  // keeps its position, and ends a recursion
        Json whole = body(components);
        components[name_] = std::move(whole);
    }
    const Json reference = {{"$ref", "#/components/schemas/" + name_}};
    if (!nullable_) return reference;
    return {{"anyOf", {reference, {{"type", "null"}}}}};
}

Json Schema::body(Json& components) const {
    Json out = Json::object();
    if (kind_ != Kind::Any) {
        const bool null_here = nullable_ && name_.empty();
        out["type"] = null_here ? Json::array({typeName(kind_), "null"}) : Json(typeName(kind_));
    }
    std::string text = description_;
    if (!exactly_one_.empty()) text += (text.empty() ? "" : ". ") + oneOfWords(exactly_one_);
    if (!text.empty()) out["description"] = text;
    if (kind_ == Kind::Object) {
        Json properties = Json::object();
        Json needed = Json::array();
        for (const Field& field : fields_) {
            properties[field.name] = field.schema->toOpenApi(components);
            if (field.needed) needed.push_back(field.name);
        }
        if (!properties.empty()) out["properties"] = std::move(properties);
        if (!needed.empty()) out["required"] = std::move(needed);
        if (!open_) out["additionalProperties"] = false;
    }
    if (kind_ == Kind::Map) {
        Json& names = out["propertyNames"] = Json::object();
        if (!format_->pattern.empty()) names["pattern"] = format_->pattern;
        if (format_->longest > 0) names["maxLength"] = format_->longest;
        if (names.empty()) out.erase("propertyNames");
        out["additionalProperties"] = items_->toOpenApi(components);
        if (most_size_) out["maxProperties"] = *most_size_;
    }
    if (kind_ == Kind::Array) {
        out["items"] = items_->toOpenApi(components);
        if (least_size_) out["minItems"] = *least_size_;
        if (most_size_) out["maxItems"] = *most_size_;
    }
    if (kind_ == Kind::String) {
        if (!values_.empty()) {
            out["enum"] = values_;
            if (nullable_) out["enum"].push_back(nullptr);
        }
        if (format_ != nullptr) {
            // Generators do not know this server's formats, or know other ones of the same name.
            if (format_ == &kBase64) out["contentEncoding"] = "base64";
            if (format_ == &kDateTime) out["format"] = format_->name;
            if (!format_->pattern.empty()) out["pattern"] = format_->pattern;
        }
        if (least_size_) out["minLength"] = *least_size_;
        const std::size_t longest = format_ == nullptr ? 0 : format_->longest;
        const std::size_t most = most_size_.value_or(longest);
        if (most > 0) out["maxLength"] = most;
    }
    if (least_) out["minimum"] = numberOf(*least_);
    if (most_) out["maximum"] = numberOf(*most_);
    if (fallback_) out["default"] = *fallback_;
    if (!examples_.empty()) out["examples"] = examples_;
    return out;
}

}  // namespace hearth::rest
