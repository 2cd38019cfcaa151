#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace hearth::pool::docker {

/// Decodes the Engine's raw stream of an exec without a terminal: frames of an eight-byte header
/// (which output, length) and a payload. Payloads are passed on as they arrive, so a false length
/// in a header costs no memory. Not thread-safe.
class RawStream {
public:
    /// Appends the standard output in `bytes` to `out`. False if they are no such stream, and from
    /// then on.
    bool feed(std::string_view bytes, std::string& out);
    /// The beginning of standard error or, if this is no such stream, of the received bytes.
    const std::string& complaint() const noexcept { return complaint_; }

private:
    void complain(std::string_view text);

    std::array<unsigned char, 8> header_{};
    std::size_t have_ = 0;    ///< received bytes of the header
    std::uint32_t left_ = 0;  ///< bytes left of the payload
    bool out_ = false;        ///< the payload is standard output
    bool broken_ = false;
    std::string complaint_;
};

}  // namespace hearth::pool::docker
