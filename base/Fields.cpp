#include "base/Fields.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace hearth {
namespace {

const Json& noFields() {
    static const Json none = Json::object();
    return none;
}

}  // namespace

Fields::Fields(const Json& object, std::string pointer, const Wrong& wrong, Absent absent)
    : object_(object.is_object() ? object : noFields()),
      pointer_(std::move(pointer)),
      wrong_(wrong),
      absent_(absent) {
    if (object.is_object() || (object.is_null() && absent == Absent::Fine)) return;
    complain("", "must be an object");
}

const Json* Fields::find(const char* key) {
    known_.push_back(key);
    const auto found = object_.find(key);
    return found == object_.end() || found->is_null() ? nullptr : &*found;
}

const Json* Fields::get(const char* key) {
    const Json* value = find(key);
    if (value == nullptr && absent_ == Absent::Wrong) complain(key, "is missing");
    return value;
}

std::optional<std::string> Fields::text(const char* key, std::size_t most) {
    const Json* value = get(key);
    if (value == nullptr) return std::nullopt;
    if (value->is_string()) {
        const auto& text = value->get_ref<const std::string&>();
        if (text.size() <= most) return text;
        complain(key, "must be at most " + std::to_string(most) + " bytes");
    } else {
        complain(key, "must be a string");
    }
    return std::nullopt;
}

std::optional<std::uint64_t> Fields::number(const char* key, std::uint64_t least,
                                            std::uint64_t most) {
    const Json* value = get(key);
    if (value == nullptr) return std::nullopt;
    // A value that was made by this program, not parsed, may have a signed type.
    if (value->is_number_unsigned() ||
        (value->is_number_integer() && value->get<std::int64_t>() >= 0)) {
        const auto number = value->get<std::uint64_t>();
        if (number >= least && number <= most) return number;
    }
    complain(key, "must be a whole number from " + std::to_string(least) + " to " +
                      std::to_string(most));
    return std::nullopt;
}

std::optional<std::int64_t> Fields::integer(const char* key, std::int64_t least,
                                            std::int64_t most) {
    const Json* value = get(key);
    if (value == nullptr) return std::nullopt;
    const bool huge = value->is_number_unsigned() && value->get<std::uint64_t>() > INT64_MAX;
    if (value->is_number_integer() && !huge) {
        const auto number = value->get<std::int64_t>();
        if (number >= least && number <= most) return number;
    }
    complain(key, "must be a whole number from " + std::to_string(least) + " to " +
                      std::to_string(most));
    return std::nullopt;
}

std::optional<bool> Fields::flag(const char* key) {
    const Json* value = get(key);
    if (value == nullptr) return std::nullopt;
    if (value->is_boolean()) return value->get<bool>();
    complain(key, "must be true or false");
    return std::nullopt;
}

std::optional<std::size_t> Fields::oneOf(const char* key, std::span<const char* const> texts) {
    const Json* value = get(key);
    if (value == nullptr) return std::nullopt;
    std::string all;
    for (std::size_t i = 0; i < texts.size(); ++i) {
        if (value->is_string() && value->get_ref<const std::string&>() == texts[i]) return i;
        all += (i == 0 ? "" : ", ") + std::string(texts[i]);
    }
    complain(key, "must be one of " + all);
    return std::nullopt;
}

const Json* Fields::array(const char* key, std::size_t most) {
    const Json* value = get(key);
    if (value == nullptr || (value->is_array() && value->size() <= most)) return value;
    complain(key, "must be a list of at most " + std::to_string(most));
    return nullptr;
}

Fields Fields::object(const char* key) {
    const Json* value = get(key);
    return {value == nullptr ? noFields() : *value, pointer_ + "/" + key, wrong_, absent_};
}

void Fields::items(const char* key, std::size_t most,
                   const std::function<void(const Json&, const std::string&)>& read) {
    const Json* list = array(key, most);
    for (std::size_t i = 0; list != nullptr && i < list->size(); ++i) {
        read((*list)[i], pointer_ + "/" + key + "/" + std::to_string(i));
    }
}

void Fields::finish() {
    for (const auto& [key, value] : object_.items()) {
        if (std::ranges::find(known_, std::string_view(key)) != known_.end()) continue;
        std::string all;
        for (const char* name : known_) all += (all.empty() ? "" : ", ") + std::string(name);
        complain(key, "unknown field; known here: " + all);
    }
}

void Fields::complain(const std::string& below, std::string reason) const {
    wrong_({pointer_ + (below.empty() ? "" : "/" + below), std::move(reason)});
}

}  // namespace hearth
