#include "pool/runtime/docker/remote/RawStream.h"

#include <algorithm>

namespace hearth::pool::docker {
namespace {

constexpr std::size_t kMaxComplaint = 500;
constexpr unsigned char kOut = 1;
constexpr unsigned char kErr = 2;
constexpr unsigned char kSystemErr = 3;  ///< messages of the Engine itself

}  // namespace

void RawStream::complain(std::string_view text) {
    complaint_ += text.substr(0, kMaxComplaint - std::min(kMaxComplaint, complaint_.size()));
}

bool RawStream::feed(std::string_view bytes, std::string& out) {
    while (!bytes.empty() && !broken_) {
        if (left_ > 0) {
            const std::string_view piece = bytes.substr(0, left_);
            if (out_) {
                out += piece;
            } else {
                complain(piece);
            }
            left_ -= static_cast<std::uint32_t>(piece.size());
            bytes.remove_prefix(piece.size());
            continue;
        }
        header_.at(have_++) = static_cast<unsigned char>(bytes.front());
        bytes.remove_prefix(1);
        if (have_ < header_.size()) continue;
        have_ = 0;
        const unsigned char kind = header_[0];
        if (kind < kOut || kind > kSystemErr || header_[1] != 0 || header_[2] != 0 ||
            header_[3] != 0) {
            broken_ = true;
            complain({reinterpret_cast<const char*>(header_.data()), header_.size()});
            break;
        }
        static_assert(kErr == kOut + 1 && kSystemErr == kErr + 1);
        out_ = kind == kOut;
        left_ = std::uint32_t{header_[4]} << 24U | std::uint32_t{header_[5]} << 16U |
                std::uint32_t{header_[6]} << 8U | std::uint32_t{header_[7]};
    }
    if (broken_) complain(bytes);
    return !broken_;
}

}  // namespace hearth::pool::docker
