#include "controller/schedule/Cron.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <vector>

#include "base/Error.h"

namespace hearth::controller {
namespace {

constexpr cctz::year_t kYearsAhead = 9;  // the 29th of February skips eight years around 2100
/// The last year of firings: a clock of nanoseconds ends in 2262, and a window may last ten years.
constexpr cctz::year_t kLastYear = 2249;
constexpr std::size_t kLongestLine = 256;

constexpr std::array<const char*, 12> kMonths{"jan", "feb", "mar", "apr", "may", "jun",
                                              "jul", "aug", "sep", "oct", "nov", "dec"};
constexpr std::array<const char*, 7> kWeekdays{"sun", "mon", "tue", "wed", "thu", "fri", "sat"};

struct Named {
    std::string_view name;
    std::string_view line;
};
constexpr std::array<Named, 7> kNamed{{{"@hourly", "0 * * * *"},
                                       {"@daily", "0 0 * * *"},
                                       {"@midnight", "0 0 * * *"},
                                       {"@weekly", "0 0 * * 0"},
                                       {"@monthly", "0 0 1 * *"},
                                       {"@yearly", "0 0 1 1 *"},
                                       {"@annually", "0 0 1 1 *"}}};

/// One of the five fields: its range, and the words for numbers.
struct CronField {
    const char* what;
    unsigned least;
    unsigned most;
    const char* allowed;
    const char* const* words = nullptr;
    std::size_t word_count = 0;
};
constexpr std::array<CronField, 5> kCronFields{
    {{"minute", 0, 59, "0 to 59"},
     {"hour", 0, 23, "0 to 23"},
     {"day of month", 1, 31, "1 to 31"},
     {"month", 1, 12, "1 to 12 or jan to dec", kMonths.data(), kMonths.size()},
     {"day of week", 0, 7, "0 to 7 or sun to sat", kWeekdays.data(), kWeekdays.size()}}};

std::vector<std::string_view> partsOf(std::string_view text, std::string_view separators) {
    std::vector<std::string_view> parts;
    for (std::size_t begin = 0; begin <= text.size();) {
        const std::size_t end = std::min(text.find_first_of(separators, begin), text.size());
        parts.push_back(text.substr(begin, end - begin));
        begin = end + 1;
    }
    return parts;
}

[[noreturn]] void refuseCron(std::string_view text, const std::string& why) {
    throw Error(ErrorCode::InvalidArgument,
                "\"" + std::string(text.substr(0, kLongestLine)) + "\" is no cron line: " + why);
}

bool sameWord(std::string_view word, const char* name) {
    for (const char c : word) {
        const char lower = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
        if (*name == '\0' || lower != *name) return false;
        ++name;
    }
    return *name == '\0';
}

class FieldParser {
public:
    FieldParser(std::string_view line, const CronField& field) : line_(line), field_(field) {}

    template <std::size_t Count>
    void parse(std::string_view text, std::bitset<Count>& out) const {
        for (const std::string_view item : partsOf(text, ",")) {
            const std::vector<std::string_view> step = partsOf(item, "/");
            if (step.size() > 2) refuse(item);
            unsigned from = field_.least;
            unsigned to = field_.most;
            if (step[0] == "*") {
                if (field_.most == 7) to = 6;
            } else {
                const std::vector<std::string_view> range = partsOf(step[0], "-");
                if (range.size() > 2) refuse(item);
                from = value(range[0], item);
                if (range.size() == 2) {
                    to = value(range[1], item);
                    if (to == 0 && field_.most == 7 && from > 0) to = 7;  // fri-sun
                } else if (step.size() == 1) {
                    to = from;
                }
                if (from > to) refuse(item, "begins after its end");
            }
            unsigned by = 1;
            if (step.size() == 2 && (!number(step[1], by) || by == 0 || by > field_.most)) {
                refuse(item, "has a step that is not from 1 to " + std::to_string(field_.most));
            }
            for (unsigned at = from; at <= to; at += by) out.set(at);
        }
    }

private:
    static bool number(std::string_view text, unsigned& out) {
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
        return error == std::errc{} && end == text.data() + text.size() && text.size() <= 4;
    }
    unsigned value(std::string_view text, std::string_view item) const {
        for (std::size_t i = 0; i < field_.word_count; ++i) {
            if (sameWord(text, field_.words[i])) return static_cast<unsigned>(i) + field_.least;
        }
        unsigned found = 0;
        if (!number(text, found) || found < field_.least || found > field_.most) refuse(item);
        return found;
    }
    [[noreturn]] void refuse(std::string_view item, const std::string& why = {}) const {
        refuseCron(line_, "\"" + std::string(item) + "\" in the field " + field_.what + " " +
                              (why.empty() ? "is not a value" : why) + "; allowed: " +
                              field_.allowed + ", lists (1,2), ranges (1-5), steps (*/2)");
    }

