#pragma once

#include <concepts>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "api/rest/schema/Schema.h"
#include "base/Texts.h"

namespace hearth::rest {

template <typename View>
class Shape;

/// The shape of a view. A function `void listFields(Shape<View>&)` of this namespace lists its
/// fields.
template <typename View>
const Shape<View>& shapeOf() {
    static const Shape<View> shape([](Shape<View>& fields) { listFields(fields); });
    return shape;
}

/// The schema of a value in answers: a boolean, number, text, any JSON, a view that has a shape, or
/// a vector or map of values.
template <typename Value>
Schema schemaOf() {
    if constexpr (std::is_same_v<Value, bool>) {
        return Schema::boolean();
    } else if constexpr (std::is_integral_v<Value>) {
        return Schema::integer();
    } else if constexpr (std::is_floating_point_v<Value>) {
        return Schema::number();
    } else if constexpr (std::is_same_v<Value, Json>) {
        return Schema::any();
    } else if constexpr (std::is_convertible_v<Value, std::string_view>) {
        return Schema::string();
    } else if constexpr (requires(const Value& list) { list.front(); }) {
        return Schema::array(schemaOf<typename Value::value_type>());
    } else if constexpr (requires { typename Value::mapped_type; }) {
        return Schema::map(kDisplayName, schemaOf<typename Value::mapped_type>());
    } else {
        return shapeOf<Value>().schema();
    }
}

/// The JSON of such a value.
template <typename Value>
Json jsonOf(const Value& value) {
    if constexpr (std::is_constructible_v<Json, const Value&>) {
        return Json(value);
    } else if constexpr (requires { value.front(); }) {
        Json list = Json::array();
        for (const auto& item : value) list.push_back(jsonOf(item));
        return list;
    } else if constexpr (requires { typename Value::mapped_type; }) {
        Json map = Json::object();
        for (const auto& [key, item] : value) map[key] = jsonOf(item);
        return map;
    } else {
        return shapeOf<Value>().json(value);
    }
}

/// How a value is shown: its schema, and the function that makes its JSON.
template <typename Value>
struct Form {
    Form() : schema(schemaOf<Value>()) {}
    Form(const char* description) : schema(schemaOf<Value>().describe(description)) {}
    Form(Schema its) : schema(std::move(its)) {}
    Form(const Shape<Value>& shape)
        : schema(shape.schema()), json([shape](const Value& view) { return shape.json(view); }) {}
    template <std::size_t Count>
    Form(const Texts<Value, Count>& texts, const char* description = "")
        : schema(Schema::oneOf(texts.all()).describe(description)),
          json([texts](Value value) { return texts.of(value); }) {}
    /// Shown is the result of `convert`.
    template <std::invocable<const Value&> Convert>
    Form(Convert convert, Form<std::invoke_result_t<Convert, const Value&>> result = {})
        : schema(std::move(result.schema)), json(std::move(convert)) {}

    Schema schema;
    std::function<Json(const Value&)> json = jsonOf<Value>;
};

template <typename Value>
inline constexpr bool kCanBeEmpty = requires(const Value& value) {
    value.empty();
};
template <typename Value>
inline constexpr bool kCanBeEmpty<std::optional<Value>> = true;

/// The value itself, or the value inside; null for an empty optional, text, list or map.
template <typename Value>
const Value* inside(const std::optional<Value>& value) {
    return value ? &*value : nullptr;
}
template <typename Value>
const Value* inside(const Value& value) {
    if constexpr (kCanBeEmpty<Value>) {
        if (value.empty()) return nullptr;
    }
    return &value;
}

/// The shape of a view in answers: one list of fields gives its schema and its JSON. Built once,
/// then read by many threads. In the JSON, fields that may be left out come last.
template <typename View>
class Shape {
public:
    template <typename Get>
    using Got = std::remove_cvref_t<std::invoke_result_t<Get, const View&>>;
    template <typename Get>
    using Inside = std::remove_cvref_t<decltype(*inside(std::declval<const Got<Get>&>()))>;

    Shape() = default;
    explicit Shape(void (*list)(Shape& fields)) { list(*this); }

    const Schema& schema() const { return schema_; }
    /// For its name and example, and for fields that are not from the view.
    Schema& schema() { return schema_; }

    /// `get` is a member or a function of the view.
    template <typename Get>
    Shape& field(const char* name, Get get, Form<Got<Get>> form = {}) {
        schema_.required(name, std::move(form.schema));
        first_.push_back([name, get, json = std::move(form.json)](const View& view, Json& out) {
            out[name] = json(std::invoke(get, view));
        });
        return *this;
    }
    /// The same; null if the value is empty (inside()).
    template <typename Get>
    Shape& orNull(const char* name, Get get, Form<Inside<Get>> form = {}) {
        schema_.required(name, form.schema.nullable());
        first_.push_back([name, get, json = std::move(form.json)](const View& view, Json& out) {
            const auto& value = std::invoke(get, view);
            out[name] = inside(value) ? json(*inside(value)) : Json();
        });
        return *this;
    }
    /// The same; left out if the value is empty, always there if it cannot be empty.
    template <typename Get>
    Shape& optional(const char* name, Get get, Form<Inside<Get>> form = {}) {
        schema_.optional(name, std::move(form.schema));
        (kCanBeEmpty<Got<Get>> ? last_ : first_)
            .push_back([name, get, json = std::move(form.json)](const View& view, Json& out) {
                const auto& value = std::invoke(get, view);
                if (inside(value)) out[name] = json(*inside(value));
            });
        return *this;
    }

    Json json(const View& view) const {
        Json out = Json::object();
        for (const Write& write : first_) write(view, out);
        for (const Write& write : last_) write(view, out);
        return out;
    }

private:
    using Write = std::function<void(const View& view, Json& out)>;

    Schema schema_ = Schema::object();
    std::vector<Write> first_;
    std::vector<Write> last_;
};

}  // namespace hearth::rest
