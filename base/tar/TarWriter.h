#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/Fd.h"

struct archive;

namespace hearth {

/// One entry of an archive; its owner is root.
struct TarEntry {
    enum class Type : std::uint8_t { File, Directory, Symlink };
    std::string name;
    Type type = Type::File;
    std::string target = {};  ///< only for a symbolic link
    std::uint64_t size = 0;   ///< only for a file
    unsigned mode = 0444;
    std::int64_t modified = 0;  ///< Unix seconds
};

/// Writes a tar archive with libarchive while it is read, in constant memory: GNU format, which
/// keeps names of any length and bytes. Throws Error(Conflict) for a file that shrinks,
/// std::system_error for one that cannot be read. Not thread-safe.
class TarWriter {
public:
    TarWriter();
    TarWriter(const TarWriter&) = delete;
    TarWriter& operator=(const TarWriter&) = delete;
    ~TarWriter();

    /// A directory, a link, or a file with this content.
    void add(TarEntry entry, std::string_view content = {});
    /// A file of `entry.size` bytes, which read() takes from `file`; messages name it `path`.
    void add(const TarEntry& entry, Fd file, std::string path);
    /// The archive's end.
    void end();

    /// Returns up to `size` of the added bytes; 0 if all of them were read.
    std::size_t read(char* out, std::size_t size);

private:
    struct Close {
        void operator()(archive* out) const;
    };
    static ssize_t append(archive*, void* self, const void* bytes, std::size_t size);
    void check(int result);
    void header(const TarEntry& entry);
    void content(std::string_view bytes);
    void readFile();

    std::string made_;  ///< unread from taken_ on
    std::size_t taken_ = 0;
    Fd file_;
    std::string path_;
    std::uint64_t left_ = 0;  ///< bytes of file_
    bool dropped_ = false;    ///< the reader has gone
    std::unique_ptr<archive, Close> out_;
};

}  // namespace hearth
