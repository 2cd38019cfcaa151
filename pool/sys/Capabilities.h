#pragma once

#include <span>

/// Root's rights, one by one. Every call affects only the calling thread: make it while the process
/// has one thread. Throws std::system_error.
namespace hearth::sys {

/// Limits every program that this process starts to `kept`, whatever its user or file. Without
/// CAP_SETPCAP this is not possible and not needed: with no new privileges, programs gain none.
void boundCapabilities(std::span<const int> kept);
/// Reduces the process's own to those of `kept` that it has, and passes none on by inheritance.
void holdCapabilities(std::span<const int> kept);

}  // namespace hearth::sys
