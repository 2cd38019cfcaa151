#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace hearth::tar {

/// This room needs only libc and no exceptions, because the program inside a sandbox also uses it.

/// One member of a tar archive, as in its header: unchecked.
struct TarMember {
    enum class Type : std::uint8_t { File, Directory, Symlink, Hardlink };
    Type type = Type::File;
    std::string path;
    std::string target;  ///< of links
    std::uint64_t size = 0;
    unsigned mode = 0;
    std::int64_t modified = 0;  ///< Unix seconds
};

/// Receives a TarReader's findings, in order. False ends the reading; the sink knows the reason.
class TarSink {
public:
    virtual bool member(const TarMember& member) = 0;
    /// A piece of the last member's bytes.
    virtual bool content(std::string_view bytes) = 0;
    /// Called after all bytes of the last member.
    virtual bool memberEnd() = 0;

protected:
    ~TarSink() = default;
};

/// Reads a tar archive (ustar, pax, GNU long names) from pieces of any size, in constant memory.
/// Devices, FIFOs, sparse files and volumes are faults, and so is any malformed data.
class TarReader {
public:
    static constexpr std::size_t kBlock = 512;
    static constexpr std::size_t kMaxName = 4'096;
    /// The limit of a pax header; a larger one is a fault.
    static constexpr std::size_t kMaxPax = 32'768;

    explicit TarReader(TarSink& sink) : sink_(sink) {}

    /// False if the archive is faulty (fault() returns the reason) or the sink wants no more.
    bool feed(std::string_view bytes);
    /// Called at the end of the stream: true if the archive ended correctly.
    bool finish();
    /// The rest of a member's content with its padding: a caller may skip() it instead of feeding
    /// it.
    std::uint64_t ahead() const noexcept { return state_ == State::Content ? left_ + padding_ : 0; }
    bool skip();
    const std::string& fault() const noexcept { return fault_; }

private:
    enum class State : std::uint8_t { Header, Meta, Content, Padding, End };

    bool fail(const std::string& what);
    bool header();
    bool begin(char type, TarMember member);
    bool beginMeta(char type, std::uint64_t size);
    bool meta();
    bool paxRecord(std::string_view key, std::string_view value);
    bool contentDone();

    TarSink& sink_;
    State state_ = State::Header;
    std::array<char, kBlock> block_{};
    std::size_t filled_ = 0;
    std::uint64_t left_ = 0;     ///< of content, meta or padding
    std::uint64_t padding_ = 0;  ///< after left_
    std::uint64_t trailing_ = 0;
    char meta_type_ = 0;
    std::string meta_;
    // From extended headers, for the next member:
    std::string long_path_;
    std::string long_target_;
    bool has_size_ = false;
    std::uint64_t size_ = 0;
    bool has_time_ = false;
    std::int64_t time_ = 0;
    std::string fault_;
};

/// Returns a member's header blocks in GNU format, which allows long names and over 8 GiB.
std::string tarHeader(const TarMember& member, unsigned uid, unsigned gid);
/// Returns how many zero bytes fill the last block of a member with this size.
inline std::size_t tarPadding(std::uint64_t size) {
    return static_cast<std::size_t>((TarReader::kBlock - size % TarReader::kBlock) %
                                    TarReader::kBlock);
}
/// Returns a name for a message: UTF-8, shortened.
std::string shownName(std::string_view name);

}  // namespace hearth::tar
