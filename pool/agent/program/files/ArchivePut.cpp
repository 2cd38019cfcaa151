#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>

#include "pool/agent/program/files/FileOperation.h"
#include "pool/agent/program/files/Tree.h"
#include "pool/agent/protocol/PathText.h"
#include "pool/agent/protocol/WorkspacePath.h"
#include "pool/tar/Tar.h"

namespace hearth::agent {

using tar::shownName;
using tar::TarMember;
using tar::TarReader;
using tar::TarSink;

namespace {

constexpr int kMaxEntries = 100'000;

/// Makes the members of one archive in a directory that nobody else writes to. The first fault ends
/// it; `code` and `message` describe the fault.
class Unpacker final : public TarSink {
public:
    explicit Unpacker(Fd staging) : staging_(std::move(staging)) {}

    bool member(const TarMember& member) override {
        if (++entries > kMaxEntries) return refuse("it has more than 100000 entries");
        shown_ = "entry " + shownName(member.path);
        if (!placeOf(member.path, path_)) return false;
        if (path_.empty()) {
            return member.type == TarMember::Type::Directory || refuse(shown_ + " has no name");
        }
        const std::size_t slash = path_.rfind('/');
        const std::string parent = slash == std::string::npos ? "" : path_.substr(0, slash);
        const std::string name = lastName(path_);
        if (!enter(parent)) return false;
        switch (member.type) {
            case TarMember::Type::Directory:
                return directory(name, member.mode);
            case TarMember::Type::Symlink:
                ++links;  // with any target: the tenant's programs can make such a link, too
                return done(symlinkat(member.target.c_str(), parent_.get(), name.c_str()));
            case TarMember::Type::Hardlink:
                return hardlink(name, member.target);
            case TarMember::Type::File:
                break;
        }
        return file(name, member);
    }

    bool content(std::string_view piece) override {
        while (!piece.empty()) {
            const ssize_t n = write(file_.get(), piece.data(), piece.size());
            if (n < 0 && errno == EINTR) continue;
            if (n < 0) return done(-1);
            piece.remove_prefix(static_cast<std::size_t>(n));
            bytes += n;
        }
        return true;
    }

    bool memberEnd() override {
        if (!file_) return true;
        const timespec times[2] = {{modified_, 0}, {modified_, 0}};
        const bool good = fchmod(file_.get(), mode_) == 0 && futimens(file_.get(), times) == 0;
        const int error = errno;
        file_.reset();
        errno = error;
        return done(good ? 0 : -1);
    }

    const char* code = "BAD_ARCHIVE";
    std::string message;
    int entries = 0;
    std::int64_t files = 0;
    std::int64_t directories = 0;
    std::int64_t links = 0;
    std::int64_t bytes = 0;

private:
    bool refuse(const std::string& what) {
        message = what;
        return false;
    }

    /// Handles the outcome of a system call for the current member.
    bool done(int result) {
        if (result == 0) return true;
        if (errno == EEXIST) return refuse(shown_ + " stands twice");
        if (errno == ELOOP || errno == ENOTDIR) {
            return refuse(shown_ + " leads through something that is no directory");
        }
        code = fileErrorCode(errno);
        return refuse(shown_ + ": " + std::strerror(errno));
    }

    /// Turns a member's name into a path below the staging directory.
    bool placeOf(std::string_view name, std::string& out) {
        out.clear();
        if (!name.empty() && name.front() == '/') return refuse(shown_ + " has an absolute name");
        if (name.size() > TarReader::kMaxName) return refuse(shown_ + " has a name too long");
        int depth = 0;
        while (!name.empty()) {
            const std::size_t slash = name.find('/');
            const std::string_view part = name.substr(0, slash);
            name.remove_prefix(slash == std::string_view::npos ? name.size() : slash + 1);
            if (part.empty() || part == ".") continue;
            if (part == "..") return refuse(shown_ + " has \"..\" in its name");
            if (part.size() > NAME_MAX) return refuse(shown_ + " has a name too long");
            if (isTemporary(part)) return refuse(shown_ + " has a name that is reserved");
            if (++depth > kMaxDepth) return refuse(shown_ + " lies deeper than 64 levels");
            out = joined(out, part);
        }
        return true;
    }

