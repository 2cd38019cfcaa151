#include "base/Json.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/Error.h"
#include "base/Units.h"

namespace hearth {
namespace {

/// Builds the value while it checks the limits, so that a hostile document is refused before it has
/// used memory. Implements nlohmann's SAX events.
class StrictBuilder final : public nlohmann::json_sax<Json> {
public:
    explicit StrictBuilder(const JsonLimits& limits) : limits_(limits) {}

    bool null() override { return put(Json(nullptr)); }
    bool boolean(bool value) override { return put(Json(value)); }
    bool number_integer(number_integer_t value) override { return put(Json(value)); }
    bool number_unsigned(number_unsigned_t value) override { return put(Json(value)); }
    bool number_float(number_float_t value, const string_t& text) override {
        if (!limits_.lenient && isInteger(text)) return fail(kLongInteger);
        return put(Json(value));
    }
    bool string(string_t& value) override { return put(Json(std::move(value))); }
    bool binary(binary_t&) override { return false; }

    bool start_object(std::size_t) override { return open(false); }
    bool start_array(std::size_t) override { return open(true); }
    bool end_object() override { return close(); }
    bool end_array() override { return close(); }

    bool key(string_t& value) override {
        if (skipping_ > 0) return true;
        Level& level = levels_.back();
        if (value.find('\0') != std::string::npos) {
            level.left_out = limits_.lenient;
            return limits_.lenient || fail("a key holds a NUL character");
        }
        if (stands(level, value)) return fail("the key \"" + value + "\" is given twice");
        if (gathered_.size() - level.begin >= limits_.members)
            return fail("an object has too many members");
        level.key = std::move(value);
        return true;
    }

    bool parse_error(std::size_t position, const std::string& token,
                     const nlohmann::detail::exception& error) override {
        if (error.id == kOutOfRange) {
            return fail(isInteger(token)
                            ? kLongInteger
                            : "a number is too large at byte " + std::to_string(position));
        }
        // The token may begin before the value; "\\N" is a bad escape in a text.
        if ((token.ends_with('N') || token.ends_with('I')) && !token.ends_with("\\N"))
            return fail("NaN and infinity are no JSON numbers");
        return fail("not valid JSON at byte " + std::to_string(position));
    }

    Json take() { return std::move(root_); }
    const std::string& problem() const { return problem_; }

private:
    /// An object or array that is open. Its values so far are in gathered_, from `begin` on.
    struct Level {
        bool array = false;
        std::size_t begin = 0;
        std::string key = {};                       ///< the next member's key
        bool left_out = false;                      ///< the next member is skipped
        std::unordered_set<std::string> keys = {};  ///< filled only for an object with many
    };
    static constexpr std::size_t kFewKeys = 16;
    static constexpr int kOutOfRange = 406;  ///< nlohmann's number of this error
    static constexpr const char* kLongInteger = "an integer has more than 64 bits";

    static bool isInteger(std::string_view number) {
        return number.find_first_of(".eE") == std::string_view::npos;
    }

    /// True if the object already has the key. For few keys a linear search is faster than a set.
    bool stands(Level& level, const std::string& key) const {
        const auto begin = gathered_.begin() + static_cast<std::ptrdiff_t>(level.begin);
        if (gathered_.size() - level.begin < kFewKeys) {
            return std::any_of(begin, gathered_.end(),
                               [&](const auto& member) { return member.first == key; });
        }
        if (level.keys.empty()) {
            for (auto member = begin; member != gathered_.end(); ++member) {
                level.keys.insert(member->first);
            }
        }
        return !level.keys.insert(key).second;
    }

    /// The innermost level as a value. It is built only when all its values are known: an object
    /// that grows copies all its members, deeply, because their keys are const.
    Json closed() {
        const Level& level = levels_.back();
        const std::size_t count = gathered_.size() - level.begin;
        const auto begin = gathered_.begin() + static_cast<std::ptrdiff_t>(level.begin);
        Json value = level.array ? Json::array() : Json::object();
        if (level.array) {
            auto& items = value.get_ref<Json::array_t&>();
            items.reserve(count);
            for (auto one = begin; one != gathered_.end(); ++one) {
                items.push_back(std::move(one->second));
            }
        } else {
            Json::object_t::Container& members = value.get_ref<Json::object_t&>();
            members.reserve(count);
            for (auto one = begin; one != gathered_.end(); ++one) {
                members.emplace_back(std::move(one->first), std::move(one->second));
            }
        }
        gathered_.erase(begin, gathered_.end());
        levels_.pop_back();
        return value;
    }

