#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/mcp/protocol/JsonRpc.h"

namespace hearth::mcp {

/// The revisions with a handshake and a session, newest first. Session ids contain the index of a
/// revision: add only older revisions, at the end, and never reorder.
constexpr std::array<std::string_view, 5> kLegacyVersions = {
    "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05", "2024-10-07"};
/// The first revision without handshake and session.
constexpr std::string_view kFirstModern = "2026-07-28";
/// The revisions without handshake and session, newest first; server/discover lists them.
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

/// A bridge sends its own id in this header in calls of revisions without sessions, so that a tool
/// keeps data for "the caller" separately for each bridge.
inline constexpr const char* kInstanceHeader = "Hearth-Instance";

/// Returns the severity of a log level, 0 for "debug" to 7 for "emergency"; nullopt if unknown.
std::optional<int> logSeverity(std::string_view level);
bool isLegacyVersion(std::string_view version);
bool isModernVersion(std::string_view version);
/// Returns the version that `initialize` answers: the requested one if legacy, else the newest.
std::string_view negotiate(std::string_view requested);

/// The treatment of one POST body (or one line of stdio).
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

/// The single place that decides the era: by the body's envelope. MCP-Protocol-Version (nullopt on
/// stdio and if absent) is cross-checked, and decides for a notification without an envelope.
Classified classify(const Json& body, const std::optional<std::string>& version_header);

}  // namespace hearth::mcp
