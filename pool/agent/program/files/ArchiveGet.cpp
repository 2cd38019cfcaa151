#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "pool/agent/program/files/FileOperation.h"
#include "pool/agent/program/files/Tree.h"
#include "pool/agent/protocol/PathText.h"
#include "pool/agent/protocol/WorkspacePath.h"
#include "pool/tar/Tar.h"

namespace hearth::agent {

using tar::shownName;
using tar::tarHeader;
using tar::TarMember;
using tar::tarPadding;
using tar::TarReader;

namespace {

constexpr std::size_t kPiece = 131'072;
constexpr int kSurveyedAtOnce = 2'000;
constexpr const char* kCannotArchive = "ARCHIVE_LIMIT";

/// Checks the names of a tree in advance, so that a name that no archive can hold is refused before
/// the first byte, instead of cutting off the body. The walk itself handles later changes.
class Survey {
public:
    enum class State : std::uint8_t { Going, Sound, Refused };

    /// Checks some more names. If Refused, `code` and `message` say why.
    State proceed(int top, Budget& budget) {
        if (levels_.empty() && !enter(top, ".", "")) return State::Refused;
        for (int i = 0; i < kSurveyedAtOnce; ++i) {
            Level& level = levels_.back();
            const dirent* entry = level.directory.nextEntry();
            if (entry == nullptr) {
                levels_.pop_back();
                if (levels_.empty()) return State::Sound;
                continue;
            }
            if (isTemporary(entry->d_name)) continue;
            if (!budget.spend()) return refuse("more than 200000 entries");
            if (!isDirectory(level.directory.fd(), *entry)) continue;
            const std::string path = joined(level.path, entry->d_name);
            if (levels_.size() > static_cast<std::size_t>(kMaxDepth)) {
                return refuse(shownName(path) + " lies deeper than 64 levels");
            }
            const std::string name = entry->d_name;
            if (!enter(level.directory.fd(), name.c_str(), path)) return State::Refused;
        }
        return State::Going;
    }

    std::string code;
    std::string message;

private:
    struct Level {
        Directory directory;
        std::string path;
    };

    State refuse(std::string why) {
        code = kCannotArchive;
        message = std::move(why);
        return State::Refused;
    }

    static bool isDirectory(int parent, const dirent& entry) {
        if (entry.d_type != DT_UNKNOWN) return entry.d_type == DT_DIR;
        struct stat st {};
        return fstatat(parent, entry.d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
    }

    /// Returns true also if the directory has gone meanwhile.
    bool enter(int parent, const char* name, const std::string& path) {
        Fd fd(openat(parent, name, kWalkFlags));
        if (!fd && (errno == ENOENT || errno == ENOTDIR || errno == ELOOP) && !levels_.empty()) {
            return true;
        }
        Directory directory(std::move(fd));
        if (!directory) {
            code = fileErrorCode(errno);
            message = shownName(path) + " cannot be read";
            return false;
        }
        levels_.push_back({std::move(directory), path});
        return true;
    }

    std::vector<Level> levels_;
};

/// Walks the tree with one open directory for each level and writes members as far as the credit
/// allows: its memory is one piece, however large the tree.
class ArchiveGet final : public FileOperation {
public:
    explicit ArchiveGet(const JsonValue& body)
        : path_(workspacePath(pathBytes(body["path"].text()))) {}

    Next step(FileTurn& turn) override {
        if (!surveyed_) return survey(turn);
        Budget budget{turn.cancelled, visits_};
        while (ready_.size() < kPiece && !ended_) {
            if (!more(turn, budget)) return Next::Done;
        }
        visits_ = budget.visits;
        const auto count =
            static_cast<std::size_t>(std::min<std::uint64_t>(ready_.size(), turn.credit));
        if (count > 0) {
            turn.out.push_back({FrameType::Data, ready_.substr(0, count)});
            ready_.erase(0, count);
            sent_ += static_cast<std::int64_t>(count);
        }
        if (!ready_.empty() || !ended_) return count < turn.credit ? Next::Step : Next::Credit;
        turn.out.push_back({FrameType::End, {}});
        JsonValue reply = JsonValue::object();
        reply.set("bytes", sent_).set("entries", entries_);
        turn.reply(reply);
        return Next::Done;
    }

private:
    struct Level {
        Directory directory;
        std::string path;
    };

    static bool refuse(FileTurn& turn, const char* code, const std::string& message) {
        turn.fail(code, message);
        return false;
    }

    /// Sends the Note when the survey has found nothing against the whole archive.
    Next survey(FileTurn& turn) {
        if (levels_.empty() && !begin(turn)) return Next::Done;
        Budget budget{turn.cancelled, surveyable_};
        const Survey::State state = survey_.proceed(levels_.front().directory.fd(), budget);
        surveyable_ = budget.visits;
        if (state == Survey::State::Refused) {
            turn.fail(survey_.code.c_str(), survey_.message);
            return Next::Done;
        }
        if (state == Survey::State::Going) return Next::Step;
        surveyed_ = true;
        turn.note(note_);
        return Next::Step;
    }

