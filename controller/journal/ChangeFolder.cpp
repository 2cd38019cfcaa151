#include "controller/journal/ChangeFolder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>

#include "base/Error.h"
#include "base/Json.h"

namespace hearth::controller {
namespace {

namespace fs = std::filesystem;

constexpr const char* kTerm = "term";
constexpr const char* kChanges = "changes";
constexpr const char* kSnapshot = "snapshot";

struct Header {
    std::uint32_t length = 0;
    std::uint32_t check = 0;
};

std::uint32_t checkOf(std::string_view bytes) {
    return static_cast<std::uint32_t>(
        ::crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

[[noreturn]] void fail(const char* what) {
    const int error = errno;
    const std::string message =
        std::string("the folder of the shared history: ") + what + ": " + std::strerror(error);
    if (error == ENOSPC || error == EDQUOT) {
        throw Error(ErrorCode::DiskFull, message).hint("an operator must free space there");
    }
    throw Error(ErrorCode::Unavailable, message)
        .hint("an operator looks after the volume of --shared-volume");
}

/// The fixed number of digits keeps the files sorted in a directory listing.
std::string segmentName(const ChangeSegment& segment) {
    std::array<char, 48> text{};
    std::snprintf(text.data(), text.size(), "%020llu-%010u",
                  static_cast<unsigned long long>(segment.term), segment.number);
    return text.data();
}

std::optional<ChangeSegment> parsed(const std::string& text) {
    unsigned long long term = 0;
    ChangeSegment segment;
    int end = 0;
    if (std::sscanf(text.c_str(), "%20llu-%10u%n", &term, &segment.number, &end) != 2 ||
        static_cast<std::size_t>(end) != text.size()) {
        return std::nullopt;
    }
    segment.term = term;
    return segment;
}

std::string termPath(const std::string& before, std::uint64_t term) {
    std::array<char, 40> text{};
    std::snprintf(text.data(), text.size(), "%s-%020llu", kTerm,
                  static_cast<unsigned long long>(term));
    return before + text.data();
}

bool readExactly(int fd, char* to, std::size_t bytes, std::uint64_t from) {
    while (bytes > 0) {
        const ssize_t got = ::pread(fd, to, bytes, static_cast<off_t>(from));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) fail("read");
        if (got == 0) return false;
        to += got;
        bytes -= static_cast<std::size_t>(got);
        from += static_cast<std::uint64_t>(got);
    }
    return true;
}

void writeAll(int fd, std::string_view bytes) {
    while (!bytes.empty()) {
        const ssize_t put = ::write(fd, bytes.data(), bytes.size());
        if (put < 0 && errno == EINTR) continue;
        if (put < 0) fail("write");
        bytes.remove_prefix(static_cast<std::size_t>(put));
    }
}

std::string contentsOf(const std::string& path) {
    const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    struct stat seen {};
    if (!file || ::fstat(file.get(), &seen) != 0) fail("read");
    std::string text(static_cast<std::size_t>(seen.st_size), '\0');
    if (!readExactly(file.get(), text.data(), text.size(), 0)) fail("read");
    return text;
}

}  // namespace

std::string ChangeFolder::at(const char* kind, const ChangeSegment& segment) const {
    return path_ + "/" + kind + "-" + segmentName(segment);
}

std::string ChangeFolder::snapshotPath(const ChangeSegment& segment) const {
    return at(kSnapshot, segment);
}

ChangeFolder::Contents ChangeFolder::list() const {
    Contents found;
    std::error_code error;
    for (fs::directory_iterator entry(path_, error), end; !error && entry != end;
         entry.increment(error)) {
        const std::string name = entry->path().filename();
        const std::size_t dash = name.find('-');
        if (dash == std::string::npos) continue;
        const std::string kind = name.substr(0, dash);
        const std::string rest = name.substr(dash + 1);
        if (kind == kTerm) {
            if (const auto term = parsed(rest + "-0")) found.terms.push_back(term->term);
        } else if (const auto segment = parsed(rest)) {
            if (kind == kChanges) found.segments.push_back(*segment);
            if (kind == kSnapshot) found.snapshots.push_back(*segment);
        }
    }
    if (error) {
        errno = error.value();
        fail("list");
    }
    std::ranges::sort(found.terms);
    std::ranges::sort(found.segments);
    std::ranges::sort(found.snapshots);
    return found;
}

ChangeFolder::Lengths ChangeFolder::lengthsBefore(std::uint64_t term) const {
    const Json told = Json::parse(contentsOf(termPath(path_ + "/", term)), nullptr, false);
    Lengths lengths;
    if (!told.is_object() || !told.contains("segments")) {
        throw Error(ErrorCode::Unavailable,
                    "the folder of the shared history: " + termPath("", term) + " is no term");
    }
    for (const auto& [name, bytes] : told["segments"].items()) {
        const auto segment = parsed(name);
        if (segment && bytes.is_number_unsigned()) lengths[*segment] = bytes;
    }
    return lengths;
}

void ChangeFolder::begin(std::uint64_t term, const Lengths& before) const {
    Json segments = Json::object();
    for (const auto& [segment, bytes] : before) segments[segmentName(segment)] = bytes;
    const std::string path = termPath(path_ + "/", term);
    const std::string unfinished = termPath(path_ + "/.", term);
    ::unlink(unfinished.c_str());  // left by a start that was interrupted
    {
        const Fd file(::open(unfinished.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
        if (!file) fail("write");
        writeAll(file.get(), dumpJson({{"segments", segments}}));
        if (::fsync(file.get()) != 0) fail("write");
    }
    // link() fails if the term exists; a rename would replace it.
    if (::link(unfinished.c_str(), path.c_str()) != 0) fail("begin a term");
    ::unlink(unfinished.c_str());
    sync();
}

void ChangeFolder::sync() const {
    const Fd folder(::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!folder || ::fsync(folder.get()) != 0) fail("write");
}

std::optional<std::uint64_t> ChangeFolder::sizeOf(const ChangeSegment& segment) const {
    // open() makes a network file system ask the server; stat() may report an older size.
    const Fd file(::open(at(kChanges, segment).c_str(), O_RDONLY | O_CLOEXEC));
    if (!file && errno == ENOENT) return std::nullopt;
    struct stat seen {};
    if (!file || ::fstat(file.get(), &seen) != 0) fail("look");
    return static_cast<std::uint64_t>(seen.st_size);
}

bool ChangeFolder::read(const ChangePlace& from, std::uint64_t limit, const Each& each) const {
    const Fd file(::open(at(kChanges, from.segment).c_str(), O_RDONLY | O_CLOEXEC));
    if (!file && errno == ENOENT) return false;
    if (!file) fail("read");
    ChangePlace place = from;
    std::string record;
    while (place.bytes < limit) {
        Header header;
        if (!readExactly(file.get(), reinterpret_cast<char*>(&header), sizeof(header),
                         place.bytes) ||
            header.length == 0 || header.length > kMostBytes ||
            place.bytes + sizeof(header) + header.length > limit) {
            break;
        }
        record.resize(header.length);
        if (!readExactly(file.get(), record.data(), record.size(), place.bytes + sizeof(header)) ||
            checkOf(record) != header.check) {
            break;
        }
        place.bytes += sizeof(header) + header.length;
        if (!each(record, place)) break;
    }
    return true;
}

void ChangeFolder::open(const ChangeSegment& segment) {
    file_ =
        Fd(::open(at(kChanges, segment).c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (!file_) fail("begin a segment");
    segment_ = segment;
    bytes_ = 0;
    sync();
}

ChangePlace ChangeFolder::append(std::string_view record) {
    const Header header{static_cast<std::uint32_t>(record.size()), checkOf(record)};
    std::string whole(reinterpret_cast<const char*>(&header), sizeof(header));
    whole += record;
    try {
        writeAll(file_.get(), whole);
        if (::fdatasync(file_.get()) != 0) fail("write");
    } catch (...) {
        // Others may have read these bytes, so nothing else may ever be written in their place.
        file_.reset();
        throw;
    }
    bytes_ += whole.size();
    return {segment_, bytes_};
}

std::string ChangeFolder::unfinishedPath(const ChangeSegment& segment) const {
    return path_ + "/." + kSnapshot + "-" + segmentName(segment);
}

void ChangeFolder::publish(const ChangeSegment& segment) const {
    const std::string path = unfinishedPath(segment);
    const Fd made(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!made || ::fsync(made.get()) != 0 ||
        ::rename(path.c_str(), snapshotPath(segment).c_str()) != 0) {
        fail("publish a snapshot");
    }
    sync();
}

void ChangeFolder::dropBefore(const ChangeSegment& snapshot) const noexcept {
    try {
        const Contents there = list();
        for (const ChangeSegment& each : there.segments) {
            if (each < snapshot) ::unlink(at(kChanges, each).c_str());
        }
        for (const ChangeSegment& each : there.snapshots) {
            if (each < snapshot) ::unlink(snapshotPath(each).c_str());
        }
        std::error_code ignored;
        for (const fs::directory_entry& each : fs::directory_iterator(path_)) {
            // An interrupted process left these files; no other replica can lead now.
            if (each.path().filename().string().starts_with(".")) fs::remove(each.path(), ignored);
        }
        for (const std::uint64_t each : there.terms) {
            if (each < snapshot.term) ::unlink(termPath(path_ + "/", each).c_str());
        }
    } catch (const std::exception&) {
        return;  // the next snapshot tries again
    }
}

}  // namespace hearth::controller
