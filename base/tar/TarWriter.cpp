#include "base/tar/TarWriter.h"

#include <archive.h>
#include <archive_entry.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <new>
#include <stdexcept>

#include "base/Error.h"

namespace hearth {
namespace {

constexpr std::size_t kPiece = 64U << 10U;
constexpr std::int64_t kLatest = (1LL << 33) - 1;  // eleven octal digits

unsigned kindOf(TarEntry::Type type) {
    if (type == TarEntry::Type::Directory) return AE_IFDIR;
    return type == TarEntry::Type::Symlink ? AE_IFLNK : AE_IFREG;
}

}  // namespace

void TarWriter::Close::operator()(archive* out) const {
    ::archive_write_free(out);
}

TarWriter::TarWriter() : out_(::archive_write_new()) {
    if (!out_) throw std::bad_alloc();
    check(::archive_write_set_format_gnutar(out_.get()));
    check(::archive_write_set_bytes_per_block(out_.get(), 0));
    check(::archive_write_open(out_.get(), this, nullptr, append, nullptr));
}

TarWriter::~TarWriter() {
    dropped_ = true;
}

ssize_t TarWriter::append(archive*, void* self, const void* bytes, std::size_t size) {
    auto& writer = *static_cast<TarWriter*>(self);
    // libarchive would pad a file that was not read to its end with zeros.
    if (writer.dropped_) return -1;
    writer.made_.append(static_cast<const char*>(bytes), size);
    return static_cast<ssize_t>(size);
}

void TarWriter::check(int result) {
    if (result == ARCHIVE_OK) return;
    const char* why = ::archive_error_string(out_.get());
    throw std::runtime_error(std::string("tar: ") + (why != nullptr ? why : "failed"));
}

void TarWriter::header(const TarEntry& entry) {
    const std::unique_ptr<archive_entry, decltype(&::archive_entry_free)> about(
        ::archive_entry_new(), &::archive_entry_free);
    if (!about) throw std::bad_alloc();
    ::archive_entry_set_pathname(about.get(), entry.name.c_str());
    ::archive_entry_set_filetype(about.get(), kindOf(entry.type));
    ::archive_entry_set_perm(about.get(), static_cast<mode_t>(entry.mode & 07777U));
    ::archive_entry_set_size(about.get(), static_cast<la_int64_t>(entry.size));
    ::archive_entry_set_mtime(about.get(), std::clamp<std::int64_t>(entry.modified, 0, kLatest), 0);
    if (entry.type == TarEntry::Type::Symlink) {
        ::archive_entry_set_symlink(about.get(), entry.target.c_str());
    }
    check(::archive_write_header(out_.get(), about.get()));
}

void TarWriter::content(std::string_view bytes) {
    if (::archive_write_data(out_.get(), bytes.data(), bytes.size()) !=
        static_cast<la_ssize_t>(bytes.size())) {
        check(ARCHIVE_FATAL);
    }
}

void TarWriter::add(TarEntry entry, std::string_view bytes) {
    entry.size = bytes.size();
    header(entry);
    content(bytes);
    check(::archive_write_finish_entry(out_.get()));
}

void TarWriter::add(const TarEntry& entry, Fd file, std::string path) {
    header(entry);
    file_ = std::move(file);
    path_ = std::move(path);
    left_ = entry.size;
}

void TarWriter::end() {
    check(::archive_write_close(out_.get()));
}

void TarWriter::readFile() {
    char piece[kPiece];
    const auto most = static_cast<std::size_t>(std::min<std::uint64_t>(left_, kPiece));
    const ssize_t got = ::read(file_.get(), piece, most);
    if (got < 0 && errno == EINTR) return;
    if (got < 0) throwErrno("read", path_);
    if (got == 0 && left_ > 0)
        throw Error(ErrorCode::Conflict, path_ + " shrank while it was read");
    content({piece, static_cast<std::size_t>(got)});
    left_ -= static_cast<std::uint64_t>(got);
    if (left_ > 0) return;
    check(::archive_write_finish_entry(out_.get()));
    file_.reset();
}

std::size_t TarWriter::read(char* out, std::size_t size) {
    while (taken_ == made_.size()) {
        made_.clear();
        taken_ = 0;
        if (!file_) return 0;
        readFile();
    }
    const std::size_t count = made_.copy(out, size, taken_);
    taken_ += count;
    return count;
}

}  // namespace hearth
