#include "pool/tar/Tar.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "pool/tar/Utf8.h"

namespace hearth::tar {

namespace {

/// The bytes allowed after the archive's end: tar fills its last record with zeros.
constexpr std::uint64_t kMaxTrailing = 1U << 20U;
constexpr std::uint64_t kMaxSize = INT64_MAX / 4;

struct RawHeader {
    char name[100];
    char mode[8];
    char uid[8];
    char gid[8];
    char size[12];
    char mtime[12];
    char checksum[8];
    char type;
    char target[100];
    char magic[8];
    char user[32];
    char group[32];
    char major[8];
    char minor[8];
    char prefix[155];
    char rest[12];
};
static_assert(sizeof(RawHeader) == TarReader::kBlock);

template <std::size_t N>
std::string_view textOf(const char (&field)[N]) {
    return {field, strnlen(field, N)};
}

/// Reads octal, or base 256 as in GNU tar. False if it is neither, negative or too large.
template <std::size_t N>
bool numberOf(const char (&field)[N], std::uint64_t& out) {
    const auto* bytes = reinterpret_cast<const unsigned char*>(field);
    out = 0;
    if ((bytes[0] & 0x80U) != 0) {
        if (bytes[0] != 0x80U) return false;  // 0xff: negative; others: more than 64 bits
        for (std::size_t i = 1; i < N; ++i) {
            if (out > (kMaxSize >> 8U)) return false;
            out = out << 8U | bytes[i];
        }
        return out <= kMaxSize;
    }
    std::size_t at = 0;
    while (at < N && field[at] == ' ') ++at;
    for (; at < N && field[at] >= '0' && field[at] <= '7'; ++at) {
        out = out << 3U | static_cast<unsigned>(field[at] - '0');
    }
    for (; at < N; ++at) {
        if (field[at] != ' ' && field[at] != '\0') return false;
    }
    return true;
}

bool checksumFits(const RawHeader& raw, const std::array<char, TarReader::kBlock>& block) {
    std::uint64_t told = 0;
    if (!numberOf(raw.checksum, told)) return false;
    std::uint64_t plain = 0;
    std::int64_t with_sign = 0;
    constexpr std::size_t kAt = offsetof(RawHeader, checksum);
    for (std::size_t i = 0; i < block.size(); ++i) {
        const char c = i >= kAt && i < kAt + sizeof(raw.checksum) ? ' ' : block[i];
        plain += static_cast<unsigned char>(c);
        with_sign += static_cast<signed char>(c);
    }
    return told == plain || static_cast<std::int64_t>(told) == with_sign;
}

/// Reads a pax record's decimal, without its fraction. False if it is none, or too large.
bool decimalOf(std::string_view text, std::uint64_t& out) {
    out = 0;
    std::size_t at = 0;
    for (; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at) {
        if (out > kMaxSize / 10) return false;
        out = out * 10 + static_cast<unsigned>(text[at] - '0');
    }
    return at > 0 && (at == text.size() || text[at] == '.');
}

const char* whyNot(char type) {
    switch (type) {
        case '3':
        case '4':
            return "is a device";
        case '6':
            return "is a FIFO";
        case 'S':
            return "is a sparse file";
        case 'M':
        case 'V':
            return "belongs to an archive of several volumes";
        default:
            return "is of a kind that is not known";
    }
}

}  // namespace

std::string shownName(std::string_view name) {
    constexpr std::size_t kMost = 120;
    std::string shown = "\"" + toUtf8(name.substr(0, kMost));
    return shown + (name.size() > kMost ? "…\"" : "\"");
}

bool TarReader::fail(const std::string& what) {
    if (fault_.empty()) fault_ = what;
    return false;
}

bool TarReader::feed(std::string_view bytes) {
    while (!bytes.empty()) {
        switch (state_) {
            case State::Header: {
                const std::size_t take = std::min(bytes.size(), kBlock - filled_);
                std::memcpy(block_.data() + filled_, bytes.data(), take);
                filled_ += take;
                bytes.remove_prefix(take);
                if (filled_ < kBlock) break;
                filled_ = 0;
                if (!header()) return false;
                break;
            }
            case State::Meta:
            case State::Content: {
                const auto take =
                    static_cast<std::size_t>(std::min<std::uint64_t>(bytes.size(), left_));
                if (state_ == State::Meta) {
                    meta_.append(bytes.substr(0, take));
                } else if (!sink_.content(bytes.substr(0, take))) {
                    return false;
                }
                left_ -= take;
                bytes.remove_prefix(take);
                if (left_ == 0 && !contentDone()) return false;
                break;
            }
            case State::Padding: {
                const auto take =
                    static_cast<std::size_t>(std::min<std::uint64_t>(bytes.size(), padding_));
                padding_ -= take;
                bytes.remove_prefix(take);
                if (padding_ == 0) state_ = State::Header;
                break;
            }
            case State::End:
                trailing_ += bytes.size();
                if (trailing_ > kMaxTrailing) return fail("too much data follows its end");
                return true;
        }
    }
    return true;
}

bool TarReader::skip() {
    if (state_ != State::Content) return true;
    left_ = padding_ = 0;
    return contentDone();
}

bool TarReader::finish() {
    if (state_ == State::End) return true;
    return fail("it was cut off: its end is missing");
}

bool TarReader::header() {
    if (std::all_of(block_.begin(), block_.end(), [](char c) { return c == '\0'; })) {
        if (!long_path_.empty() || !long_target_.empty()) return fail("a long name names nothing");
        state_ = State::End;
        return true;
    }
    RawHeader raw;
    std::memcpy(&raw, block_.data(), sizeof(raw));
    if (!checksumFits(raw, block_)) {
        const auto* b = reinterpret_cast<const unsigned char*>(block_.data());
        const bool packed = (b[0] == 0x1f && b[1] == 0x8b) || (b[0] == 'P' && b[1] == 'K') ||
                            (b[0] == 'B' && b[1] == 'Z') || (b[0] == 0x28 && b[1] == 0xb5) ||
                            (b[0] == 0xfd && b[1] == '7');
        return fail(packed ? "it is compressed; send a plain tar"
                           : "it is no tar, or damaged: the checksum of a header does not fit");
    }
    TarMember member;
    member.path = textOf(raw.name);
    // Only POSIX has a prefix there; GNU's format uses the bytes for other data.
    if (std::memcmp(raw.magic, "ustar\0", 6) == 0 && raw.prefix[0] != '\0') {
        member.path = std::string(textOf(raw.prefix)) + "/" + member.path;
    }
    member.target = textOf(raw.target);
    std::uint64_t mode = 0;
    std::uint64_t time = 0;
    const std::string name = shownName(long_path_.empty() ? member.path : long_path_);
    if (!numberOf(raw.size, member.size)) {
        return fail("entry " + name + " has a size that is negative, too large or no number");
    }
    if (!numberOf(raw.mode, mode)) return fail("entry " + name + " has a mode that is no number");
    if (numberOf(raw.mtime, time)) member.modified = static_cast<std::int64_t>(time);
    member.mode = static_cast<unsigned>(mode & 0777U);
    return begin(raw.type, std::move(member));
}

bool TarReader::begin(char type, TarMember member) {
    if (type == 'x' || type == 'g' || type == 'L' || type == 'K') {
        return beginMeta(type, member.size);
    }
    if (!long_path_.empty()) member.path = std::move(long_path_);
    if (!long_target_.empty()) member.target = std::move(long_target_);
    if (has_size_) member.size = size_;
    if (has_time_) member.modified = time_;
    long_path_.clear();
    long_target_.clear();
    has_size_ = has_time_ = false;
    const std::string name = shownName(member.path);
    switch (type) {
        case '0':
        case '\0':
        case '7':
            member.type = TarMember::Type::File;
            // Before POSIX, a directory was a file whose name ends in a slash.
            if (!member.path.empty() && member.path.back() == '/') {
                member.type = TarMember::Type::Directory;
            }
            break;
        case '1':
            member.type = TarMember::Type::Hardlink;
            break;
        case '2':
            member.type = TarMember::Type::Symlink;
            break;
        case '5':
            member.type = TarMember::Type::Directory;
            break;
        default:
            return fail("entry " + name + " " + whyNot(type));
    }
    if (member.type != TarMember::Type::File && member.size != 0) {
        return fail("entry " + name + " is no file but has content");
    }
    left_ = member.size;
    padding_ = tarPadding(member.size);
    if (!sink_.member(member)) return false;
    state_ = State::Content;
    return left_ > 0 || contentDone();
}

bool TarReader::beginMeta(char type, std::uint64_t size) {
    const std::size_t most = type == 'L' || type == 'K' ? kMaxName + 1 : kMaxPax;
    if (size > most) {
        return fail(most == kMaxPax ? "an extended header has more than 32768 bytes"
                                    : "a name has more than 4096 bytes");
    }
    meta_type_ = type;
    meta_.clear();
    left_ = size;
    padding_ = tarPadding(size);
    state_ = State::Meta;
    return left_ > 0 || contentDone();
}

bool TarReader::contentDone() {
    const bool was_meta = state_ == State::Meta;
    state_ = padding_ > 0 ? State::Padding : State::Header;
    return was_meta ? meta() : sink_.memberEnd();
}

bool TarReader::meta() {
    if (meta_type_ == 'L' || meta_type_ == 'K') {
        meta_.resize(strnlen(meta_.data(), meta_.size()));
        if (meta_.empty()) return fail("a long name is empty");
        (meta_type_ == 'L' ? long_path_ : long_target_) = std::move(meta_);
        meta_.clear();
        return true;
    }
    std::string_view rest = meta_;
    while (!rest.empty()) {
        // "LENGTH KEY=VALUE\n", where LENGTH counts all of it.
        const std::size_t space = rest.find(' ');
        std::uint64_t length = 0;
        if (space > 8 ||  // or missing
            !decimalOf(rest.substr(0, space), length) || length > rest.size() ||
            length < space + 4 || rest[length - 1] != '\n') {
            return fail("an extended header is malformed");
        }
        const std::string_view record = rest.substr(space + 1, length - space - 2);
        const std::size_t equals = record.find('=');
        if (equals == std::string_view::npos || equals == 0) {
            return fail("an extended header is malformed");
        }
        if (!paxRecord(record.substr(0, equals), record.substr(equals + 1))) return false;
        rest.remove_prefix(length);
    }
    meta_.clear();
    return true;
}

bool TarReader::paxRecord(std::string_view key, std::string_view value) {
    const bool named = key == "path" || key == "linkpath";
    if (key.substr(0, 11) == "GNU.sparse.") return fail("it holds a sparse file");
    if (meta_type_ == 'g') {
        return named || key == "size" ? fail("a global header names files") : true;
    }
    if (named) {
        if (value.empty() || value.find('\0') != std::string_view::npos) {
            return fail("an extended header has an empty name, or one with a NUL byte");
        }
        if (value.size() > kMaxName) {
            return fail("entry " + shownName(value) + " has a name of more than 4096 bytes");
        }
        (key == "path" ? long_path_ : long_target_) = value;
    } else if (key == "size") {
        has_size_ = decimalOf(value, size_);
        if (!has_size_) return fail("a size is negative, too large or no number");
    } else if (key == "mtime") {
        std::uint64_t seconds = 0;
        has_time_ = decimalOf(value, seconds);
        time_ = static_cast<std::int64_t>(seconds);
    }
    return true;
}

namespace {

template <std::size_t N>
void putOctal(char (&field)[N], std::uint64_t value) {
    char text[24];
    std::snprintf(text, sizeof(text), "%0*llo", static_cast<int>(N - 1),
                  static_cast<unsigned long long>(value));
    std::memcpy(field, text, N - 1);
}

void appendBlock(std::string& out, const std::string& name, const std::string& target, char type,
                 std::uint64_t size, unsigned mode, std::int64_t modified, unsigned uid,
                 unsigned gid) {
    RawHeader raw{};
    std::memcpy(raw.name, name.data(), std::min(name.size(), sizeof(raw.name)));
    std::memcpy(raw.target, target.data(), std::min(target.size(), sizeof(raw.target)));
    putOctal(raw.mode, mode & 0777U);
    putOctal(raw.uid, uid & 07777777U);
    putOctal(raw.gid, gid & 07777777U);
    if (size < (1ULL << 33U)) {
        putOctal(raw.size, size);
    } else {
        raw.size[0] = static_cast<char>(0x80);
        for (unsigned i = 0; i < 8; ++i) raw.size[11 - i] = static_cast<char>(size >> (8U * i));
    }
    const std::int64_t latest = (1LL << 33) - 1;
    putOctal(raw.mtime, static_cast<std::uint64_t>(std::clamp<std::int64_t>(modified, 0, latest)));
    raw.type = type;
    std::memcpy(raw.magic, "ustar  ", 8);
    std::memset(raw.checksum, ' ', sizeof(raw.checksum));
    unsigned sum = 0;
    std::array<unsigned char, TarReader::kBlock> bytes;
    std::memcpy(bytes.data(), &raw, sizeof(raw));
    for (const unsigned char c : bytes) sum += c;
    std::snprintf(raw.checksum, sizeof(raw.checksum), "%06o", sum);
    out.append(reinterpret_cast<const char*>(&raw), sizeof(raw));
}

void appendLong(std::string& out, char type, const std::string& name) {
    appendBlock(out, "././@LongLink", "", type, name.size() + 1, 0644, 0, 0, 0);
    out.append(name).append(1 + tarPadding(name.size() + 1), '\0');
}

}  // namespace

std::string tarHeader(const TarMember& member, unsigned uid, unsigned gid) {
    constexpr std::size_t kShort = 100;
    std::string path = member.path;
    char type = '0';
    if (member.type == TarMember::Type::Directory) {
        type = '5';
        path.push_back('/');
    } else if (member.type == TarMember::Type::Symlink) {
        type = '2';
    } else if (member.type == TarMember::Type::Hardlink) {
        type = '1';
    }
    std::string out;
    if (member.target.size() > kShort) appendLong(out, 'K', member.target);
    if (path.size() > kShort) appendLong(out, 'L', path);
    appendBlock(out, path, member.target, type, member.size, member.mode, member.modified, uid,
                gid);
    return out;
}

}  // namespace hearth::tar
