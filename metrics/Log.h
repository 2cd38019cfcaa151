#pragma once

#include <atomic>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>

#include "base/Texts.h"

namespace hearth::metrics {

class LogOutput;
class LogTail;
class LogWriter;

enum class LogLevel { Debug, Info, Warn, Error };
inline constexpr Texts<LogLevel, 4> kLogLevels{{"debug", "info", "warn", "error"}};
enum class LogFormat : std::uint8_t { Logfmt, Json };

/// One key and value of a log line. Never user code, output or secrets.
struct LogField {
    std::string_view key;
    std::string value;
    bool number = false;

    LogField(std::string_view k, std::string_view v) : key(k), value(v) {}
    LogField(std::string_view k, const char* v) : key(k), value(v) {}
    LogField(std::string_view k, const std::string& v) : key(k), value(v) {}
    /// Keeps six digits.
    LogField(std::string_view k, double v);
    template <typename T>
    requires std::is_integral_v<T> LogField(std::string_view k, T v)
        : key(k), value(std::to_string(v)), number(true) {}
};

/// Structured log: one event per line, `ts=… level=… event=… key=value …` (logfmt) or the same keys
/// as a JSON object, written to a descriptor in one write so that lines of several threads never
/// mix. Values are quoted and escaped if needed, so no value can forge a line. A stalled reader
/// never blocks a writer. Thread-safe.
class Log {
public:
    /// A line that the reader does not take at once is lost. Does not own `fd`.
    explicit Log(int fd = 2, LogLevel least = LogLevel::Info, LogFormat format = LogFormat::Logfmt,
                 LogTail* tail = nullptr);
    /// Lines wait in the writer, which outlives the log and sets the format. `tail` gets them, too,
    /// and also outlives the log.
    explicit Log(LogWriter& writer, LogLevel least = LogLevel::Info, LogTail* tail = nullptr);

    /// True if lines of this level are written; ask before making expensive fields.
    bool shows(LogLevel level) const { return level >= least_.load(std::memory_order_relaxed); }
    LogLevel level() const { return least_; }
    /// Stops writing lines of lower levels.
    void setLevel(LogLevel least) { least_ = least; }
    /// Null if the last lines are not kept.
    LogTail* tail() const { return tail_; }

    void debug(std::string_view event, std::initializer_list<LogField> fields = {});
    void info(std::string_view event, std::initializer_list<LogField> fields = {});
    void warn(std::string_view event, std::initializer_list<LogField> fields = {});
    void error(std::string_view event, std::initializer_list<LogField> fields = {});
    /// Written at every log level, with `audit` as its level: the record of the data that tenants
    /// sent outside must not depend on the log level.
    void audit(std::string_view event, std::initializer_list<LogField> fields = {});

    /// Formats one line, with its line break.
    static std::string line(LogFormat format, std::string_view level, std::string_view event,
                            std::initializer_list<LogField> fields);

private:
    void write(LogLevel level, std::string_view event, std::initializer_list<LogField> fields);
    void writeLine(std::string_view level, std::string_view event,
                   std::initializer_list<LogField> fields) const;

    std::shared_ptr<const LogOutput> output_;  ///< null with a writer
    LogWriter* writer_ = nullptr;
    LogTail* tail_ = nullptr;
    std::atomic<LogLevel> least_;
    LogFormat format_;
};

}  // namespace hearth::metrics
