#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "api/command/Console.h"
#include "base/Json.h"
#include "base/http/client/SseReader.h"

namespace hearth::cli {

/// Shows one execution on a terminal: takes its events, writes its output as it comes and knows how
/// the execution ended. Not thread-safe.
class RunOutput {
public:
    /// `quiet`: only collects, for --json. `shows_value`: prints the value of a last expression.
    RunOutput(const Console& console, bool quiet, bool shows_value = false)
        : console_(console), quiet_(quiet), shows_value_(shows_value) {}

    /// Throws Error(Internal) for an event that differs from docs/rest.md.
    void take(const http::SseEvent& event);

    bool finished() const { return !result_.is_null(); }
    /// True if output could not be written: its reader has gone.
    bool unheard() const { return unheard_; }
    /// Empty until the server has named it.
    const std::string& executionId() const { return id_; }
    /// The execution as in the `exit` event.
    const Json& result() const { return result_; }
    /// The program's own status, or the number for its kind of end; Incomplete instead of Ok if
    /// output was lost.
    int exitStatus() const;
    /// Output bytes that this reader never got.
    std::uint64_t lostBytes() const { return lost_; }

private:
    void printResults() const;
    void explainEnd() const;

    const Console& console_;
    bool quiet_;
    bool shows_value_;
    bool at_line_start_ = true;
    std::string id_;
    Json result_ = nullptr;
    std::string stderr_tail_;
    std::uint64_t lost_ = 0;
    bool unheard_ = false;
};

/// The exit status for an execution object: its exit code, 128 + N for a signal, 124 for a timeout,
/// 137 for out of memory, 1 if the sandbox was lost.
int exitStatusOf(const Json& execution);

}  // namespace hearth::cli
