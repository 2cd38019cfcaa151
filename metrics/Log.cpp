#include "metrics/Log.h"

#include <array>
#include <cstdio>

#include "base/Clock.h"
#include "metrics/LogOutput.h"
#include "metrics/LogWriter.h"

namespace hearth::metrics {
namespace {

constexpr std::array<std::string_view, 4> kLevelNames{"debug", "info", "warn", "error"};

void appendValue(std::string& line, std::string_view value) {
    const bool plain =
        !value.empty() && value.find_first_of(" \"=\\") == std::string_view::npos && [&] {
            for (const char c : value) {
                if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) return false;
            }
            return true;
        }();
    if (plain) {
        line.append(value);
        return;
    }
    line.push_back('"');
    for (const char c : value) {
        if (c == '"' || c == '\\') {
            line.push_back('\\');
            line.push_back(c);
        } else if (c == '\n') {
            line.append("\\n");
        } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
            std::array<char, 8> code{};
            std::snprintf(code.data(), code.size(), "\\x%02x", static_cast<unsigned char>(c));
            line.append(code.data());
        } else {
            line.push_back(c);
        }
    }
    line.push_back('"');
}

}  // namespace

Log::Log(int fd, LogLevel least) : output_(std::make_shared<const LogOutput>(fd)), least_(least) {}

Log::Log(LogWriter& writer, LogLevel least) : writer_(&writer), least_(least) {}

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
    if (level < least_) return;
    writeLine(kLevelNames[static_cast<std::size_t>(level)], event, fields);
}

std::string Log::line(std::string_view level, std::string_view event,
                      std::initializer_list<LogField> fields) {
    std::string line = formatRfc3339(std::chrono::system_clock::now());
    line.append(" ").append(level).append(" ").append(event);
    for (const LogField& field : fields) {
        line.append(" ").append(field.key).append("=");
        appendValue(line, field.value);
    }
    line.push_back('\n');
    return line;
}

void Log::writeLine(std::string_view level, std::string_view event,
                    std::initializer_list<LogField> fields) const {
    if (writer_ != nullptr) return writer_->add(line(level, event, fields));
    // A log that cannot be written has nowhere to say so.
    static_cast<void>(output_->write(line(level, event, fields)));
}

}  // namespace hearth::metrics
