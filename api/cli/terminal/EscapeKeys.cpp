#include "api/cli/terminal/EscapeKeys.h"

namespace hearth::cli {

std::string EscapeKeys::pass(std::string_view keys) {
    std::string out;
    for (const char key : keys) {
        if (state_ == State::Left) break;
        if (state_ == State::LineStart && key == '~') {
            state_ = State::Tilde;
            continue;
        }
        if (state_ == State::Tilde && key == '.') {
            state_ = State::Left;
            break;
        }
        if (state_ == State::Tilde && key != '~') out += '~';
        out += key;
        state_ = key == '\r' || key == '\n' ? State::LineStart : State::Within;
    }
    return out;
}

}  // namespace hearth::cli
