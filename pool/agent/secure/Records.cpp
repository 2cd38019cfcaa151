#include "pool/agent/secure/Records.h"

#include <algorithm>
#include <cstring>

namespace hearth::agent::secure {
namespace {

constexpr std::size_t kLengthSize = 4;
constexpr std::size_t kLeast = crypto_secretstream_xchacha20poly1305_ABYTES;
constexpr std::size_t kMost = kMaxRecord + kLeast;

void putLength(unsigned char* out, std::size_t length) noexcept {
    for (unsigned i = 0; i < kLengthSize; ++i) {
        out[i] = static_cast<unsigned char>(length >> (8U * i));
    }
}

std::size_t lengthOf(const unsigned char* in) noexcept {
    std::size_t length = 0;
    for (unsigned i = 0; i < kLengthSize; ++i) length |= static_cast<std::size_t>(in[i]) << 8U * i;
    return length;
}

const unsigned char* octetsOf(std::string_view text) noexcept {
    return reinterpret_cast<const unsigned char*>(text.data());
}

}  // namespace

Sealer::Sealer(const StreamKey& key) noexcept {
    crypto_secretstream_xchacha20poly1305_init_push(&state_, start_.data(), key.data());
}

void Sealer::seal(std::string_view plain, std::string& wire) {
    while (!plain.empty()) {
        const std::string_view piece = plain.substr(0, kMaxRecord);
        plain.remove_prefix(piece.size());
        ++sealed_;
        const bool last_of_key = sealed_ % kRecordsPerKey == 0;
        put(piece,
            last_of_key ? crypto_secretstream_xchacha20poly1305_TAG_REKEY
                        : crypto_secretstream_xchacha20poly1305_TAG_MESSAGE,
            wire);
    }
}

void Sealer::finish(std::string& wire) {
    put({}, crypto_secretstream_xchacha20poly1305_TAG_FINAL, wire);
}

void Sealer::put(std::string_view plain, unsigned char tag, std::string& wire) {
    if (!started_) wire.append(reinterpret_cast<const char*>(start_.data()), start_.size());
    started_ = true;
    const std::size_t sealed = plain.size() + kLeast;
    const std::size_t at = wire.size();
    wire.resize(at + kLengthSize + sealed);
    auto* out = reinterpret_cast<unsigned char*>(wire.data()) + at;
    putLength(out, sealed);
    crypto_secretstream_xchacha20poly1305_push(&state_, out + kLengthSize, nullptr, octetsOf(plain),
                                               plain.size(), out, kLengthSize, tag);
}

/// Takes the start from the front of `wire`; false while it is not complete.
bool Opener::begin(std::string_view& wire) {
    StreamStart start;
    const std::size_t more = std::min(wire.size(), start.size() - partial_.size());
    partial_.append(wire.substr(0, more));
    wire.remove_prefix(more);
    if (partial_.size() < start.size()) return false;
    std::memcpy(start.data(), partial_.data(), start.size());
    partial_.clear();
    crypto_secretstream_xchacha20poly1305_init_pull(&state_, start.data(), key_.data());
    key_ = StreamKey();
    return true;
}

Opener::State Opener::open(std::string_view wire, std::string& plain) {
    if (!started_ && !(started_ = begin(wire))) return stage_;
    if (stage_ == State::Broken) return stage_;
    // Whole records are opened in place; only an incomplete rest is kept.
    if (partial_.empty()) wire.remove_prefix(take(wire, plain));
    while (stage_ != State::Broken && !wire.empty()) {
        const std::size_t want = partial_.size() < kLengthSize
                                     ? kLengthSize
                                     : kLengthSize + lengthOf(octetsOf(partial_));
        const std::size_t more = std::min(wire.size(), want - partial_.size());
        partial_.reserve(std::min(want, kLengthSize + kMost));
        partial_.append(wire.substr(0, more));
        wire.remove_prefix(more);
        if (take(partial_, plain) == 0) continue;
        std::string().swap(partial_);
        wire.remove_prefix(take(wire, plain));
    }
    return stage_;
}

/// Opens the whole records at the front of `wire`; returns the number of their bytes.
std::size_t Opener::take(std::string_view wire, std::string& plain) {
    std::size_t at = 0;
    while (stage_ != State::Broken && wire.size() - at >= kLengthSize) {
        const unsigned char* in = octetsOf(wire) + at;
        const std::size_t sealed = lengthOf(in);
        if (sealed < kLeast || sealed > kMost || stage_ == State::Ended) {
            stage_ = State::Broken;
            break;
        }
        if (wire.size() - at < kLengthSize + sealed) break;
        const std::size_t before = plain.size();
        plain.resize(before + sealed - kLeast);
        unsigned char tag = 0;
        if (crypto_secretstream_xchacha20poly1305_pull(
                &state_, reinterpret_cast<unsigned char*>(plain.data()) + before, nullptr, &tag,
                in + kLengthSize, sealed, in, kLengthSize) != 0) {
            plain.resize(before);
            stage_ = State::Broken;
            break;
        }
        ++opened_;
        if (tag == crypto_secretstream_xchacha20poly1305_TAG_FINAL) stage_ = State::Ended;
        at += kLengthSize + sealed;
    }
    if (stage_ == State::Ended && at < wire.size()) stage_ = State::Broken;
    return at;
}

}  // namespace hearth::agent::secure
