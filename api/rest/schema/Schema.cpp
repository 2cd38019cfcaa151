#include "api/rest/schema/Schema.h"

#include <algorithm>
#include <cmath>

#include "base/Units.h"

namespace hearth::rest {
namespace {

/// Enough to fix a request; without a limit a client could cause large answers.
constexpr std::size_t kMostFaults = 50;

std::string inQuotes(std::string_view text) {
    std::string out = "\"";
    out.append(toUtf8(text.substr(0, 64)));
    if (text.size() > 64) out.append("…");
    return out + "\"";
}

std::string listed(const std::vector<std::string>& words) {
    std::string out;
    for (const std::string& word : words) {
        if (!out.empty()) out.append(", ");
        out.append(word);
    }
    return out;
}

std::size_t characters(std::string_view utf8) {
    return static_cast<std::size_t>(std::count_if(utf8.begin(), utf8.end(), [](char c) {
        return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;
    }));
}

std::string shortNumber(double value) {
    if (std::floor(value) == value && std::abs(value) < 1e15) {
        return std::to_string(static_cast<std::int64_t>(value));
    }
    return Json(value).dump();
}

bool asksForNothing(const Json& value) {
    if (value.is_null()) return true;
    if (value.is_boolean()) return !value.get<bool>();
    if (value.is_number()) return value.get<double>() == 0;
    if (value.is_string()) return value.get_ref<const std::string&>().empty();
    return std::all_of(value.begin(), value.end(), asksForNothing);
}

bool isIntegral(const Json& value) {
    if (value.is_number_integer()) return true;
    if (!value.is_number_float()) return false;
    const double number = value.get<double>();
    return std::floor(number) == number && std::abs(number) <= 9007199254740992.0;
}

bool hasType(const Json& value, Schema::Kind kind) {
    switch (kind) {
        case Schema::Kind::Object:
        case Schema::Kind::Map:
            return value.is_object();
        case Schema::Kind::Array:
            return value.is_array();
        case Schema::Kind::String:
            return value.is_string();
        case Schema::Kind::Integer:
            return isIntegral(value);
        case Schema::Kind::Number:
            return value.is_number();
        case Schema::Kind::Boolean:
            return value.is_boolean();
        case Schema::Kind::Any:
            break;
    }
    return true;
}

}  // namespace

const char* typeName(Schema::Kind kind) {
    switch (kind) {
        case Schema::Kind::Object:
        case Schema::Kind::Map:
            return "object";
        case Schema::Kind::Array:
            return "array";
        case Schema::Kind::String:
            return "string";
        case Schema::Kind::Integer:
            return "integer";
        case Schema::Kind::Number:
            return "number";
        case Schema::Kind::Boolean:
            return "boolean";
        case Schema::Kind::Any:
            break;
    }
    return "value";
}

std::string pointerTo(const std::string& parent, std::string_view name) {
    std::string out = parent + "/";
    for (const char c : toUtf8(name.substr(0, 256))) {
        if (c == '~') {
            out.append("~0");
        } else if (c == '/') {
            out.append("~1");
        } else {
            out.push_back(c);
        }
    }
    return out;
}

void throwFaults(const Faults& faults, const std::string& what) {
    if (!faults.invalid.empty()) {
        const FieldError& first = faults.invalid.front();
        Error error(ErrorCode::InvalidArgument,
                    what + " is not valid: " + (first.pointer.empty() ? "" : first.pointer + " ") +
                        first.reason);
        for (const FieldError& fault : faults.invalid) error.field(fault.pointer, fault.reason);
        throw error.hint("Fix the fields listed in `errors`; their schemas are in /openapi.json");
    }
    if (!faults.fixed.empty()) {
        const FieldError& first = faults.fixed.front();
        Error error(ErrorCode::InvalidSpec, first.pointer + " cannot be chosen here");
        for (const FieldError& fault : faults.fixed) {
            error.field(fault.pointer, "cannot be chosen here");
        }
        throw error.hint(first.reason);
    }
}

Schema Schema::any() {
    return Schema(Kind::Any);
}
Schema Schema::object() {
    return Schema(Kind::Object);
}
Schema Schema::array(Schema items) {
    Schema schema(Kind::Array);
    schema.items_ = std::make_shared<const Schema>(std::move(items));
    return schema;
}
Schema Schema::map(const Format& keys, Schema values) {
    Schema schema(Kind::Map);
    schema.items_ = std::make_shared<const Schema>(std::move(values));
    schema.format_ = &keys;
    return schema;
}
Schema Schema::string() {
    return Schema(Kind::String);
}
Schema Schema::string(const Format& format) {
    Schema schema(Kind::String);
    schema.format_ = &format;
    return schema;
}
Schema Schema::integer() {
    return Schema(Kind::Integer);
}
Schema Schema::integer(std::int64_t least, std::int64_t most) {
    Schema schema(Kind::Integer);
    schema.least_ = static_cast<double>(least);
    schema.most_ = static_cast<double>(most);
    return schema;
}
Schema Schema::bytes(std::int64_t least, std::int64_t most) {
    Schema schema = integer(least, most);
    schema.bounds_are_sizes_ = true;
    return schema;
}
Schema Schema::number() {
    return Schema(Kind::Number);
}
Schema Schema::number(double least, double most) {
    Schema schema(Kind::Number);
    schema.least_ = least;
    schema.most_ = most;
    return schema;
}
Schema Schema::boolean() {
    return Schema(Kind::Boolean);
}
Schema Schema::oneOf(std::vector<std::string> values) {
    Schema schema(Kind::String);
    schema.values_ = std::move(values);
    return schema;
}

Schema& Schema::optional(std::string name, Schema schema) {
    fields_.push_back({std::move(name), std::make_shared<const Schema>(std::move(schema)), false});
    return *this;
}
Schema& Schema::required(std::string name, Schema schema) {
    fields_.push_back({std::move(name), std::make_shared<const Schema>(std::move(schema)), true});
    return *this;
}
Schema& Schema::exactlyOne(std::vector<std::string> names) {
    exactly_one_ = std::move(names);
    return *this;
}
Schema& Schema::fixed(std::string name, std::string hint) {
    fixed_.push_back({std::move(name), std::move(hint)});
    return *this;
}
Schema& Schema::open() {
    open_ = true;
    return *this;
}
Schema& Schema::mergeFields(const Schema& other) {
    for (const Field& field : other.fields_) {
        if (this->field(field.name) == nullptr) fields_.push_back(field);
    }
    for (const Fixed& fixed : other.fixed_) {
        if (this->field(fixed.name) == nullptr) fixed_.push_back(fixed);
    }
    return *this;
}
Schema& Schema::sizes(std::size_t least, std::size_t most) {
    if (least > 0) least_size_ = least;
    most_size_ = most;
    return *this;
}
Schema& Schema::nullable() {
    nullable_ = true;
    return *this;
}
Schema& Schema::describe(std::string text) {
    description_ = std::move(text);
    return *this;
}
Schema& Schema::example(Json value) {
    examples_.push_back(std::move(value));
    return *this;
}
Schema& Schema::fallback(Json value) {
    fallback_ = std::move(value);
    return *this;
}
Schema& Schema::named(std::string name) {
    name_ = std::move(name);
    return *this;
}

Schema& Schema::shownAs(Schema other) {
    shown_ = std::make_shared<const Schema>(std::move(other));
    return *this;
}

const Schema::Field* Schema::field(std::string_view name) const {
    for (const Field& field : fields_) {
        if (field.name == name) return &field;
    }
    return nullptr;
}

Json Schema::withoutNulls(Json value) const {
    if (value.is_object() && kind_ == Kind::Object) {
        for (auto at = value.begin(); at != value.end();) {
            const Field* known = field(at.key());
            if (known && at->is_null() && !known->needed && !known->schema->nullable_) {
                at = value.erase(at);
                continue;
            }
            if (known) *at = known->schema->withoutNulls(std::move(*at));
            ++at;
        }
        return value;
    }
    if ((value.is_array() && kind_ == Kind::Array) || (value.is_object() && kind_ == Kind::Map)) {
        for (Json& item : value) item = items_->withoutNulls(std::move(item));
    }
    return value;
}

void Schema::check(const Json& value, const std::string& pointer, Faults& faults) const {
    if (faults.invalid.size() >= kMostFaults) return;
    if (nullable_ && value.is_null()) return;
    if (!hasType(value, kind_)) {
        faults.invalid.push_back({pointer, std::string("must be of type ") + typeName(kind_) +
                                               ", not " + value.type_name()});
        return;
    }
    switch (kind_) {
        case Kind::Object:
            return checkObject(value, pointer, faults);
        case Kind::Map:
            return checkMap(value, pointer, faults);
        case Kind::Array:
            return checkArray(value, pointer, faults);
        case Kind::String:
            return checkString(value.get_ref<const std::string&>(), pointer, faults);
        case Kind::Integer:
        case Kind::Number:
            return checkNumber(value, pointer, faults);
        case Kind::Boolean:
        case Kind::Any:
            return;
    }
}

void Schema::checkObject(const Json& value, const std::string& pointer, Faults& faults) const {
    for (const auto& [key, member] : value.items()) {
        if (const Field* known = field(key)) {
            known->schema->check(member, pointerTo(pointer, key), faults);
            continue;
        }
        const auto fixed = std::find_if(fixed_.begin(), fixed_.end(),
                                        [&name = key](const Fixed& f) { return f.name == name; });
        if (fixed != fixed_.end()) {
            if (!asksForNothing(member)) {
                faults.fixed.push_back({pointerTo(pointer, key), fixed->hint});
            }
        } else if (!open_ && faults.invalid.size() < kMostFaults) {
            std::vector<std::string> names;
            for (const Field& known : fields_) names.push_back(known.name);
            faults.invalid.push_back(
                {pointerTo(pointer, key), "is not a known field; known are: " + listed(names)});
        }
    }
    for (const Field& needed : fields_) {
        if (needed.needed && !value.contains(needed.name)) {
            faults.invalid.push_back({pointerTo(pointer, needed.name), "is required"});
        }
    }
    if (!exactly_one_.empty()) {
        const auto count = std::count_if(exactly_one_.begin(), exactly_one_.end(),
                                         [&](const auto& name) { return value.contains(name); });
        if (count != 1) {
            faults.invalid.push_back(
                {pointer, "must have exactly one of: " + listed(exactly_one_)});
        }
    }
}

void Schema::checkMap(const Json& value, const std::string& pointer, Faults& faults) const {
    if (!checkCount(value.size(), "entries", pointer, faults)) return;
    for (const auto& [key, member] : value.items()) {
        if (!format_->valid(key) && faults.invalid.size() < kMostFaults) {
            faults.invalid.push_back(
                {pointerTo(pointer, key), "the key " + std::string(format_->expectation)});
        }
        items_->check(member, pointerTo(pointer, key), faults);
    }
}

void Schema::checkArray(const Json& value, const std::string& pointer, Faults& faults) const {
    if (!checkCount(value.size(), "items", pointer, faults)) return;
    std::size_t index = 0;
    for (const Json& item : value) {
        items_->check(item, pointer + "/" + std::to_string(index++), faults);
    }
}

bool Schema::checkCount(std::size_t count, const char* unit, const std::string& pointer,
                        Faults& faults) const {
    const bool low = least_size_ && count < *least_size_;
    const bool high = most_size_ && count > *most_size_;
    if (!low && !high) return true;
    faults.invalid.push_back(
        {pointer, std::string(low ? "must have at least " : "must have at most ") +
                      std::to_string(low ? *least_size_ : *most_size_) + " " + unit});
    return false;
}

void Schema::checkString(const std::string& value, const std::string& pointer,
                         Faults& faults) const {
    if (!values_.empty()) {
        if (std::find(values_.begin(), values_.end(), value) == values_.end()) {
            faults.invalid.push_back(
                {pointer, "must be one of " + listed(values_) + ", not " + inQuotes(value)});
        }
        return;
    }
    if (!checkCount(characters(value), "characters", pointer, faults)) return;
    if (format_ != nullptr && !format_->valid(value)) {
        faults.invalid.push_back({pointer, std::string(format_->expectation)});
    }
}

void Schema::checkNumber(const Json& value, const std::string& pointer, Faults& faults) const {
    const double number = value.get<double>();
    if (least_ && most_ && (number < *least_ || number > *most_)) {
        const auto shown = bounds_are_sizes_ ? formatSize : shortNumber;
        faults.invalid.push_back(
            {pointer, "must be between " + shown(*least_) + " and " + shown(*most_)});
    }
}

void Schema::validate(const Json& value, const std::string& what) const {
    Faults faults;
    check(value, "", faults);
    throwFaults(faults, what);
}

}  // namespace hearth::rest
