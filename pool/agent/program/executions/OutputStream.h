#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "pool/agent/program/core/Connection.h"
#include "pool/agent/program/executions/ResultLog.h"
#include "pool/agent/protocol/OutputLog.h"

namespace hearth::agent {

class OutputStream;

/// The execution of a stream, for the stream.
class StreamOwner {
public:
    virtual const OutputLog& log() const noexcept = 0;
    virtual const ResultLog& results() const noexcept = 0;
    /// True while its output waits for its end.
    virtual bool holds() const noexcept = 0;
    virtual bool finished() const noexcept = 0;
    virtual JsonValue result() const = 0;
    virtual void opened(OutputStream& stream) = 0;
    /// The stream has ended; what it has of input goes to the execution.
    virtual void closed(OutputStream& stream) = 0;
    /// The stream has sent what it could.
    virtual void sent() = 0;
    /// The client sent input.
    virtual void active() = 0;
    /// Takes the input of its streams as far as its program does.
    virtual void feed() = 0;

protected:
    ~StreamOwner() = default;
};

/// The stream of one `exec` or `attach`: output by credit, and input.
class OutputStream final : public Stream {
public:
    OutputStream(Connection& connection, std::uint32_t id, StreamOwner& owner, std::uint64_t from,
                 std::uint64_t results_from);
    ~OutputStream() override { detach(); }
    void data(std::string_view bytes) override;
    void end() override;
    void credit(std::uint32_t bytes) override;
    void detach() override;
    void pump() override;

    /// The output bytes that it has sent or left out.
    std::uint64_t cursor() const noexcept { return cursor_; }
    /// Input that the program has not taken yet.
    std::string& input() noexcept { return input_; }
    bool inputEnded() const noexcept { return input_ended_ && input_.empty(); }
    void reopenInput() noexcept { input_ended_ = false; }
    /// Lets the client send more input.
    void grant(std::size_t bytes) { connection_.grant(id_, static_cast<std::uint32_t>(bytes)); }
    void flush() { connection_.flush(); }
    /// Ends it with an error.
    void fail(std::string_view code, std::string_view message);

private:
    /// Sends as much as the credit and the connection take.
    void send();
    /// Tells the client where a gap of the output ends, and how much before it was stderr's.
    void tellGap(std::uint64_t end);
    /// Tells the client, once, if the output that waits for its credit is the last.
    void tellEnd();

    Connection& connection_;
    std::uint32_t id_;
    StreamOwner* owner_;
    std::uint64_t cursor_;
    std::uint64_t results_cursor_;
    std::uint64_t credit_ = kInitialCredit;
    std::string input_;  ///< at most kInitialCredit: the client's window
    bool input_ended_ = false;
    bool end_told_ = false;
};

}  // namespace hearth::agent
