#pragma once

#include <string>

namespace hearth::agent {

/// The programs that a server without a shared file system runs in the sandbox beside the agent, as
/// uid 0 without a capability: the tenant can neither signal nor read them, nor use the sockets
/// that they make. Both return an exit status and say on standard output, with kRelayReady, that
/// they have begun; failures go to standard error.

/// Makes the agent's listening socket in `folder`, which nobody else can write to, and hands it to
/// an agent that was started with `--receive FOLDER/socket`. Returns once that agent serves.
int openFor(const std::string& folder);

/// Connects to the agent in `folder` and carries bytes between it and standard input and output,
/// until either side ends.
int relay(const std::string& folder);

}  // namespace hearth::agent
