#pragma once

#include <bitset>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/Clock.h"
#include "controller/schedule/TimeZone.h"

namespace hearth::controller {

/// A cron line of five fields or a name such as "@daily". Day of month and day of week follow
/// Vixie cron: if both are restricted, either is enough.
class Cron {
public:
    Cron() = default;
    /// Throws Error(InvalidArgument) with a sentence that names the field and its allowed values.
    explicit Cron(std::string_view text);

    const std::string& text() const { return text_; }
    /// The first firing after `at`; nullopt if none within nine years or before 2250. A skipped
    /// time fires right after the gap and a repeated one fires once, unless the hours begin with
    /// `*`.
    std::optional<WallTime> next(const TimeZone& zone, WallTime at) const;
    /// The last firing at or before `at`.
    std::optional<WallTime> last(const TimeZone& zone, WallTime at) const;

    bool operator==(const Cron&) const = default;

private:
    using Minute = TimeZone::Minute;

    bool dayFits(const Minute& day) const;
    /// The first, or last, matching minute of the local calendar at `from` or beyond.
    std::optional<Minute> matchFrom(const Minute& from) const;
    std::optional<Minute> matchUpTo(const Minute& from) const;

    std::string text_;
    std::bitset<60> minutes_;
    std::bitset<24> hours_;
    std::bitset<32> days_;
    std::bitset<13> months_;
    std::bitset<8> weekdays_;  // 0 is Sunday
    bool any_hour_ = false;    // begins with *: firings follow elapsed time, not the local clock
    bool any_day_ = false;
    bool any_weekday_ = false;
};

}  // namespace hearth::controller
