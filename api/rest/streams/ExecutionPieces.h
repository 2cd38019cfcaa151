#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "controller/contract/ChannelText.h"
#include "controller/contract/Executions.h"

namespace hearth::rest {

/// An answer with this much output and results is made and sent in pieces.
inline constexpr std::uint64_t kLongOutput = 128U << 10U;

/// The JSON of an execution, byte for byte as dumpJson(executionJson()), made piece by piece, so
/// that only one piece of a large output is in memory. Text is repaired and escaped on the way,
/// even if a piece ends inside a character.
///
/// A running execution is shown up to the moment of `view`; output dropped before it was read is
/// counted in `droppedBytes`. Not thread-safe; no callbacks.
class ExecutionPieces {
public:
    /// `view` is a view of `execution` that withholds output and results.
    ExecutionPieces(std::shared_ptr<controller::Execution> execution,
                    controller::ExecutionView view, std::string trace_id, std::string origin,
                    std::size_t read_size = kReadSize);

    /// Appends the next piece, usually some ten KiB and perhaps nothing. False after the last
    /// piece.
    bool next(std::string& out);

    static constexpr std::size_t kReadSize = 8U << 10U;

private:
    enum class Stage { Head, Stdout, Stderr, Results, Done };

    std::string document() const;
    void tellOutput(std::string& out);
    void tellText(std::string& out, std::string_view bytes, bool last);
    void afterOutput(std::string& out);
    void tellResults(std::string& out);

    std::shared_ptr<controller::Execution> execution_;
    controller::ExecutionView view_;
    const std::string trace_id_;
    const std::string origin_;
    const std::size_t read_size_;
    Stage stage_ = Stage::Head;
    std::uint64_t offset_ = 0;  ///< the offset after the last byte read, over both channels
    std::uint64_t told_ = 0;    ///< bytes of output written
    controller::ChannelText text_{1};
    std::string held_;         ///< the beginning of a character
    std::size_t results_ = 0;  ///< results written, or begun
    controller::ResultPtr result_;
    std::size_t result_at_ = 0;  ///< bytes of it written so far
};

}  // namespace hearth::rest
