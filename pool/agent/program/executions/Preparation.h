#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "pool/agent/program/core/EventLoop.h"
#include "pool/agent/program/core/JsonValue.h"
#include "pool/agent/program/core/Settings.h"
#include "pool/agent/program/process/Spawn.h"

namespace hearth::agent {

/// A program that runs before the work of an execution, as a part of it.
struct PrepareRequest {
    std::vector<std::string> argv;  ///< empty: no program
    std::string input;              ///< its standard input, followed by a newline
    bool with_code = false;         ///< followed by the code of the execution

    /// False if `body` is no such request. An absent one means no program.
    static bool read(const JsonValue& body, PrepareRequest& out);
};

/// The pipes of a preparing process, and its kept output, which is not output of the execution. On
/// the loop's thread.
class Preparation final {
public:
    explicit Preparation(EventLoop& loop);
    Preparation(const Preparation&) = delete;
    Preparation& operator=(const Preparation&) = delete;
    ~Preparation();

    /// Starts it; returns null, or the reason why nothing was started. `spawn` gives everything
    /// except the command and the standard input; `pid` becomes its process.
    const char* start(const Settings& settings, const PrepareRequest& request,
                      std::string_view code, SpawnRequest spawn, pid_t& pid);
    /// Its process has ended: reads the rest, and nothing more afterwards.
    void ended(bool ok);
    bool running() const noexcept { return ended_ns_ == 0; }
    /// Returns its part of `result`.
    JsonValue told() const;

private:
    class Pipe;

    void close();

    EventLoop& loop_;
    std::unique_ptr<Pipe> output_;
    std::unique_ptr<Pipe> errors_;
    std::string said_;
    std::string complaints_;
    std::int64_t started_ns_ = 0;
    std::int64_t ended_ns_ = 0;
    bool ok_ = false;
};

}  // namespace hearth::agent
