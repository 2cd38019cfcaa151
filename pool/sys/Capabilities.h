#pragma once

#include <span>

/// Root's rights, piece by piece. Every call is for the calling thread: make it while the process
/// has one. Throws std::system_error.
namespace hearth::sys {

/// Limits every program that this process starts to `kept`, whatever its user or file. Without
/// CAP_SETPCAP this is not possible and not needed: with no new privileges, programs gain none.
void boundCapabilities(std::span<const int> kept);
/// The process itself keeps of `kept` what it has, and hands none on by inheritance.
void holdCapabilities(std::span<const int> kept);

}  // namespace hearth::sys
