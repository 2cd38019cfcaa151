#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/Error.h"
#include "base/Json.h"
#include "base/Texts.h"

namespace hearth {

/// Reads one foreign JSON object field by field, and reports each wrong field with its JSON
/// pointer. Not thread-safe; the object and `wrong` must outlive it.
class Fields {
public:
    /// If it throws, reading ends there; otherwise the wrong field counts as absent.
    using Wrong = std::function<void(FieldError)>;
    /// Decides if the absence of a requested field is an error.
    enum class Absent : std::uint8_t { Wrong, Fine };

    Fields(const Json& object, std::string pointer, const Wrong& wrong,
           Absent absent = Absent::Wrong);

    /// Null if the field is absent or null, which is never an error.
    const Json* find(const char* key);
    /// The same for a required field: its absence is an error. The functions below do the same.
    const Json* get(const char* key);
    std::optional<std::string> text(const char* key, std::size_t most = SIZE_MAX);
    std::optional<std::uint64_t> number(const char* key, std::uint64_t least, std::uint64_t most);
    std::optional<std::int64_t> integer(const char* key, std::int64_t least, std::int64_t most);
    std::optional<bool> flag(const char* key);
    template <typename Enum, std::size_t Count>
    std::optional<Enum> choice(const char* key, const Texts<Enum, Count>& texts) {
        const std::optional<std::size_t> at = oneOf(key, texts.texts);
        return at ? std::optional(static_cast<Enum>(*at)) : std::nullopt;
    }
    /// Null if the field is not a list, or has more than `most` items.
    const Json* array(const char* key, std::size_t most);
    /// An absent object reads as an empty one.
    Fields object(const char* key);
    /// Calls `read` with each item of a list and its pointer.
    void items(const char* key, std::size_t most,
               const std::function<void(const Json&, const std::string&)>& read);

    /// Call last: reports every field that was not read.
    void finish();
    void tell(FieldError error) const { wrong_(std::move(error)); }
    /// `below`: "" for the object itself, else a field or a pointer in it, without the first slash.
    void complain(const std::string& below, std::string reason) const;
    const Json& json() const { return object_; }

private:
    std::optional<std::size_t> oneOf(const char* key, std::span<const char* const> texts);

    const Json& object_;
    std::string pointer_;
    const Wrong& wrong_;
    Absent absent_;
    std::vector<const char*> known_;
};

}  // namespace hearth
