#pragma once

#include <string>
#include <string_view>

namespace hearth::cli {

/// The way out of a shell that no longer answers, as ssh has it: Enter, then `~.`. Two tildes send
/// one; a tilde elsewhere is nothing special. A value type, not thread-safe.
class EscapeKeys {
public:
    /// The part of these keys that goes to the shell. Keys after the escape sequence do not.
    std::string pass(std::string_view keys);
    /// Whether the way out was typed.
    bool left() const { return state_ == State::Left; }

private:
    enum class State { LineStart, Tilde, Within, Left };
    State state_ = State::LineStart;
};

}  // namespace hearth::cli
