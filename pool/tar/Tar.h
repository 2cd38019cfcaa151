#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace hearth::tar {

/// This room needs nothing but libc and no exceptions: the program inside a sandbox has it, too.

/// One member of a tar archive, as its header tells it: nothing in it has been judged.
struct TarMember {
    enum class Type : std::uint8_t { File, Directory, Symlink, Hardlink };
    Type type = Type::File;
    std::string path;
    std::string target;  ///< of links
    std::uint64_t size = 0;
    unsigned mode = 0;
    std::int64_t modified = 0;  ///< Unix seconds
};

/// Hears what a TarReader finds, in order. False ends the reading; the sink knows why.
class TarSink {
public:
    virtual bool member(const TarMember& member) = 0;
    /// A piece of the last member's bytes.
    virtual bool content(std::string_view bytes) = 0;
    /// All bytes of the last member have come.
    virtual bool memberEnd() = 0;

protected:
    ~TarSink() = default;
};

/// Reads a tar archive (ustar, pax, GNU long names) from pieces of any size, in constant memory.
/// Devices, FIFOs, sparse files and volumes are faults, as is everything that is not well-formed.
class TarReader {
public:
    static constexpr std::size_t kBlock = 512;
    static constexpr std::size_t kMaxName = 4'096;
    /// Of a pax header; a larger one is a fault.
    static constexpr std::size_t kMaxPax = 32'768;

    explicit TarReader(TarSink& sink) : sink_(sink) {}

    /// False if the archive is faulty (fault() says why) or the sink has had enough.
    bool feed(std::string_view bytes);
    /// At the end of the stream: whether the archive ended where it should.
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
    std::uint64_t padding_ = 0;  ///< after it
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

/// The header blocks of a member in GNU format: long names and sizes over 8 GiB as they need it.
std::string tarHeader(const TarMember& member, unsigned uid, unsigned gid);
/// The zero bytes that fill the last block of so many.
inline std::size_t tarPadding(std::uint64_t size) {
    return static_cast<std::size_t>((TarReader::kBlock - size % TarReader::kBlock) %
                                    TarReader::kBlock);
}
/// A name as a message shows it: UTF-8, not long.
std::string shownName(std::string_view name);

}  // namespace hearth::tar
