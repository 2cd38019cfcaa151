#pragma once

#include <string>

#include "pool/agent/program/core/Settings.h"

namespace hearth::agent {

/// The report on a program that SIGBUS has ended, of the form of a driver's: a page of a file that
/// it had mapped could not be made. It names the file systems that are full at this moment.
std::string busErrorReport(const Settings& settings);

}  // namespace hearth::agent
