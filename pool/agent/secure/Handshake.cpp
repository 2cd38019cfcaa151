#include "pool/agent/secure/Handshake.h"

#include <algorithm>
#include <cstring>

namespace hearth::agent::secure {
namespace {

using Key = std::array<unsigned char, 32>;

// The last byte is the version of this protocol.
constexpr std::string_view kAgentMagic{"hrthagt\1", 8};
constexpr std::string_view kServerMagic{"hrthsrv\1", 8};
/// The domains: a hash or signature made for one use can never stand for another.
constexpr std::string_view kDigestDomain = "hearth agent connection: digest 1";
constexpr std::string_view kProofDomain = "hearth agent connection: server 1";
constexpr std::string_view kKeysDomain = "hearth agent connection: keys 1";

const unsigned char* bytesOf(const char* text) noexcept {
    return reinterpret_cast<const unsigned char*>(text);
}

template <std::size_t N>
void append(std::string& out, const std::array<unsigned char, N>& bytes) {
    out.append(reinterpret_cast<const char*>(bytes.data()), N);
}

template <std::size_t N>
std::array<unsigned char, N> cut(std::string_view& from) noexcept {
    std::array<unsigned char, N> bytes;
    std::memcpy(bytes.data(), from.data(), N);
    from.remove_prefix(N);
    return bytes;
}

/// Moves bytes from the front of `wire` until `whole` has `size`; false while it has fewer. A byte
/// that differs from `magic` sets `wrong`.
bool gather(std::string& whole, std::size_t size, std::string_view magic, std::string_view& wire,
            bool& wrong) {
    const std::size_t more = std::min(wire.size(), size - whole.size());
    whole.append(wire.substr(0, more));
    wire.remove_prefix(more);
    const std::size_t seen = std::min(whole.size(), magic.size());
    wrong = std::string_view(whole).substr(0, seen) != magic.substr(0, seen);
    return !wrong && whole.size() == size;
}

/// A BLAKE2b state that is wiped at its end.
class Hash {
public:
    Hash(std::string_view domain, std::size_t size) noexcept : size_(size) {
        crypto_generichash_init(&state_, nullptr, 0, size);
        // With its NUL, so that no domain is the beginning of another.
        add(bytesOf(domain.data()), domain.size());
        add(bytesOf("\0"), 1);
    }
    Hash(const Hash&) = delete;
    Hash& operator=(const Hash&) = delete;
    ~Hash() { sodium_memzero(&state_, sizeof(state_)); }

