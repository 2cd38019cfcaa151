#include "controller/egress/mirror/store/Decompressor.h"

#include <lzma.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <new>
#include <string>

#include "controller/egress/policy/Refused.h"

namespace hearth::broker {
namespace {

constexpr std::size_t kRoom = 64U << 10U;
constexpr std::uint64_t kMostMemory = 96ULL << 20U;

[[noreturn]] void broken() {
    throw Refused(kBadGateway, "bad_index", "an index file of the archive cannot be unpacked");
}

/// Passes unpacked bytes on, up to a limit.
class Output {
public:
    Output(std::uint64_t most, Decompressor::Sink sink) : left_(most), sink_(std::move(sink)) {}
    void pass(std::string_view bytes) {
        if (bytes.size() > left_) {
            throw Refused(kBadGateway, "too_large", "an index file of the archive is too large");
        }
        left_ -= bytes.size();
        sink_(bytes);
    }

private:
    std::uint64_t left_;
    Decompressor::Sink sink_;
};

class PlainDecoder final : public Decompressor {
public:
    explicit PlainDecoder(Output output) : output_(std::move(output)) {}
    void add(std::string_view packed) override { output_.pass(packed); }
    void finish() override {}

private:
    Output output_;
};

/// One or more members in sequence (RFC 1952).
class GzipDecoder final : public Decompressor {
public:
    explicit GzipDecoder(Output output) : output_(std::move(output)) {
        constexpr int kGzipOnly = 16;
        if (::inflateInit2(&stream_, MAX_WBITS + kGzipOnly) != Z_OK) throw std::bad_alloc();
    }
    GzipDecoder(const GzipDecoder&) = delete;
    GzipDecoder& operator=(const GzipDecoder&) = delete;
    ~GzipDecoder() override { ::inflateEnd(&stream_); }

    void add(std::string_view packed) override {
        while (!packed.empty()) {
            const std::size_t now = std::min(packed.size(), kRoom);
            one(packed.substr(0, now));
            packed.remove_prefix(now);
        }
    }
    void finish() override {
        if (!at_end_) broken();
    }

private:
    void one(std::string_view packed) {
        // zlib does not write to its input; its interface is older than const.
        stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
        stream_.avail_in = static_cast<uInt>(packed.size());
        bool full = false;
        while (stream_.avail_in > 0 || full) {
            if (at_end_ && ::inflateReset(&stream_) != Z_OK) broken();
            at_end_ = false;
            stream_.next_out = reinterpret_cast<Bytef*>(room_.data());
            stream_.avail_out = static_cast<uInt>(room_.size());
            const int result = ::inflate(&stream_, Z_NO_FLUSH);
            if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR) broken();
            output_.pass({room_.data(), room_.size() - stream_.avail_out});
            at_end_ = result == Z_STREAM_END;
            full = !at_end_ && stream_.avail_out == 0;
        }
    }

    Output output_;
    z_stream stream_{};
    std::array<char, kRoom> room_{};
    bool at_end_ = false;
};

class XzDecoder final : public Decompressor {
public:
    explicit XzDecoder(Output output) : output_(std::move(output)) {
        if (::lzma_stream_decoder(&stream_, kMostMemory, LZMA_CONCATENATED) != LZMA_OK) {
            throw std::bad_alloc();
        }
    }
    XzDecoder(const XzDecoder&) = delete;
    XzDecoder& operator=(const XzDecoder&) = delete;
    ~XzDecoder() override { ::lzma_end(&stream_); }

    void add(std::string_view packed) override { run(packed, LZMA_RUN); }
    void finish() override {
        if (run({}, LZMA_FINISH) != LZMA_STREAM_END) broken();
    }

private:
    lzma_ret run(std::string_view packed, lzma_action action) {
        stream_.next_in = reinterpret_cast<const std::uint8_t*>(packed.data());
        stream_.avail_in = packed.size();
        while (true) {
            stream_.next_out = reinterpret_cast<std::uint8_t*>(room_.data());
            stream_.avail_out = room_.size();
            const lzma_ret result = ::lzma_code(&stream_, action);
            if (result == LZMA_MEMLIMIT_ERROR) {
                throw Refused(kBadGateway, "too_large",
                              "an index file of the archive needs too much memory");
            }
            if (result != LZMA_OK && result != LZMA_STREAM_END && result != LZMA_BUF_ERROR) {
                broken();
            }
            output_.pass({room_.data(), room_.size() - stream_.avail_out});
            const bool drained = stream_.avail_in == 0 && stream_.avail_out > 0;
            if (result != LZMA_OK || (drained && action == LZMA_RUN)) return result;
        }
    }

    Output output_;
    lzma_stream stream_ = LZMA_STREAM_INIT;
    std::array<char, kRoom> room_{};
};

}  // namespace

bool Decompressor::knows(std::string_view name) {
    return name.ends_with(".gz") || name.ends_with(".xz") ||
           name.substr(name.rfind('/') + 1).find('.') == std::string_view::npos;
}

std::unique_ptr<Decompressor> Decompressor::forName(std::string_view name, std::uint64_t most,
                                                    Sink sink) {
    Output output(most, std::move(sink));
    if (name.ends_with(".gz")) return std::make_unique<GzipDecoder>(std::move(output));
    if (name.ends_with(".xz")) return std::make_unique<XzDecoder>(std::move(output));
    return std::make_unique<PlainDecoder>(std::move(output));
}

}  // namespace hearth::broker
