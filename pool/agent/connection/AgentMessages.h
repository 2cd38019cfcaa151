#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/Json.h"
#include "pool/agent/connection/AgentTypes.h"
#include "pool/agent/connection/ClockShift.h"
#include "pool/agent/connection/FileTypes.h"

/// The JSON of PROTOCOL.md. Requests are written for an agent; answers are read as from an enemy:
/// every field is checked for type and range, and anything that does not fit is a ProtocolError
/// (AgentConnection.h).
namespace hearth::agent {

std::string encodeControlHello(std::uint64_t epoch);
std::string encodeDataHello(std::uint64_t epoch, const std::string& claim_id);
std::string encodeBind(const BindRequest& request, const ClockShift& clocks = {});
std::string encodeDeadlines(std::uint64_t epoch, std::optional<TimePoint> expires_at,
                            std::optional<std::chrono::milliseconds> idle_timeout);
/// Throws Error(InvalidArgument) unless there is exactly one thing to run.
std::string encodeExec(const ExecRequest& request);

/// Parses an object within the limits of the protocol.
Json parseObject(std::string_view payload);
AgentError decodeError(std::string_view payload);
Hello decodeHello(const Json& json);
/// Checks only that the agent speaks this version: nothing else of a data connection is believed.
void checkHello(const Json& json);
BindReply decodeBind(const Json& json, const BindRequest& request);
Deadlines decodeDeadlines(const Json& json);
TimePoint decodeTouch(const Json& json);

std::string encodeContext(const ContextRequest& request);
/// True if the agent had the context already.
bool decodeContext(const Json& json, const ContextRequest& request);
std::string encodePrewarm(const PrewarmRequest& request);
/// Accepts only languages that were asked for.
PrewarmReply decodePrewarm(const Json& json, const PrewarmRequest& request);

/// `id` is the execution that was asked for.
ExecStart decodeStarted(const Json& json, const std::string& id);
/// Decodes the value of `{gap}`.
OutputGap decodeGap(const Json& json);
ExecResult decodeResult(const Json& json, const std::string& id);

/// Decodes `{stat}`.
FileStat decodeStat(const Json& json);
/// Decodes `{items, next?}`, at most `limit` items.
FileList decodeList(const Json& json, std::size_t limit);
/// Decodes `{items, more?}`, at most `limit` items.
FileChanges decodeChanges(const Json& json, std::size_t limit);
std::uint64_t decodeBytes(const Json& json);
ArchiveCount decodeArchiveCount(const Json& json);
AgentUsage decodeUsage(const Json& json);

}  // namespace hearth::agent
