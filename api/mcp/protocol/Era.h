#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/mcp/protocol/JsonRpc.h"

namespace hearth::mcp {

/// The revisions with a handshake and a session, newest first. Their places are part of session
/// ids: add at the end only what is older, never reorder.
constexpr std::array<std::string_view, 5> kLegacyVersions = {
    "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05", "2024-10-07"};
/// The first revision without them.
constexpr std::string_view kFirstModern = "2026-07-28";
/// The revisions without them, newest first: what server/discover names.
constexpr std::array<std::string_view, 1> kModernVersions = {"2026-07-28"};
/// The first revision whose answers may be resumed with Last-Event-ID.
constexpr std::string_view kFirstResumable = "2025-03-26";
/// The first revision whose streams begin with an event without data, which gives an id early.
constexpr std::string_view kFirstPriming = "2025-11-25";
/// The one revision that has JSON-RPC batches.
constexpr std::string_view kBatchVersion = "2025-03-26";

/// Keys of a modern request's `params._meta`.
namespace envelope {
constexpr const char* kVersion = "io.modelcontextprotocol/protocolVersion";
constexpr const char* kCapabilities = "io.modelcontextprotocol/clientCapabilities";
constexpr const char* kClient = "io.modelcontextprotocol/clientInfo";
constexpr const char* kLogLevel = "io.modelcontextprotocol/logLevel";
constexpr const char* kServer = "io.modelcontextprotocol/serverInfo";
constexpr const char* kSubscription = "io.modelcontextprotocol/subscriptionId";
}  // namespace envelope

/// By this header a bridge names itself in calls of revisions without sessions, so that what a tool
/// keeps for "the caller" is the bridge's own.
inline constexpr const char* kInstanceHeader = "Hearth-Instance";

/// How grave a log level is, 0 for "debug" to 7 for "emergency"; nullopt for another word.
std::optional<int> logSeverity(std::string_view level);
bool isLegacyVersion(std::string_view version);
bool isModernVersion(std::string_view version);
/// The version that `initialize` answers: the requested one if it is a legacy one, else the newest.
std::string_view negotiate(std::string_view requested);

/// How one POST body (or one line of stdio) is to be treated.
struct Classified {
    enum class Kind {
        Legacy,   ///< `messages`: handshake and session
        Modern,   ///< `messages.front()`: a request with a valid envelope, version `version`
        Dropped,  ///< a modern notification: accepted, nothing to do
        Refused,  ///< `error`, with HTTP `status` and `id`
    };
    Kind kind = Kind::Legacy;
    std::vector<Message> messages;
    bool batch = false;
    std::string version;
    int status = 200;
    Json id;
    RpcError error;
};

/// Decides the era of one request from its body; the MCP-Protocol-Version header (nullopt on stdio
/// and where absent) is only cross-checked. The single place that tells the eras apart.
Classified classify(const Json& body, const std::optional<std::string>& version_header);

}  // namespace hearth::mcp
