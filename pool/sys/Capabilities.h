#pragma once

#include <span>

/// What root may do, piece by piece. Every call is for the calling thread: make it while the
/// process has one. Throws std::system_error.
namespace hearth::sys {

/// No program that this process starts gets more than `kept`, whatever its user or file. Where the
/// process may not say so (no CAP_SETPCAP), it stays as it is: with no new privileges nothing comes
/// of it.
void boundCapabilities(std::span<const int> kept);
/// The process itself keeps of `kept` what it has, and hands none on by inheritance.
void holdCapabilities(std::span<const int> kept);

}  // namespace hearth::sys
