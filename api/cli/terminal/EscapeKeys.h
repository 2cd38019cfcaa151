#pragma once

#include <string>
#include <string_view>

namespace hearth::cli {

/// The way out of a shell that no longer answers, as in ssh: Enter, then `~.`. Two tildes send one;
/// a tilde elsewhere is nothing special. A value type, not thread-safe.
class EscapeKeys {
public:
    /// Returns the part of these keys that goes to the shell: not those after the escape sequence.
    std::string pass(std::string_view keys);
    /// True if the escape sequence was typed.
    bool left() const { return state_ == State::Left; }

private:
    enum class State { LineStart, Tilde, Within, Left };
    State state_ = State::LineStart;
};

}  // namespace hearth::cli
