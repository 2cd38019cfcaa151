#pragma once

#include <memory>

#include "api/mcp/protocol/CallContext.h"
#include "base/task/Task.h"
#include "controller/Services.h"

namespace hearth::mcp {

/// The fate of a call's execution if its caller cancels the call.
enum class OnCancel { Kills, LeavesRunning };

/// Waits for the end of an execution, at most until a time, or until its sandbox does not answer or
/// the server stops. The call reports it meanwhile. Throws the Error of a sandbox that refuses it.
Task<> untilEnd(const controller::Services& services, CallContext call,
                std::shared_ptr<controller::Execution> execution, OnCancel on_cancel,
                TimePoint until = TimePoint::max());

}  // namespace hearth::mcp
