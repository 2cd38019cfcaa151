#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "pool/agent/program/core/Connection.h"

namespace hearth::agent {

class Execution;

/// The stream of one `exec` or `attach`: output by credit, and input.
class OutputStream final : public Stream {
public:
    OutputStream(Connection& connection, std::uint32_t id, Execution& execution, std::uint64_t from,
                 std::uint64_t results_from);
    ~OutputStream() override { detach(); }
    void data(std::string_view bytes) override;
    void end() override;
    void credit(std::uint32_t bytes) override;
    void detach() override;
    void pump() override;

private:
    friend class Execution;
    /// Sends as much as the credit and the connection take.
    void send();
    /// Tells the client where a gap of the output ends, and how much before it was stderr's.
    void tellGap(std::uint64_t end);
    /// Tells the client, once, if the output that waits for its credit is the last.
    void tellEnd();

    Connection& connection_;
    std::uint32_t id_;
    Execution* execution_;
    std::uint64_t cursor_;
    std::uint64_t results_cursor_;
    std::uint64_t credit_ = kInitialCredit;
    std::string input_;  ///< at most kInitialCredit: the client's window
    bool input_ended_ = false;
    bool end_told_ = false;
};

}  // namespace hearth::agent
