#include "api/cli/remote/RunOutput.h"

#include <algorithm>
#include <csignal>
#include <map>
#include <optional>
#include <utility>

#include "api/command/ExitStatus.h"
#include "base/Error.h"
#include "base/Ids.h"
#include "pool/agent/connection/ExecutionStatus.h"

namespace hearth::cli {
namespace {

using agent::ExecutionStatus;

constexpr std::size_t kTail = 65536;

std::string bytesOf(const Json& data) {
    if (data.contains("base64")) {
        std::string bytes;
        if (!base64Decode(textAt(data, "base64"), bytes)) {
            throw Error(ErrorCode::Internal, "the server sent output that is no base64");
        }
        return bytes;
    }
    return textAt(data, "text");
}

/// The bytes lost before an event, or an execution's bytes that are in none of its fields.
std::uint64_t droppedBytesIn(const Json& data) {
    const auto dropped = data.find("droppedBytes");
    return dropped == data.end() || !dropped->is_number_unsigned() ? 0
                                                                   : dropped->get<std::uint64_t>();
}

/// The line that stands where so many bytes were not kept; empty for none.
std::string markOf(std::uint64_t lost, bool at_line_start) {
    if (lost == 0) return {};
    return (at_line_start ? "[… " : "\n[… ") + std::to_string(lost) + " bytes were not kept …]\n";
}

int signalNumber(const std::string& name) {
    static const std::map<std::string, int> numbers = {
        {"HUP", SIGHUP},   {"INT", SIGINT},   {"QUIT", SIGQUIT}, {"ILL", SIGILL},
        {"ABRT", SIGABRT}, {"BUS", SIGBUS},   {"FPE", SIGFPE},   {"KILL", SIGKILL},
        {"USR1", SIGUSR1}, {"SEGV", SIGSEGV}, {"USR2", SIGUSR2}, {"PIPE", SIGPIPE},
        {"ALRM", SIGALRM}, {"TERM", SIGTERM}, {"SYS", SIGSYS},   {"XCPU", SIGXCPU},
        {"XFSZ", SIGXFSZ}, {"TRAP", SIGTRAP}};
    const auto it = numbers.find(name.starts_with("SIG") ? name.substr(3) : name);
    return it == numbers.end() ? SIGKILL : it->second;
}

/// True if a result has a form that is saved to a file, so that its text only stands for it.
bool isPicture(const Json& mime) {
    const auto& forms = mime.items();
    return std::any_of(forms.begin(), forms.end(), [](const auto& form) {
        return form.key().starts_with("image/") || form.key() == "text/html";
    });
}

/// Nullopt for a status that only a later server has.
std::optional<ExecutionStatus> statusOf(const Json& execution) {
    return agent::kExecutionStatuses.find(textAt(execution, "status"));
}

}  // namespace

void RunOutput::take(const http::SseEvent& event) {
    if (event.type != "started" && event.type != "stdout" && event.type != "stderr" &&
        event.type != "exit") {
        return;  // the last event repeats results and errors
    }
    const Json data = parseJson(
        event.data, {.bytes = 128U << 20U, .depth = 64, .values = 1'000'000, .members = 100'000});
    if (!data.is_object()) throw Error(ErrorCode::Internal, "the server sent a malformed event");
    if (event.type == "stdout" || event.type == "stderr") {
        if (quiet_) return;
        const bool to_err = event.type == "stderr";
        const std::uint64_t lost = droppedBytesIn(data);
        lost_ += lost;
        const std::string bytes = markOf(lost, to_err || at_line_start_) + bytesOf(data);
        std::ostream& stream = to_err ? console_.err : console_.out;
        stream << bytes << std::flush;
        unheard_ = unheard_ || !stream.good();
        if (!to_err && !bytes.empty()) at_line_start_ = bytes.back() == '\n';
        if (to_err) {
            stderr_tail_ += bytes;
            if (stderr_tail_.size() > 2 * kTail) {
                stderr_tail_.erase(0, stderr_tail_.size() - kTail);
            }
        }
        return;
    }
    if (const std::string id = textAt(data, "id"); !id.empty()) id_ = id;
    if (event.type == "exit") {
        result_ = data;
        if (quiet_) {
            lost_ = droppedBytesIn(data);  // the reader gets only the document
            return;
        }
        printResults();
        explainEnd();
    }
}

/// Prints what the program displayed as text, and the value of its last expression if asked for.
void RunOutput::printResults() const {
    const auto results = result_.find("results");
    if (results == result_.end() || !results->is_array()) return;
    bool line_start = at_line_start_;
    for (const Json& result : *results) {
        const auto main = result.find("main");
        const auto mime = result.find("mime");
        if (main == result.end() || mime == result.end()) continue;
        if (*main == true ? !shows_value_ : isPicture(*mime)) continue;
        const std::string text = textAt(*mime, "text/plain");
        if (text.empty()) continue;
        console_.out << (std::exchange(line_start, true) ? "" : "\n") << text << '\n';
    }
    console_.out << std::flush;
}

void RunOutput::explainEnd() const {
    const auto status = statusOf(result_);
    if (const auto error = result_.find("error"); error != result_.end() && error->is_object()) {
        const std::string traceback = textAt(*error, "traceback");
        const std::string last = textAt(*error, "name") + ": " + textAt(*error, "message");
        // Most interpreters have already printed this.
        if (stderr_tail_.find(textAt(*error, "name")) == std::string::npos) {
            console_.err << (traceback.empty() ? last : traceback) << '\n' << std::flush;
        }
    }
    if (const auto unknown = result_.find("notInstalled");
        unknown != result_.end() && unknown->is_object()) {
        for (const auto& [name, why] : unknown->items()) {
            if (why.is_string()) console_.note("hearth: " + why.get<std::string>());
        }
    }
    // Not the execution's own count: a stream may get more than the server keeps, or less.
    if (lost_ > 0) {
        console_.note("hearth: " + std::to_string(lost_) +
                      " bytes of output were lost: it came faster than it was read, and the "
                      "server keeps only its beginning and end; see --output-limit");
    }
    if (status == ExecutionStatus::Timeout) console_.note("hearth: the execution timed out");
    if (status == ExecutionStatus::Oom) console_.note("hearth: the execution ran out of memory");
    if (const std::string signal = textAt(result_, "signal"); status == ExecutionStatus::Killed) {
        console_.note(signal.empty() ? "hearth: the execution was killed"
                                     : "hearth: the execution was ended by signal " + signal);
    }
    if (status == ExecutionStatus::Lost) console_.note("hearth: the execution's sandbox was lost");
}

int RunOutput::exitStatus() const {
    const int own = exitStatusOf(result_);
    return own == kOk && lost_ > 0 ? kIncomplete : own;
}

int exitStatusOf(const Json& execution) {
    const auto status = statusOf(execution);
    if (status == ExecutionStatus::Timeout) return kTimedOut;
    if (status == ExecutionStatus::Oom) return 128 + SIGKILL;
    if (const std::string signal = textAt(execution, "signal"); !signal.empty()) {
        return 128 + signalNumber(signal);
    }
    if (const auto code = execution.find("exitCode");
        code != execution.end() && code->is_number_integer()) {
        return code->get<int>() & 0xFF;
    }
    if (status == ExecutionStatus::Killed) return 128 + SIGKILL;
    return status == ExecutionStatus::Ok ? 0 : 1;
}

}  // namespace hearth::cli
