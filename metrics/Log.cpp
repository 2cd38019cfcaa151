#include "metrics/Log.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "base/Clock.h"
#include "base/JsonText.h"
#include "metrics/LogOutput.h"
#include "metrics/LogTail.h"
#include "metrics/LogWriter.h"

namespace hearth::metrics {
namespace {

constexpr char kDelete = 0x7F;

/// Escapes as in JSON; readers of logfmt know no other escapes. Also escapes what a terminal obeys
/// or does not show.
void appendQuoted(std::string& line, std::string_view value) {
    line.push_back('"');
    std::size_t from = 0;
    for (std::size_t at = 0; at < value.size(); ++at) {
        if (value[at] >= 0 && value[at] < kDelete) continue;
        const std::size_t unseen = unseenAt(value.substr(at));
        if (unseen == 0) continue;
        appendJsonText(line, value.substr(from, at - from));
        appendEscape(line, codePointOf(value.substr(at, unseen)));
        from = at + unseen;
        at = from - 1;
    }
    appendJsonText(line, value.substr(from));
    line.push_back('"');
}

bool needsQuotes(std::string_view value) {
    return value.empty() || std::any_of(value.begin(), value.end(), [](char c) {
               return c <= ' ' || c >= kDelete || c == '"' || c == '=' || c == '\\';
           });
}

void appendLogfmt(std::string& line, std::string_view key, std::string_view value) {
    if (!line.empty()) line.push_back(' ');
    line.append(key).push_back('=');
    if (needsQuotes(value)) {
        appendQuoted(line, value);
    } else {
        line.append(value);
    }
}

void appendJson(std::string& line, std::string_view key, std::string_view value, bool number) {
    line.push_back(line.empty() ? '{' : ',');
    appendQuoted(line, key);
    line.push_back(':');
    if (number) {
        line.append(value);
    } else {
        appendQuoted(line, value);
    }
}

/// The tenant that a line names; empty if it names none.
std::string_view tenantOf(std::initializer_list<LogField> fields) {
    for (const LogField& field : fields) {
        if (field.key == "tenant") return field.value;
    }
    return {};
}

}  // namespace

LogField::LogField(std::string_view k, double v) : key(k), number(std::isfinite(v)) {
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), "%.6g", v);
    value = text.data();
}

Log::Log(int fd, LogLevel least, LogFormat format, LogTail* tail)
    : output_(std::make_shared<const LogOutput>(fd)), tail_(tail), least_(least), format_(format) {}

Log::Log(LogWriter& writer, LogLevel least, LogTail* tail)
    : writer_(&writer), tail_(tail), least_(least), format_(writer.format()) {}

void Log::debug(std::string_view event, std::initializer_list<LogField> fields) {
    write(LogLevel::Debug, event, fields);
}
void Log::info(std::string_view event, std::initializer_list<LogField> fields) {
    write(LogLevel::Info, event, fields);
}
void Log::warn(std::string_view event, std::initializer_list<LogField> fields) {
    write(LogLevel::Warn, event, fields);
}
void Log::error(std::string_view event, std::initializer_list<LogField> fields) {
    write(LogLevel::Error, event, fields);
}
void Log::audit(std::string_view event, std::initializer_list<LogField> fields) {
    writeLine("audit", event, fields);
}

void Log::write(LogLevel level, std::string_view event, std::initializer_list<LogField> fields) {
    if (!shows(level)) return;
    writeLine(kLogLevels.of(level), event, fields);
}

std::string Log::line(LogFormat format, std::string_view level, std::string_view event,
                      std::initializer_list<LogField> fields) {
    std::string line;
    const auto append = [&](std::string_view key, std::string_view value, bool number = false) {
        if (format == LogFormat::Json) return appendJson(line, key, value, number);
        appendLogfmt(line, key, value);
    };
    append("ts", formatRfc3339(std::chrono::system_clock::now()));
    append("level", level);
    append("event", event);
    for (const LogField& field : fields) append(field.key, field.value, field.number);
    line.append(format == LogFormat::Json ? "}\n" : "\n");
    return line;
}

void Log::writeLine(std::string_view level, std::string_view event,
                    std::initializer_list<LogField> fields) const {
    std::string text = line(format_, level, event, fields);
    if (tail_ != nullptr) tail_->add(text, tenantOf(fields), event);
    if (writer_ != nullptr) return writer_->add(std::move(text));
    // If the log cannot be written, there is no place to report it.
    static_cast<void>(output_->write(text));
}

}  // namespace hearth::metrics
