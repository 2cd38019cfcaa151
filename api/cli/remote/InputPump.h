#pragma once

#include <string>
#include <thread>

#include "api/cli/remote/Remote.h"
#include "base/Fd.h"

namespace hearth::cli {

/// Sends standard input to an execution as it comes, over its own connection, and closes the
/// execution's input at the end. Stops quietly when the execution takes no more input.
class InputPump {
public:
    explicit InputPump(const Remote& remote);
    ~InputPump();
    InputPump(const InputPump&) = delete;
    InputPump& operator=(const InputPump&) = delete;

    /// The first call starts it; later ones do nothing. Only from the constructing thread.
    void start(const std::string& execution);

private:
    void pump(const std::string& target);

    Remote remote_;
    Fd wake_;
    std::jthread thread_;
};

}  // namespace hearth::cli