    bool fail(std::string problem) {
        if (problem_.empty()) problem_ = std::move(problem);
        return false;
    }

    bool count() { return ++values_ <= limits_.values || fail("the document has too many values"); }

    bool put(Json value) { return count() && (skipping_ > 0 || attach(std::move(value))); }

    bool open(bool array) {
        if (!count()) return false;
        if (levels_.size() >= limits_.depth) {
            ++skipping_;
            return limits_.lenient || fail("the document is nested too deeply");
        }
        levels_.push_back({.array = array, .begin = gathered_.size()});
        return true;
    }

    bool close() {
        if (skipping_ > 0) return --skipping_ > 0 || attach(Json(nullptr));
        return attach(closed());
    }

    bool attach(Json value) {
        if (levels_.empty()) {
            root_ = std::move(value);
        } else if (Level& level = levels_.back(); !std::exchange(level.left_out, false)) {
            gathered_.emplace_back(std::move(level.key), std::move(value));
        }
        return true;
    }

    const JsonLimits& limits_;
    std::vector<Level> levels_;
    std::vector<std::pair<std::string, Json>> gathered_;
    std::size_t values_ = 0;
    std::size_t skipping_ = 0;  ///< levels that are open below the deepest kept one
    Json root_;
    std::string problem_;
};

/// Length of the valid UTF-8 sequence at the start of `s`, 0 if there is none.
std::size_t sequenceLength(std::string_view s) {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(s[i]); };
    const auto follows = [&](std::size_t i) { return i < s.size() && (byte(i) & 0xC0U) == 0x80U; };
    const unsigned char first = byte(0);
    if (first < 0x80) return 1;
    if (first >= 0xC2 && first <= 0xDF) return follows(1) ? 2 : 0;
    if (first >= 0xE0 && first <= 0xEF) {
        if (!follows(1) || !follows(2)) return 0;
        if (first == 0xE0 && byte(1) < 0xA0) return 0;   // overlong
        if (first == 0xED && byte(1) >= 0xA0) return 0;  // surrogates
        return 3;
    }
    if (first >= 0xF0 && first <= 0xF4) {
        if (!follows(1) || !follows(2) || !follows(3)) return 0;
        if (first == 0xF0 && byte(1) < 0x90) return 0;
        if (first == 0xF4 && byte(1) >= 0x90) return 0;
        return 4;
    }
    return 0;
}

}  // namespace

Json parseJson(std::string_view text, const JsonLimits& limits) {
    if (text.size() > limits.bytes) {
        throw Error(ErrorCode::PayloadTooLarge, "the JSON document is larger than " +
                                                    formatSize(static_cast<double>(limits.bytes)));
    }
    // The parser would take a NUL for the end and never see the rest.
    if (text.find('\0') != std::string_view::npos) {
        throw Error(ErrorCode::InvalidArgument, "the JSON document holds a NUL byte");
    }
    StrictBuilder builder(limits);
    if (!Json::sax_parse(text.begin(), text.end(), &builder)) {
        throw Error(ErrorCode::InvalidArgument,
                    builder.problem().empty() ? "not valid JSON" : builder.problem());
    }
    return builder.take();
}

std::string textAt(const Json& object, const char* key) {
    const auto found = object.find(key);
    return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

std::string dumpJson(const Json& value) {
    return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string toUtf8(std::string_view bytes) {
    std::string out;
    out.reserve(bytes.size());
    while (!bytes.empty()) {
        const std::size_t length = sequenceLength(bytes);
        if (length == 0) {
            out.append("\xEF\xBF\xBD");
            bytes.remove_prefix(1);
        } else {
            out.append(bytes.substr(0, length));
            bytes.remove_prefix(length);
        }
    }
    return out;
}

bool isUtf8(std::string_view bytes) {
    while (!bytes.empty()) {
        const std::size_t length = sequenceLength(bytes);
        if (length == 0) return false;
        bytes.remove_prefix(length);
    }
    return true;
}

}  // namespace hearth
