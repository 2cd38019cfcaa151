#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "pool/agent/secure/Keys.h"
#include "pool/agent/secure/Records.h"

/// How server and agent meet over a network. Three messages of fixed length:
///
/// - agent: protocol and version, a fresh X25519 key, a nonce, its identity key, the Pod's UID;
/// - server: the kind of connection, a fresh X25519 key, an Ed25519 signature over both messages;
/// - agent: its first record, with the hash of the handshake.
///
/// The keys of the records come from both fresh keys, and from the server's fresh key with the
/// agent's identity. So they are known only to a server that has the private Ed25519 key and to
/// the one agent that has the identity, and not even to these once the connection has ended.
///
/// Protection of the agent. A tenant shares its network, so every peer is hostile. A peer learns
/// only the first message, all of it public, and that wrong bytes end the connection: at the first
/// wrong byte, without an answer. Only a whole answer of the right form costs a verification.
///
/// Protection of the server. A tenant cannot take the agent's port: the agent has it before any
/// tenant code runs, and as PID 1 takes every process of the container with it when it ends. That
/// alone is not enough. The kernel closes the port a moment before it kills the other processes,
/// and a cluster soon gives the address of a Pod that ended to another Pod, which may repeat the
/// UID. So the server believes only the identity key. The init container makes it (`hearth-agent
/// --make-identity`): the private half lies in a volume in memory until the agent has read and
/// removed it, before any tenant code runs; the public half is the init container's termination
/// message, so it reaches the server in the Pod's status, which only the kubelet writes. An agent
/// that starts again finds no key and ends; its Pod is not used again.
///
/// Remaining risks: control of the node, the API server or the server's key gives the sandbox;
/// a tenant can keep its own agent busy, and others out of its own sandbox.
namespace hearth::agent::secure {

inline constexpr std::size_t kMaxPodUid = 64;
inline constexpr std::size_t kNonceSize = 32;
inline constexpr std::size_t kGreetingSize = 8 + 32 + kNonceSize + 32 + kMaxPodUid;
inline constexpr std::size_t kAnswerSize = 8 + 1 + 32 + crypto_sign_BYTES;
inline constexpr std::size_t kProofSize = sizeof(StreamStart) + kRecordOverhead + 32;

/// The purpose of the connection; the signature covers it.
enum class Purpose : std::uint8_t { Control = 1, Data = 2 };

enum class Progress : std::uint8_t {
    Waiting,  ///< more bytes are needed
    Done,     ///< the peer is the expected one
    Refused,  ///< close without an answer
};

/// The result that both sides have afterwards.
struct Session {
    Purpose purpose = Purpose::Control;
    std::unique_ptr<Sealer> sealer;
    std::unique_ptr<Opener> opener;
};

using FreshKey = SecretBytes<crypto_scalarmult_SCALARBYTES>;
using TranscriptHash = std::array<unsigned char, 32>;

/// The agent's side of one connection; makes no I/O. Used by one thread.
class AgentHandshake {
public:
    /// The keys must outlive it. `pod_uid` has at most kMaxPodUid bytes, none of them NUL.
    AgentHandshake(const ServerPublicKey& server, const AgentIdentity& identity,
                   std::string_view pod_uid);
    AgentHandshake(const AgentHandshake&) = delete;
    AgentHandshake& operator=(const AgentHandshake&) = delete;

    /// The first message, which must be sent at once.
    const std::string& greeting() const noexcept { return greeting_; }
    /// Takes its own bytes from the front of `wire`, and leaves the bytes of the records. When
    /// Done, `out` has got the last message.
    Progress receive(std::string_view& wire, std::string& out);
    /// Call it once, after Done.
    Session take() noexcept { return std::move(session_); }

private:
    Progress judge(std::string& out);

    const ServerPublicKey& server_;
    const AgentIdentity& identity_;
    FreshKey fresh_;
    std::string greeting_;
    std::string answer_;
    Session session_;
};

/// The server's side of one connection; makes no I/O. Used by one thread.
class ServerHandshake {
public:
    /// The reason why a peer was refused; for people and for the server's next step.
    enum class Refusal : std::uint8_t {
        None,
        NoAgent,        ///< it speaks another protocol
        OtherPod,       ///< the agent of another Pod has the address
        OtherIdentity,  ///< the UID is right, but not the identity that the Pod began with
        NoProof,        ///< it did not have the keys that it named, or bytes were changed
    };

    /// `key` must outlive it. `agent` and `pod_uid` are those of the one expected agent.
    ServerHandshake(const ServerKey& key, const AgentPublicKey& agent, std::string_view pod_uid,
                    Purpose purpose);
    ServerHandshake(const ServerHandshake&) = delete;
    ServerHandshake& operator=(const ServerHandshake&) = delete;

    /// Same as AgentHandshake::receive(); `out` gets the answer in between.
    Progress receive(std::string_view& wire, std::string& out);
    Refusal refusal() const noexcept { return refusal_; }
    /// Call it once, after Done.
    Session take() noexcept { return std::move(session_); }

private:
    Progress refuse(Refusal why) noexcept;
    Progress answer(std::string& out);
    Progress check();

    const ServerKey& key_;
    const AgentPublicKey agent_;
    const std::string pod_uid_;
    std::string greeting_;
    std::string proof_;
    TranscriptHash digest_{};
    StreamKey from_agent_;
    Session session_;
    Refusal refusal_ = Refusal::None;
    bool answered_ = false;
};

}  // namespace hearth::agent::secure
