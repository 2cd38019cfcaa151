#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/Json.h"
#include "pool/agent/OutputLog.h"

namespace hearth::pool {

/// One execution of the echo language (FakeRuntime.h). Times are nanoseconds of the clock. Not
/// thread-safe.
class FakeExecution {
public:
    /// From the request `exec`; begins at `now_ns`.
    FakeExecution(const Json& request, std::int64_t now_ns);

    const std::string& id() const { return id_; }
    const std::string& fingerprint() const { return fingerprint_; }
    const agent::OutputLog& output() const { return output_; }
    std::int64_t startedAtNs() const { return started_at_ns_; }
    bool running() const { return running_; }
    bool background() const { return background_; }
    bool floods() const { return running_ && flood_left_ > 0; }

    void input(std::string_view bytes);
    void endOfInput(std::int64_t now_ns);
    void kill(int signal, std::int64_t now_ns);
    /// Goes on; ends what is due.
    void work(std::int64_t now_ns);
    /// Once it has ended.
    Json result() const;

private:
    void begin(const std::string& line, bool input_open);
    void end(std::string status, int exit_code, int signal, std::int64_t now_ns);

    std::string id_;
    std::string fingerprint_;
    agent::OutputLog output_;
    std::int64_t started_at_ns_ = 0;
    std::int64_t ended_at_ns_ = 0;
    std::int64_t wake_at_ns_ = 0;      ///< of a sleep; 0: none
    std::int64_t deadline_at_ns_ = 0;  ///< 0: none
    std::uint64_t flood_left_ = 0;
    bool reads_ = false;
    bool running_ = true;
    bool background_ = false;
    int exit_code_ = 0;
    int signal_ = 0;
    std::string status_;
};

}  // namespace hearth::pool