    bool begin(FileTurn& turn) {
        if (!path_) return refuse(turn, "BAD_PATH", "not a path in the workspace");
        Fd fd = turn.workspace.open(*path_, O_RDONLY | O_DIRECTORY);
        struct stat st {};
        if (!fd || fstat(fd.get(), &st) != 0) {
            turn.failErrno();
            return false;
        }
        Directory directory(std::move(fd));
        if (!directory) {
            turn.failErrno();
            return false;
        }
        levels_.push_back({std::move(directory), ""});
        note_.set("stat", describe(pathText(*path_), st, true));
        return true;
    }

    /// Adds the next header or piece of content. False if it has failed, and has said so.
    bool more(FileTurn& turn, Budget& budget) {
        if (file_) return content(turn);
        Level& level = levels_.back();
        const char* name = level.directory.next();
        if (name == nullptr) {
            levels_.pop_back();
            if (!levels_.empty()) return true;
            ready_.append(2 * TarReader::kBlock, '\0');
            ended_ = true;
            return true;
        }
        if (isTemporary(name)) return true;
        if (!budget.spend()) return refuse(turn, kCannotArchive, "more than 200000 entries");
        return entry(turn, level.directory.fd(), name, joined(level.path, name));
    }

    bool entry(FileTurn& turn, int directory, const std::string& name, const std::string& path) {
        struct stat st {};
        if (fstatat(directory, name.c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0) return true;
        TarMember member;
        member.path = path;
        if (S_ISLNK(st.st_mode)) {
            char target[TarReader::kMaxName];
            const ssize_t n = readlinkat(directory, name.c_str(), target, sizeof(target));
            if (n <= 0) return true;
            member.type = TarMember::Type::Symlink;
            member.target.assign(target, static_cast<std::size_t>(n));
        } else if (S_ISDIR(st.st_mode) || S_ISREG(st.st_mode)) {
            const bool tree = S_ISDIR(st.st_mode);
            Fd fd(openat(
                directory, name.c_str(),
                tree ? kWalkFlags : O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
            if (!fd && errno == ENOENT) return true;
            if (!fd || fstat(fd.get(), &st) != 0) {
                return refuse(turn, fileErrorCode(errno), shownName(path) + " cannot be read");
            }
            if (tree) {
                member.type = TarMember::Type::Directory;
                if (levels_.size() > static_cast<std::size_t>(kMaxDepth)) {
                    return refuse(turn, kCannotArchive,
                                  shownName(path) + " lies deeper than 64 levels");
                }
                levels_.push_back({Directory(std::move(fd)), path});
                if (!levels_.back().directory) {
                    turn.failErrno();
                    return false;
                }
            } else if (S_ISREG(st.st_mode)) {
                member.size = static_cast<std::uint64_t>(st.st_size);
                file_ = std::move(fd);
                file_name_ = path;
                left_ = member.size;
                padding_ = tarPadding(member.size);
            } else {
                return true;  // it was replaced by something special
            }
        } else {
            return true;  // sockets, FIFOs, devices
        }
        member.mode = st.st_mode & 0777U;
        member.modified = st.st_mtim.tv_sec;
        ready_ += tarHeader(member, st.st_uid, st.st_gid);
        ++entries_;
        return true;
    }

    bool content(FileTurn& turn) {
        const std::size_t old = ready_.size();
        const auto want = static_cast<std::size_t>(
            std::min<std::uint64_t>(left_, kPiece > old ? kPiece - old : 1));
        ready_.resize(old + want);
        const ssize_t n = want == 0 ? 0 : read(file_.get(), ready_.data() + old, want);
        if (n < 0 && errno == EINTR) {
            ready_.resize(old);
            return true;
        }
        if (n < 0 || (n == 0 && left_ > 0)) {
            return refuse(turn, "CHANGED", shownName(file_name_) + " shrank while it was read");
        }
        ready_.resize(old + static_cast<std::size_t>(n));
        left_ -= static_cast<std::uint64_t>(n);
        if (left_ == 0) {
            ready_.append(padding_, '\0');
            file_.reset();
        }
        return true;
    }

    std::optional<std::string> path_;
    std::vector<Level> levels_;
    Fd file_;
    std::string file_name_;
    std::uint64_t left_ = 0;
    std::size_t padding_ = 0;
    std::string ready_;
    std::int64_t sent_ = 0;
    std::int64_t entries_ = 0;
    Survey survey_;
    JsonValue note_ = JsonValue::object();
    int surveyable_ = kMaxVisits;
    bool surveyed_ = false;
    int visits_ = kMaxVisits;
    bool ended_ = false;
};

}  // namespace

std::unique_ptr<FileOperation> makeArchiveGet(const JsonValue& body) {
    return std::make_unique<ArchiveGet>(body);
}

}  // namespace hearth::agent