    void add(const unsigned char* bytes, std::size_t size) noexcept {
        crypto_generichash_update(&state_, bytes, size);
    }
    void finish(unsigned char* out) noexcept { crypto_generichash_final(&state_, out, size_); }

private:
    crypto_generichash_state state_;
    std::size_t size_;
};

/// Hashes both messages and the keys that both sides know. Every part has a fixed length, also the
/// greeting and the answer.
TranscriptHash digestOf(std::string_view greeting, std::string_view answer,
                        const ServerPublicKey& server, const AgentPublicKey& agent) noexcept {
    Hash hash(kDigestDomain, sizeof(TranscriptHash));
    hash.add(server.bytes.data(), server.bytes.size());
    hash.add(agent.bytes.data(), agent.bytes.size());
    hash.add(bytesOf(greeting.data()), greeting.size());
    hash.add(bytesOf(answer.data()), answer.size());
    TranscriptHash digest;
    hash.finish(digest.data());
    return digest;
}

std::string signedBytes(const TranscriptHash& digest) {
    std::string text(kProofDomain);
    text.push_back('\0');
    append(text, digest);
    return text;
}

std::string greetingOf(const Key& fresh, const AgentPublicKey& identity, std::string_view uid) {
    std::array<unsigned char, kNonceSize> nonce;
    randombytes_buf(nonce.data(), nonce.size());
    std::string text(kAgentMagic);
    text.reserve(kGreetingSize);
    append(text, fresh);
    append(text, nonce);
    append(text, identity.bytes);
    text.append(uid.substr(0, kMaxPodUid));
    text.resize(kGreetingSize, '\0');
    return text;
}

Key publicOf(const FreshKey& secret) noexcept {
    Key key;
    crypto_scalarmult_base(key.data(), secret.data());
    return key;
}

/// The key of each direction.
struct Keys {
    StreamKey from_agent;
    StreamKey from_server;
};

/// Derives the keys from both shared secrets. False if one of the peer's keys is worthless: then
/// the secret would be known to all.
bool derive(const FreshKey& mine, const Key& first, const FreshKey& also, const Key& second,
            const TranscriptHash& digest, Keys& keys) noexcept {
    SecretBytes<crypto_scalarmult_BYTES> fresh;
    SecretBytes<crypto_scalarmult_BYTES> lasting;
    if (crypto_scalarmult(fresh.data(), mine.data(), first.data()) != 0 ||
        crypto_scalarmult(lasting.data(), also.data(), second.data()) != 0) {
        return false;
    }
    SecretBytes<2 * StreamKey::kSize> both;
    Hash hash(kKeysDomain, both.kSize);
    hash.add(fresh.data(), fresh.kSize);
    hash.add(lasting.data(), lasting.kSize);
    hash.add(digest.data(), digest.size());
    hash.finish(both.data());
    std::memcpy(keys.from_agent.data(), both.data(), StreamKey::kSize);
    std::memcpy(keys.from_server.data(), both.data() + StreamKey::kSize, StreamKey::kSize);
    return true;
}

}  // namespace

AgentHandshake::AgentHandshake(const ServerPublicKey& server, const AgentIdentity& identity,
                               std::string_view pod_uid)
    : server_(server), identity_(identity) {
    randombytes_buf(fresh_.data(), fresh_.kSize);
    greeting_ = greetingOf(publicOf(fresh_), identity_.publicKey(), pod_uid);
}

Progress AgentHandshake::receive(std::string_view& wire, std::string& out) {
    bool wrong = false;
    if (!gather(answer_, kAnswerSize, kServerMagic, wire, wrong)) {
        return wrong ? Progress::Refused : Progress::Waiting;
    }
    return judge(out);
}

Progress AgentHandshake::judge(std::string& out) {
    const std::string_view whole = answer_;
    std::string_view rest = whole.substr(kServerMagic.size());
    const auto purpose = static_cast<Purpose>(rest.front());
    rest.remove_prefix(1);
    if (purpose != Purpose::Control && purpose != Purpose::Data) return Progress::Refused;
    const Key theirs = cut<32>(rest);
    const TranscriptHash digest = digestOf(greeting_, whole.substr(0, whole.size() - rest.size()),
                                           server_, identity_.publicKey());
    const std::string text = signedBytes(digest);
    Keys keys;
    if (crypto_sign_ed25519_verify_detached(bytesOf(rest.data()), bytesOf(text.data()), text.size(),
                                            server_.bytes.data()) != 0 ||
        !derive(fresh_, theirs, identity_.secret(), theirs, digest, keys)) {
        return Progress::Refused;
    }
    fresh_ = FreshKey();
    session_.purpose = purpose;
    session_.opener = std::make_unique<Opener>(std::move(keys.from_server));
    session_.sealer = std::make_unique<Sealer>(keys.from_agent);
    session_.sealer->seal({reinterpret_cast<const char*>(digest.data()), digest.size()}, out);
    return Progress::Done;
}

ServerHandshake::ServerHandshake(const ServerKey& key, const AgentPublicKey& agent,
                                 std::string_view pod_uid, Purpose purpose)
    : key_(key), agent_(agent), pod_uid_(pod_uid) {
    session_.purpose = purpose;
}

Progress ServerHandshake::refuse(Refusal why) noexcept {
    refusal_ = why;
    return Progress::Refused;
}

Progress ServerHandshake::receive(std::string_view& wire, std::string& out) {
    if (refusal_ != Refusal::None) return Progress::Refused;
    if (!answered_) {
        bool wrong = false;
        if (!gather(greeting_, kGreetingSize, kAgentMagic, wire, wrong)) {
            return wrong ? refuse(Refusal::NoAgent) : Progress::Waiting;
        }
        if (answer(out) == Progress::Refused) return Progress::Refused;
    }
    bool wrong = false;
    if (!gather(proof_, kProofSize, {}, wire, wrong)) return Progress::Waiting;
    return check();
}

Progress ServerHandshake::answer(std::string& out) {
    std::string_view rest = std::string_view(greeting_).substr(kAgentMagic.size());
    const Key theirs = cut<32>(rest);
    rest.remove_prefix(kNonceSize);
    const Key identity = cut<32>(rest);
    std::string uid = pod_uid_;
    uid.resize(kMaxPodUid, '\0');
    if (pod_uid_.empty() || pod_uid_.size() > kMaxPodUid || rest != uid) {
        return refuse(Refusal::OtherPod);
    }
    if (identity != agent_.bytes) return refuse(Refusal::OtherIdentity);

    FreshKey fresh;
    randombytes_buf(fresh.data(), fresh.kSize);
    std::string text(kServerMagic);
    text.push_back(static_cast<char>(session_.purpose));
    append(text, publicOf(fresh));
    digest_ = digestOf(greeting_, text, key_.publicKey(), agent_);
    Keys keys;
    if (!derive(fresh, theirs, fresh, agent_.bytes, digest_, keys)) {
        return refuse(Refusal::NoProof);
    }
    const std::string proof = signedBytes(digest_);
    std::array<unsigned char, crypto_sign_BYTES> signature;
    crypto_sign_ed25519_detached(signature.data(), nullptr, bytesOf(proof.data()), proof.size(),
                                 key_.secret());
    append(text, signature);
    session_.sealer = std::make_unique<Sealer>(keys.from_server);
    from_agent_ = std::move(keys.from_agent);
    out.append(text);
    answered_ = true;
    return Progress::Waiting;
}

Progress ServerHandshake::check() {
    session_.opener = std::make_unique<Opener>(std::move(from_agent_));
    std::string digest;
    if (session_.opener->open(proof_, digest) != Opener::State::Open ||
        digest.size() != digest_.size() ||
        sodium_memcmp(digest.data(), digest_.data(), digest_.size()) != 0) {
        return refuse(Refusal::NoProof);
    }
    return Progress::Done;
}

}  // namespace hearth::agent::secure