    /// Opens the directory of the member, makes it if necessary, and follows no link.
    bool enter(const std::string& parent) {
        if (parent_ && parent == parent_path_) return true;
        Fd at(openat(staging_.get(), ".", kWalkFlags));
        for (std::size_t begin = 0; at && begin < parent.size();) {
            const std::size_t end = std::min(parent.find('/', begin), parent.size());
            const std::string name = parent.substr(begin, end - begin);
            if (mkdirat(at.get(), name.c_str(), 0755) != 0 && errno != EEXIST) return done(-1);
            at = Fd(openat(at.get(), name.c_str(), kWalkFlags));
            begin = end + 1;
        }
        if (!at) return done(-1);
        parent_ = std::move(at);
        parent_path_ = parent;
        return true;
    }

    bool directory(const std::string& name, unsigned mode) {
        if (mkdirat(parent_.get(), name.c_str(), 0700) != 0) {
            if (errno != EEXIST) return done(-1);
        } else {
            ++directories;
        }
        const Fd made(openat(parent_.get(), name.c_str(), kWalkFlags));
        // Its owner can always use it, or its content could be neither unpacked nor removed.
        return done(made ? fchmod(made.get(), (mode | 0700U) & 0777U) : -1);
    }

    bool hardlink(const std::string& name, const std::string& target) {
        std::string place;
        if (target.empty() || target.front() == '/' || !placeOf(target, place) || place.empty()) {
            return refuse(shown_ + " is a hard link to " + shownName(target) +
                          ", which is no entry before it");
        }
        const std::size_t slash = place.rfind('/');
        Fd at(openat(staging_.get(), ".", kWalkFlags));
        for (std::size_t begin = 0; at && slash != std::string::npos && begin < slash;) {
            const std::size_t end = place.find('/', begin);
            at = Fd(openat(at.get(), place.substr(begin, end - begin).c_str(), kWalkFlags));
            begin = end + 1;
        }
        struct stat st {};
        const std::string last = lastName(place);
        if (!at || fstatat(at.get(), last.c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0 ||
            !S_ISREG(st.st_mode)) {
            return refuse(shown_ + " is a hard link to " + shownName(target) +
                          ", which is no file before it");
        }
        ++links;
        return done(linkat(at.get(), last.c_str(), parent_.get(), name.c_str(), 0));
    }

    bool file(const std::string& name, const TarMember& member) {
        struct statvfs space {};
        if (fstatvfs(parent_.get(), &space) == 0 &&
            member.size / std::max<unsigned long>(space.f_frsize, 1) > space.f_bavail) {
            errno = ENOSPC;
            return done(-1);
        }
        file_ = Fd(openat(parent_.get(), name.c_str(),
                          O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
        mode_ = member.mode & 0777U;
        modified_ = member.modified;
        ++files;
        return done(file_ ? 0 : -1);
    }

    const Fd staging_;
    std::string shown_;
    std::string path_;
    std::string parent_path_;
    Fd parent_;
    Fd file_;
    unsigned mode_ = 0;
    std::int64_t modified_ = 0;
};

/// Unpacks into a temporary directory; at the end of a good archive its content is moved in.
class ArchivePut final : public FileOperation {
public:
    explicit ArchivePut(const JsonValue& body)
        : path_(workspacePath(pathBytes(body["path"].text()))) {}

    ~ArchivePut() override {
        if (!unpacker_) return;
        unpacker_.reset();
        const std::atomic<bool> never{false};
        Budget budget{never, INT_MAX};
        removeTree(root_.get(), staging_.c_str(), kMaxDepth + 1, budget);
    }

    Next step(FileTurn& turn) override {
        if (!unpacker_ && !begin(turn)) return Next::Done;
        if (!reader_->feed(turn.input)) return fault(turn);
        if (!turn.input.empty()) {
            unsigned char grant[4];
            putU32(grant, static_cast<std::uint32_t>(turn.input.size()));
            turn.out.push_back({FrameType::Credit, std::string(reinterpret_cast<char*>(grant), 4)});
        }
        if (!turn.input_ended) return Next::Input;
        if (!reader_->finish()) return fault(turn);
        finish(turn);
        return Next::Done;
    }

private:
    Next fault(FileTurn& turn) const {
        if (reader_->fault().empty()) {
            turn.fail(unpacker_->code, "the archive is refused: " + unpacker_->message);
        } else {
            turn.fail("BAD_ARCHIVE", "the archive is refused: " + reader_->fault());
        }
        return Next::Done;
    }

    bool begin(FileTurn& turn) {
        if (!path_) {
            turn.fail("BAD_PATH", "not a path in the workspace");
            return false;
        }
        staging_ = temporaryName();
        root_ = turn.workspace.open("", O_RDONLY | O_DIRECTORY);
        if (!root_ || mkdirat(root_.get(), staging_.c_str(), 0700) != 0) {
            turn.failErrno();
            return false;
        }
        Fd staging(openat(root_.get(), staging_.c_str(), kWalkFlags));
        if (!staging) {
            turn.failErrno();
            return false;
        }
        unpacker_ = std::make_unique<Unpacker>(std::move(staging));
        reader_ = std::make_unique<TarReader>(*unpacker_);
        return true;
    }

    void finish(FileTurn& turn) {
        if (!turn.workspace.makeDirectories(*path_) && errno != EEXIST) return turn.failErrno();
        std::string conflict;
        for (const bool really : {false, true}) {
            Fd target = turn.workspace.open(*path_, O_RDONLY | O_DIRECTORY);
            if (!target) return turn.failErrno();
            Fd staging(openat(root_.get(), staging_.c_str(), kWalkFlags));
            if (merge(std::move(staging), target.get(), "", kMaxDepth, really, conflict)) continue;
            if (conflict.empty()) return turn.failErrno();
            return turn.fail("ARCHIVE_CONFLICT", "the archive is refused: " + conflict);
        }
        JsonValue reply = JsonValue::object();
        reply.set("files", unpacker_->files).set("directories", unpacker_->directories);
        reply.set("links", unpacker_->links).set("bytes", unpacker_->bytes);
        turn.reply(reply);
    }

    /// Moves the contents of `from` into `to`, or only checks whether that is possible. Existing
    /// directories keep their attributes and take in new entries.
    static bool merge(Fd from, int to, const std::string& path, int depth, bool really,
                      std::string& conflict) {
        Directory source(std::move(from));
        if (!source) return false;
        while (const char* name = source.next()) {
            struct stat mine {};
            struct stat theirs {};
            if (fstatat(source.fd(), name, &mine, AT_SYMLINK_NOFOLLOW) != 0) return false;
            const bool there = fstatat(to, name, &theirs, AT_SYMLINK_NOFOLLOW) == 0;
            if (there && S_ISDIR(mine.st_mode) && S_ISDIR(theirs.st_mode)) {
                const Fd into(openat(to, name, kWalkFlags));
                if (!into || depth <= 0) return false;
                if (!merge(Fd(openat(source.fd(), name, kWalkFlags)), into.get(),
                           joined(path, name), depth - 1, really, conflict)) {
                    return false;
                }
                continue;
            }
            if (there && (S_ISDIR(mine.st_mode) || S_ISDIR(theirs.st_mode))) {
                conflict = "entry " + shownName(joined(path, name)) +
                           (S_ISDIR(mine.st_mode) ? " is a directory, but something else stands"
                                                  : " is no directory, but a directory stands") +
                           " there";
                return false;
            }
            if (really && renameat(source.fd(), name, to, name) != 0) return false;
        }
        return true;
    }

    std::optional<std::string> path_;
    std::string staging_;
    Fd root_;
    std::unique_ptr<Unpacker> unpacker_;
    std::unique_ptr<TarReader> reader_;
};

}  // namespace

std::unique_ptr<FileOperation> makeArchivePut(const JsonValue& body) {
    return std::make_unique<ArchivePut>(body);
}

}  // namespace hearth::agent
