#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "base/Fd.h"
#include "base/Json.h"
#include "pool/agent/protocol/Frame.h"

namespace hearth::kernel_test {

/// A client with as much of PROTOCOL.md as a test needs: one connection, one call at a time.
class SmallAgent {
public:
    /// Says hello on `connection` and binds the sandbox.
    explicit SmallAgent(Fd connection);

    struct Outcome {
        std::string output;  ///< both channels
        Json result;
        int exitCode() const { return result.value("exitCode", -1); }
        int signal() const { return result.value("signal", -1); }
    };
    /// Runs the command by /bin/sh in the sandbox, to its end.
    Outcome run(const std::string& command, int timeout_ms = 20'000);
    /// Starts the command. Returns the id of its execution.
    std::string start(const std::string& command);
    /// Asks for one operation. Returns its reply; throws if it is refused.
    Json ask(const Json& body) { return reply(request(body), nullptr); }

    const Json& hello() const { return hello_; }

private:
    std::uint32_t request(const Json& body);
    /// Reads frames of `stream` until its Reply. Data goes to `output`.
    Json reply(std::uint32_t stream, std::string* output);
    std::pair<agent::FrameHeader, std::string> readFrame();
    Json exec(const std::string& command, int timeout_ms, bool background, std::string* output);

    Fd fd_;
    std::uint32_t next_ = 1;
    Json hello_;
};

}  // namespace hearth::kernel_test
