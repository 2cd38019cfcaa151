#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/Error.h"
#include "base/Json.h"

namespace hearth::rest {

/// A named rule for a string, checked by hand-written code. The OpenAPI document shows `pattern`.
struct Format {
    std::string_view name;
    std::string_view pattern;      ///< empty: none
    std::string_view expectation;  ///< "must be …", for the error
    bool (*valid)(std::string_view text);
    std::string_view sample;  ///< a text that fits, for examples
    std::size_t longest = 0;  ///< no valid text has more characters; 0: unknown
};

/// The largest JSON body, and so also the longest text in one.
inline constexpr std::size_t kLargestJson = 4U << 20U;

extern const Format kPoolName;       ///< a DNS label
extern const Format kImageName;      ///< letters, digits and ._-/:@, up to 255
extern const Format kEnvName;        ///< [A-Za-z_][A-Za-z0-9_]*, up to 255
extern const Format kEnvValue;       ///< up to 32 KiB, no NUL
extern const Format kLabelKey;       ///< as in Kubernetes: [prefix/]name
extern const Format kLabelValue;     ///< as in Kubernetes: up to 32, may be empty
extern const Format kLanguage;       ///< letters, digits and +#._-, up to 32, may be empty
extern const Format kPath;           ///< up to 4,096 bytes, no NUL
extern const Format kArgument;       ///< up to 128 KiB, no NUL: execve's limit
extern const Format kBase64;         ///< standard alphabet with padding
extern const Format kTenant;         ///< letters, digits, ._-, up to 63
extern const Format kDisplayName;    ///< up to 253 bytes without control characters
extern const Format kDateTime;       ///< RFC 3339; for answers
extern const Format kDecimal;        ///< digits that fit 64 bits
extern const Format kContextId;      ///< cx_ and 32 hex digits
extern const Format kResultType;     ///< a media type that a result may have
extern const Format kLabelSelector;  ///< "key=value"

/// The faults of one document.
struct Faults {
    std::vector<FieldError> invalid;
    std::vector<FieldError> fixed;  ///< `reason` is the hint
};

/// The shape of a JSON value: validates values, and describes itself for OpenAPI 3.1. A value type;
/// built once at start, then read by many threads. Methods that return Schema& are for building.
class Schema {
public:
    static Schema any();
    static Schema object();
    static Schema array(Schema items);
    /// An object with free keys; `keys` checks each key.
    static Schema map(const Format& keys, Schema values);
    static Schema string();
    static Schema string(const Format& format);
    static Schema integer(std::int64_t least, std::int64_t most);
    /// An integer that counts bytes: its faults show the bounds as sizes.
    static Schema bytes(std::int64_t least, std::int64_t most);
    static Schema number(double least, double most);
    static Schema number();
    static Schema integer();
    static Schema boolean();
    static Schema oneOf(std::vector<std::string> values);

    /// Object: a field that may be absent, or one that must be present.
    Schema& optional(std::string name, Schema schema);
    Schema& required(std::string name, Schema schema);
    /// Object: exactly one of these (optional) fields must be there. The document says so in words:
    /// generators turn a `oneOf` into several types, or into none.
    Schema& exactlyOne(std::vector<std::string> names);
    /// Object: a sensible field that cannot be chosen here: a value that asks for it gives
    /// InvalidSpec with this hint. Not in the OpenAPI document. Empty values, null, zero and false
    /// ask for nothing and pass.
    Schema& fixed(std::string name, std::string hint);
    /// Object: unknown fields are allowed (default: each is an error).
    Schema& open();
    /// Object: copies all fields of another one.
    Schema& mergeFields(const Schema& other);
    /// Array and map: number of items; string: number of characters.
    Schema& sizes(std::size_t least, std::size_t most);
    Schema& nullable();
    Schema& describe(std::string text);
    Schema& example(Json value);
    Schema& fallback(Json value);  ///< shown as `default`
    /// Is put in `components/schemas` under this name and referred to.
    Schema& named(std::string name);
    /// Described like `other`; another reader checks the values that this one lets pass.
    Schema& shownAs(Schema other);

    /// `value` without optional fields that are null but may not be: null means absent.
    Json withoutNulls(Json value) const;
    /// Appends all faults of `value` to `faults`; `pointer` is its place.
    void check(const Json& value, const std::string& pointer, Faults& faults) const;
    /// Throws Error(InvalidArgument) with every fault, or Error(InvalidSpec) if all faults are
    /// values for fixed() fields. `what` begins the message: "the body".
    void validate(const Json& value, const std::string& what) const;
    /// A value that fits: the first example, else one made from the examples, defaults and formats
    /// in the parts. `whole`: with every field, like an answer; else only with the required ones.
    Json sample(bool whole) const;
    const std::vector<Json>& examples() const { return examples_; }
    /// Returns its JSON Schema; named parts go into `components` once.
    Json toOpenApi(Json& components) const;

    enum class Kind { Any, Object, Array, Map, String, Integer, Number, Boolean };
    Kind kind() const { return kind_; }
    const Schema* items() const { return items_.get(); }

private:
    struct Field {
        std::string name;
        std::shared_ptr<const Schema> schema;
        bool needed = false;
    };
    struct Fixed {
        std::string name;
        std::string hint;
    };

    explicit Schema(Kind kind) : kind_(kind) {}
    const Field* field(std::string_view name) const;
    void checkObject(const Json& value, const std::string& pointer, Faults& faults) const;
    void checkMap(const Json& value, const std::string& pointer, Faults& faults) const;
    void checkArray(const Json& value, const std::string& pointer, Faults& faults) const;
    void checkString(const std::string& value, const std::string& pointer, Faults& faults) const;
    void checkNumber(const Json& value, const std::string& pointer, Faults& faults) const;
    bool checkCount(std::size_t count, const char* unit, const std::string& pointer,
                    Faults& faults) const;
    Json body(Json& components) const;

    Kind kind_;
    std::string name_;
    std::string description_;
    std::vector<Json> examples_;
    std::optional<Json> fallback_;
    bool nullable_ = false;
    std::vector<Field> fields_;
    std::vector<Fixed> fixed_;
    std::vector<std::string> exactly_one_;
    bool open_ = false;
    std::shared_ptr<const Schema> items_;  ///< only for an array or a map
    std::shared_ptr<const Schema> shown_;  ///< shown in its place in the document
    const Format* format_ = nullptr;       ///< for a string, or for a map's keys
    std::vector<std::string> values_;      ///< only for an enumeration
    std::optional<std::size_t> least_size_;
    std::optional<std::size_t> most_size_;
    std::optional<double> least_;
    std::optional<double> most_;
    bool bounds_are_sizes_ = false;
};

/// Returns the `type` of JSON Schema; "value" for Any.
const char* typeName(Schema::Kind kind);

/// Returns a JSON pointer one level down, with "~" and "/" of the name escaped.
std::string pointerTo(const std::string& parent, std::string_view name);

/// Throws as Schema::validate() does; does nothing if there is no fault.
void throwFaults(const Faults& faults, const std::string& what);

}  // namespace hearth::rest
