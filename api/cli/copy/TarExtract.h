#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/Fd.h"
#include "pool/tar/Tar.h"

namespace hearth::cli {

/// Unpacks an untrusted tar below one local directory, and nowhere else. Absolute names and names
/// with ".." are refused, no symbolic link is followed on the way (an older one or one from the
/// archive), a link whose target could lead out is not made, and set-id bits are dropped. Files are
/// replaced whole: a reader sees the old or the new one. Not thread-safe.
class TarExtract final : public tar::TarSink {
public:
    using LeftOut = std::function<void(const std::string& name, const std::string& why)>;

    /// `directory` is open and stays open. `left_out` gets the names of links that are not made.
    TarExtract(int directory, LeftOut left_out);
    ~TarExtract();
    TarExtract(const TarExtract&) = delete;
    TarExtract& operator=(const TarExtract&) = delete;

    /// Throws Error(InvalidArgument) for a malformed or hostile archive, system_error if the disk
    /// fails. Entries unpacked before that remain.
    void feed(std::string_view bytes);
    void finish();

    std::uint64_t files() const { return files_; }
    std::uint64_t leftOut() const { return left_out_count_; }

    bool member(const tar::TarMember& member) override;
    bool content(std::string_view bytes) override;
    bool memberEnd() override;

private:
    /// The directory that holds the last part of `path`, made if absent, and that part.
    struct Place {
        Fd directory;
        std::string name;  ///< empty: the top itself
        std::size_t depth = 0;
    };
    /// The identity of the file: a later file may have the same path.
    struct Made {
        dev_t device = 0;
        ino_t inode = 0;
    };
    Place placeOf(const std::string& path, bool make);
    void makeDirectory(const Place& place, const tar::TarMember& member);
    void makeFile(Place place, const tar::TarMember& member);
    void makeLink(const Place& place, const tar::TarMember& member);
    void makeHardLink(const Place& place, const tar::TarMember& member);
    void leaveOut(const std::string& name, const std::string& why);

    const int top_;
    LeftOut left_out_;
    tar::TarReader reader_;
    mode_t mask_ = 022;
    Place place_;  ///< place of the file that is being written
    Fd file_;
    std::string temporary_;  ///< its name until it is complete
    tar::TarMember now_;
    /// Files made from this archive, by their normal names: hard links may lead only to these.
    std::unordered_map<std::string, Made> made_;
    std::uint64_t files_ = 0;
    std::uint64_t left_out_count_ = 0;
};

/// True if a symbolic link `depth` directories below the top may have this target, so that it
/// cannot lead out whatever other such links exist. Only leading ".." are allowed, and not more
/// than `depth`: a later one could step back out of a link.
bool linkStaysInside(std::string_view target, std::size_t depth);

}  // namespace hearth::cli
