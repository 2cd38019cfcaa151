#include "api/mcp/tools/RunText.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "api/mcp/tools/Pictures.h"
#include "base/Units.h"
#include "controller/contract/ResultForms.h"

namespace hearth::mcp {
namespace {

using controller::ExecutionStatus;
using controller::ExecutionView;
using controller::kExecutionStatuses;

std::string duration(double ms) {
    std::array<char, 48> text{};
    if (ms < 1'000) {
        std::snprintf(text.data(), text.size(), "%.1f ms", ms);
    } else {
        std::snprintf(text.data(), text.size(), "%.2f s", ms / 1'000);
    }
    return text.data();
}

void addSection(std::string& out, std::string_view name, std::string_view text) {
    out += "\n--- " + std::string(name) + " ---\n";
    out += text;
    if (out.ends_with('\n')) out.pop_back();
}

std::string statusHint(const ExecutionView& view) {
    if (view.status == ExecutionStatus::Timeout) {
        return "The time limit ended it; give a greater timeout_s, or background=true.";
    }
    if (view.status == ExecutionStatus::Oom)
        return "It ran out of memory; use less or a pool with more.";
    if (view.status == ExecutionStatus::Lost) {
        return "Its sandbox died with its files; open a new workspace with workspace_open.";
    }
    if (view.status == ExecutionStatus::Running) {
        return "run_status run_id=" + view.id + " wait_s=20 waits for it and gives its output.";
    }
    return {};
}

constexpr std::size_t kMostNotes = 5;

struct Shown {
    std::string text;  ///< sections to be added
    ShownPictures pictures;
};

/// Returns the text of one result: plain text if it has some, else a substitute.
std::string textOf(const Json& mime, bool main, bool has_image) {
    if (const auto plain = stringMember(mime, "text/plain")) {
        // "<Figure size 640x480 with 1 Axes>" adds nothing to the figure.
        return has_image && !main ? std::string() : *plain;
    }
    for (const char* type : {"text/markdown", "text/html", "text/latex", "text/csv"}) {
        if (const auto text = stringMember(mime, type)) return *text;
    }
    const auto json = mime.find("application/json");
    return json == mime.end() ? std::string() : dumpJson(*json);
}

/// Adds a line for each form that a result has not; only some, as a tenant writes their texts.
void noteLeftOut(std::set<std::string>& notes, const Json& result) {
    const auto left_out = result.find("leftOut");
    if (left_out == result.end()) return;
    for (const Json& form : *left_out) {
        if (notes.size() == kMostNotes) return;
        notes.insert(textAt(form, "type") + " is left out of a result: " + textAt(form, "reason") +
                     ".");
    }
}

/// The results within `room` characters of text.
Shown showResults(const ExecutionView& view, std::size_t room) {
    Shown shown{{}, picturesOf(view, kPicturesCap)};
    std::map<std::string, int>& left_out = shown.pictures.left_out;
    std::set<std::string> notes;
    for (std::size_t i = 0; i < view.results.size(); ++i) {
        const controller::ResultPtr& result = view.results[i];
        const bool has_image = shown.pictures.of_result.contains(i);
        const Json document = controller::documentOf(*result);
        noteLeftOut(notes, document);
        const std::string text = textOf(document.at("mime"), result->main, has_image);
        if (text.empty()) continue;
        if (room == 0) {
            ++left_out["text"];
            continue;
        }
        const Clipped clipped = clip(text, room);
        room -= std::min(room, clipped.text.size());
        addSection(shown.text, result->main ? "result" : "shown", clipped.text);
    }
    for (const auto& [type, count] : left_out) {
        shown.text += "\n" + std::to_string(count) + " result(s) of type " + type +
                      " are not shown here; write them to files and use file_get.";
    }
    for (const std::string& note : notes) shown.text += "\n" + note;
    if (view.dropped_results > 0) {
        shown.text += "\n" + std::to_string(view.dropped_results) +
                      " results were too many or too large to keep.";
    }
    return shown;
}

std::string contextHint(const ExecutionView& view) {
    if (view.context_kept.value_or(true)) return {};
    return "The context's interpreter ended with it: its variables are lost, and the next run in "
           "it starts afresh.";
}

/// Returns the outcome of the packages that the run asked for. Untrusted text.
std::string packagesText(const ExecutionView& view) {
    if (!view.packages) return {};
    std::string text;
    for (const auto& [name, version] : view.packages->installed) {
        text += text.empty() ? "\nPackages: " : ", ";
        text.append(name).append(" ").append(version);
    }
    for (const auto& [name, why] : view.packages->not_installed)
        text += "\nNot found: " + why + ".";
    return clip(text, 2'000).text;
}

/// Returns the error report of the language's runner, if stderr is empty, or the agent's on a
/// SIGBUS, of which a shell only says "Bus error". Untrusted text.
std::string errorText(const ExecutionView& view) {
    if (!view.error) return {};
    if (!view.stderr_bytes.empty() && stringMember(*view.error, "name") != "SIGBUS") return {};
    const std::string traceback = stringMember(*view.error, "traceback").value_or("");
    if (!traceback.empty()) return clip(traceback, 4'000).text;
    return clip(stringMember(*view.error, "name").value_or("error") + ": " +
                    stringMember(*view.error, "message").value_or(""),
                1'000)
        .text;
}

}  // namespace

std::string runStatusLine(const ExecutionView& view) {
    std::string text = kExecutionStatuses.of(view.status);
    if (view.exit_code) text += ", exit " + std::to_string(*view.exit_code);
    if (view.signal) text += ", signal " + *view.signal;
    if (view.duration_ms) text += ", " + duration(*view.duration_ms);
    if (view.peak_memory_bytes >= 1U << 20U) {
        text += ", peak " + std::to_string(view.peak_memory_bytes >> 20U) + " MiB";
    }
    text += "; run_id " + view.id;
    if (view.claim) {
        text += std::string("; one-shot sandbox ") +
                controller::kClaimSources.of(view.claim->source) + " in " +
                duration(view.claim->total_ms);
    } else if (!view.workspace_id.empty()) {
        text += "; workspace_id " + view.workspace_id;
    }
    if (view.replayed) text += "; the run of the earlier call with this key";
    return text;
}

ToolResult runResult(const ExecutionView& view) {
    // Each channel may use the room that the other leaves; stderr always has a third.
    const Shown shown = showResults(view, kTextCap / 2);
    const std::size_t room = kTextCap - 1'000 - std::min(shown.text.size(), kTextCap / 2);
    const std::size_t for_stderr =
        std::max(room / 3, room - std::min(room, view.stdout_bytes.size()));
    const std::size_t for_stdout = room - std::min(for_stderr, view.stderr_bytes.size());
    const Clipped out = clip(view.stdout_bytes, for_stdout);
    const Clipped err = clip(view.stderr_bytes, for_stderr);

    std::string text = runStatusLine(view);
    if (const std::string hint = statusHint(view); !hint.empty()) text += "\n" + hint;
    if (const std::string hint = contextHint(view); !hint.empty()) text += "\n" + hint;
    text += packagesText(view);
    if (view.truncated) {
        text += "\n" + std::to_string(view.dropped_bytes) +
                " bytes of output were too many to keep; write large output to a file.";
    }
    if (out.left_out > 0 || err.left_out > 0) {
        const std::size_t since = view.stderr_bytes.empty() && !view.truncated ? out.head : 0;
        text += "\nOutput is shortened; run_status run_id=" + view.id +
                " since=" + std::to_string(since) + " gives the rest.";
    }
    if (!out.text.empty()) addSection(text, "stdout", out.text);
    if (!err.text.empty()) addSection(text, "stderr", err.text);
    text += shown.text;
    if (const std::string error = errorText(view); !error.empty()) {
        addSection(text, "error", error);
    }
    if (view.stdout_bytes.empty() && view.stderr_bytes.empty() && view.results.empty() &&
        view.status != ExecutionStatus::Running) {
        text += "\n(no output)";
    }
    ToolResult result = textResult(text);
    for (const auto& [number, picture] : shown.pictures.of_result) {
        result.encodedImage(picture.base64, picture.type);
    }
    result.is_error = view.status == ExecutionStatus::Lost;
    return result;
}

ToolResult runOutputFrom(const controller::Execution& execution, std::uint64_t since) {
    // Reads the status before the output, so that "no more" is never said too early.
    const ExecutionView view = execution.viewUpTo(0);
    const bool finished = view.status != ExecutionStatus::Running;
    std::string body;
    std::uint64_t next = since;
    int channel = 0;
    std::size_t used = 0;
    const std::size_t room = kTextCap - 1'000;
    while (used < room) {
        const auto chunk = execution.read(next, room - used);
        if (!chunk) break;
        const std::uint64_t gap = chunk->offset > next ? chunk->offset - next : 0;
        std::string_view bytes = chunk->bytes;
        if (chunk->offset < next) {
            bytes.remove_prefix(std::min<std::size_t>(bytes.size(), next - chunk->offset));
        }
        if (bytes.empty()) break;
        bytes = prefixOf(bytes, room - used);
        if (gap > 0) body += "\n[… " + std::to_string(gap) + " bytes were not kept …]\n";
        if (chunk->channel != channel) {
            channel = chunk->channel;
            if (!body.empty() && !body.ends_with('\n')) body += '\n';
            body += channel == 2 ? "--- stderr ---\n" : "--- stdout ---\n";
        }
        body += toUtf8(bytes);
        next = std::max(next, chunk->offset) + bytes.size();
        used += bytes.size();
    }
    const bool more = execution.read(next, 1).has_value();
    std::string text = runStatusLine(view) + "\noutput from byte " + std::to_string(since) +
                       " to " + std::to_string(next);
    if (more) {
        text += "; more: since=" + std::to_string(next);
    } else if (finished) {
        text += "; that is all";
    } else {
        text += "; still running: go on with since=" + std::to_string(next);
    }
    if (!body.empty()) text += "\n" + body;
    ToolResult result = textResult(text);
    result.is_error = view.status == ExecutionStatus::Lost;
    return result;
}

}  // namespace hearth::mcp
