#pragma once

#include <string>
#include <string_view>

namespace hearth::cli {

/// The way out of a shell that no longer answers, as ssh has it: Enter, then `~.`. Two tildes send
/// one; a tilde elsewhere is nothing special. A value type, not thread-safe.
class EscapeKeys {
public:
    /// What of these keys goes to the shell. Nothing does behind the way out.
    std::string pass(std::string_view keys);
    /// Whether the way out was typed.
    bool left() const { return state_ == State::Left; }

private:
    enum class State { LineStart, Tilde, Within, Left };
    State state_ = State::LineStart;
};

}  // namespace hearth::cli
