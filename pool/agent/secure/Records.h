#pragma once

#include <sodium.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "pool/agent/secure/Keys.h"

/// The content of a connection after its handshake: records, each sealed with ChaCha20-Poly1305 by
/// libsodium's secretstream. It numbers them, so a record that is changed, left out, repeated or
/// moved does not open. On the wire: the start of the stream (24 bytes, once), then for each record
/// its length (4 bytes, little endian, authenticated) and the sealed bytes.
namespace hearth::agent::secure {

/// The most plain bytes in one record.
inline constexpr std::size_t kMaxRecord = 16'384;
/// The bytes that a record adds to them.
inline constexpr std::size_t kRecordOverhead = 4 + crypto_secretstream_xchacha20poly1305_ABYTES;
/// A key seals this many records; both sides then derive the next one and forget it.
inline constexpr std::uint32_t kRecordsPerKey = 65'536;

using StreamKey = SecretBytes<crypto_secretstream_xchacha20poly1305_KEYBYTES>;
/// A start other than the sender's makes other keys, so it needs no protection of its own.
using StreamStart = std::array<unsigned char, crypto_secretstream_xchacha20poly1305_HEADERBYTES>;

/// The sending half of one direction. Used by one thread at a time; wiped at its end.
class Sealer {
public:
    explicit Sealer(const StreamKey& key) noexcept;
    Sealer(const Sealer&) = delete;
    Sealer& operator=(const Sealer&) = delete;
    ~Sealer() { sodium_memzero(&state_, sizeof(state_)); }

    /// Appends records with `plain` to `wire`; no record if `plain` is empty.
    void seal(std::string_view plain, std::string& wire);
    /// Appends the last record: it tells an end from a cut. Nothing may be sealed after it.
    void finish(std::string& wire);

private:
    void put(std::string_view plain, unsigned char tag, std::string& wire);

    crypto_secretstream_xchacha20poly1305_state state_{};
    StreamStart start_;
    bool started_ = false;
    std::uint32_t sealed_ = 0;
};

/// The receiving half of one direction. Used by one thread at a time; wiped at its end. Holds at
/// most one record that is incomplete.
class Opener {
public:
    enum class State : std::uint8_t {
        Open,
        Ended,   ///< the sender has finished, and nothing follows
        Broken,  ///< a record that the sender did not seal as the next one
    };

    explicit Opener(StreamKey key) noexcept : key_(std::move(key)) {}
    Opener(const Opener&) = delete;
    Opener& operator=(const Opener&) = delete;
    ~Opener() { sodium_memzero(&state_, sizeof(state_)); }

    /// Takes received bytes, however they were cut, and appends the plain bytes of the complete
    /// records. Once Broken nothing is taken any more.
    State open(std::string_view wire, std::string& plain);
    /// Returns the state. A connection that ends before Ended was cut.
    State state() const noexcept { return stage_; }
    /// Records opened so far.
    std::uint64_t opened() const noexcept { return opened_; }

private:
    bool begin(std::string_view& wire);
    std::size_t take(std::string_view wire, std::string& plain);

    StreamKey key_;  ///< until the start is known
    crypto_secretstream_xchacha20poly1305_state state_{};
    std::string partial_;
    bool started_ = false;
    std::uint64_t opened_ = 0;
    State stage_ = State::Open;
};

}  // namespace hearth::agent::secure