    std::string_view line_;
    const CronField& field_;
};

}  // namespace

Cron::Cron(std::string_view text) : text_(text) {
    if (text.size() > kLongestLine) refuseCron(text, "it is longer than 256 characters");
    std::string_view line = text;
    if (line.starts_with('@')) {
        for (const Named& named : kNamed) {
            if (text == named.name) line = named.line;
        }
        if (line.starts_with('@')) {
            refuseCron(text, "names are @hourly, @daily, @weekly, @monthly and @yearly");
        }
    }
    std::vector<std::string_view> fields = partsOf(line, " \t");
    std::erase_if(fields, [](std::string_view field) { return field.empty(); });
    if (fields.size() != kCronFields.size()) {
        refuseCron(text, "it has " + std::to_string(fields.size()) +
                             " fields, not the five minute, hour, day of month, month, day of "
                             "week");
    }
    FieldParser(text, kCronFields[0]).parse(fields[0], minutes_);
    FieldParser(text, kCronFields[1]).parse(fields[1], hours_);
    FieldParser(text, kCronFields[2]).parse(fields[2], days_);
    FieldParser(text, kCronFields[3]).parse(fields[3], months_);
    FieldParser(text, kCronFields[4]).parse(fields[4], weekdays_);
    if (weekdays_[7]) weekdays_.set(0);
    any_hour_ = fields[1].starts_with('*');
    any_day_ = fields[2].starts_with('*');
    any_weekday_ = fields[4].starts_with('*');
    if (!matchFrom(Minute(2000, 1, 1))) refuseCron(text, "no year has such a day");
}

bool Cron::dayFits(const Minute& day) const {
    const bool by_day = days_[static_cast<std::size_t>(day.day())];
    const auto weekday = static_cast<std::size_t>(cctz::get_weekday(cctz::civil_day(day)));
    const bool by_weekday = weekdays_[(weekday + 1) % 7];  // cctz counts from Monday
    return any_day_ || any_weekday_ ? by_day && by_weekday : by_day || by_weekday;
}

std::optional<Cron::Minute> Cron::matchFrom(const Minute& from) const {
    Minute at = from;
    while (at.year() <= from.year() + kYearsAhead) {
        if (!months_[static_cast<std::size_t>(at.month())]) {
            at = Minute(cctz::civil_month(at) + 1);
        } else if (!dayFits(at)) {
            at = Minute(cctz::civil_day(at) + 1);
        } else if (!hours_[static_cast<std::size_t>(at.hour())]) {
            at = Minute(cctz::civil_hour(at) + 1);
        } else if (!minutes_[static_cast<std::size_t>(at.minute())]) {
            at += 1;
        } else {
            return at;
        }
    }
    return std::nullopt;
}

std::optional<Cron::Minute> Cron::matchUpTo(const Minute& from) const {
    Minute at = from;
    while (at.year() >= from.year() - kYearsAhead) {
        if (!months_[static_cast<std::size_t>(at.month())]) {
            at = Minute(cctz::civil_month(at)) - 1;
        } else if (!dayFits(at)) {
            at = Minute(cctz::civil_day(at)) - 1;
        } else if (!hours_[static_cast<std::size_t>(at.hour())]) {
            at = Minute(cctz::civil_hour(at)) - 1;
        } else if (!minutes_[static_cast<std::size_t>(at.minute())]) {
            at -= 1;
        } else {
            return at;
        }
    }
    return std::nullopt;
}

std::optional<WallTime> Cron::next(const TimeZone& zone, WallTime at) const {
    const Minute shown = zone.local(at);
    const auto last_year = std::min(shown.year() + kYearsAhead, kLastYear);
    if (!any_hour_) {
        for (auto found = matchFrom(shown); found && found->year() <= last_year;
             found = matchFrom(*found + 1)) {
            if (const WallTime when = zone.first(*found); when > at) return when;
        }
        return std::nullopt;
    }
    // Within a stretch the clock runs evenly; a change of the clock begins the next stretch.
    Minute from = shown + 1;
    for (TimeZone::Stretch stretch = zone.stretch(at);;) {
        const auto found = matchFrom(from);
        if (!found || found->year() > last_year) return std::nullopt;
        const WallTime when =
            WallTime(std::chrono::seconds(cctz::civil_second(*found) - cctz::civil_second())) -
            stretch.offset;
        if (when < stretch.end) return when;
        from = zone.local(stretch.end);
        stretch = zone.stretch(stretch.end);
    }
}

std::optional<WallTime> Cron::last(const TimeZone& zone, WallTime at) const {
    const Minute shown = zone.local(at);
    if (!any_hour_) {
        for (auto found = matchUpTo(zone.latestShown(at)); found; found = matchUpTo(*found - 1)) {
            if (const WallTime when = zone.first(*found); when <= at) return when;
        }
        return std::nullopt;
    }
    Minute from = shown;
    for (TimeZone::Stretch stretch = zone.stretch(at);;) {
        const auto found = matchUpTo(from);
        if (!found || found->year() < shown.year() - kYearsAhead) return std::nullopt;
        const WallTime when =
            WallTime(std::chrono::seconds(cctz::civil_second(*found) - cctz::civil_second())) -
            stretch.offset;
        if (when >= stretch.begin) return when;
        const WallTime before = stretch.begin - std::chrono::seconds(1);
        from = zone.local(before);
        stretch = zone.stretch(before);
    }
}

}  // namespace hearth::controller
