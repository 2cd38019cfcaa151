#include "pool/agent/client/ResultFeed.h"

#include <algorithm>

#include "pool/agent/connection/AgentConnection.h"
#include "pool/agent/protocol/Frame.h"

namespace hearth::agent {
namespace {

constexpr std::size_t kLengthSize = 4;
constexpr std::uint64_t kMostBytes = kMaxResultBytes + kLengthSize * kMaxResults;

}  // namespace

void ResultFeed::take(std::uint64_t offset, std::string_view bytes, const Each& each) {
    if (offset != next_) throw ProtocolError("results that do not follow each other");
    if (next_ > kMostBytes || bytes.size() > kMostBytes - next_) {
        throw ProtocolError("more results than an execution may show");
    }
    next_ += bytes.size();
    while (!bytes.empty()) {
        std::size_t wanted = kLengthSize;
        if (held_.size() >= kLengthSize) {
            wanted += getU32(reinterpret_cast<const unsigned char*>(held_.data()));
        }
        const std::size_t piece = std::min(wanted - held_.size(), bytes.size());
        held_.append(bytes.substr(0, piece));
        bytes.remove_prefix(piece);
        if (held_.size() < wanted) return;
        if (wanted == kLengthSize) {
            const std::size_t length = getU32(reinterpret_cast<const unsigned char*>(held_.data()));
            if (length > kMaxResult) throw ProtocolError("a result of no such size");
            if (++count_ > kMaxResults) throw ProtocolError("too many results");
            if (length > 0) continue;
        }
        each(std::string_view(held_).substr(kLengthSize));
        held_.clear();
    }
}

}  // namespace hearth::agent
