#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "pool/agent/program/files/FileOperation.h"
#include "pool/agent/program/files/Tree.h"
#include "pool/agent/protocol/PathText.h"
#include "pool/agent/protocol/WorkspacePath.h"

namespace hearth::agent {

namespace {

constexpr std::size_t kPiece = 131'072;

/// `read`: sends pieces as far as the credit allows, or the open file itself.
class ReadFile final : public FileOperation {
public:
    explicit ReadFile(const JsonValue& body)
        : path_(workspacePath(pathBytes(body["path"].text()))),
          offset_(body["offset"].integer()),
          length_(body["length"].integer()),
          pass_(body["pass"].boolean()) {}

    Next step(FileTurn& turn) override {
        if (!fd_) return begin(turn);
        std::uint64_t want = std::min<std::uint64_t>(turn.credit, kPiece);
        if (length_ > 0) want = std::min(want, static_cast<std::uint64_t>(length_ - sent_));
        if (want == 0) return Next::Credit;
        std::string bytes(static_cast<std::size_t>(want), '\0');
        const ssize_t n = pread(fd_.get(), bytes.data(), bytes.size(), offset_ + sent_);
        if (n < 0 && errno == EINTR) return Next::Step;
        if (n < 0) {
            turn.failErrno();
            return Next::Done;
        }
        bytes.resize(static_cast<std::size_t>(n));
        sent_ += n;
        if (n > 0) turn.out.push_back({FrameType::Data, std::move(bytes)});
        if (n == 0 || (length_ > 0 && sent_ >= length_)) return finish(turn);
        return static_cast<std::uint64_t>(n) < turn.credit ? Next::Step : Next::Credit;
    }

private:
    Next begin(FileTurn& turn) {
        if (!path_ || offset_ < 0 || length_ < 0) {
            turn.fail("BAD_PATH", "not a path in the workspace");
            return Next::Done;
        }
        fd_ = turn.workspace.open(*path_, O_RDONLY | O_NONBLOCK | O_NOCTTY);
        struct stat st {};
        if (!fd_ || fstat(fd_.get(), &st) != 0) {
            turn.failErrno();
            return Next::Done;
        }
        if (!S_ISREG(st.st_mode)) {
            if (S_ISDIR(st.st_mode)) {
                turn.fail("IS_A_DIRECTORY", "it is a directory");
            } else {
                turn.fail("NOT_A_FILE", "it is no regular file");
            }
            return Next::Done;
        }
        JsonValue note = JsonValue::object();
        note.set("stat", describe(pathText(*path_), st, true));
        if (!pass_ || !turn.may_pass) {
            turn.note(note);
            return Next::Step;
        }
        note.set("passed", true);
        turn.out.push_back({FrameType::Note, note.dump(), std::move(fd_)});
        return finish(turn);
    }

    Next finish(FileTurn& turn) {
        turn.out.push_back({FrameType::End, {}});
        JsonValue reply = JsonValue::object();
        reply.set("bytes", sent_);
        turn.reply(reply);
        return Next::Done;
    }

    std::optional<std::string> path_;
    std::int64_t offset_;
    std::int64_t length_;
    const bool pass_;
    std::int64_t sent_ = 0;
    Fd fd_;
};

/// `write`: writes a temporary file beside the old one, and renames it over that at End.
class WriteFile final : public FileOperation {
public:
    explicit WriteFile(const JsonValue& body)
        : path_(workspacePath(pathBytes(body["path"].text()))),
          mode_(body["mode"].integer(-1)),
          parents_(body["parents"].boolean(true)),
          pass_(body["pass"].boolean()) {}

    ~WriteFile() override {
        if (fd_ && !done_) unlinkat(parent_.get(), temporary_.c_str(), 0);
    }

    Next step(FileTurn& turn) override {
        if (!fd_ && !begin(turn)) return Next::Done;
        std::string_view rest = turn.input;
        while (!rest.empty()) {
            const ssize_t n = ::write(fd_.get(), rest.data(), rest.size());
            if (n < 0 && errno == EINTR) continue;
            if (n < 0) {
                turn.failErrno();
                return Next::Done;
            }
            rest.remove_prefix(static_cast<std::size_t>(n));
        }
        if (!turn.input.empty()) {
            unsigned char grant[4];
            putU32(grant, static_cast<std::uint32_t>(turn.input.size()));
            turn.out.push_back({FrameType::Credit, std::string(reinterpret_cast<char*>(grant), 4)});
        }
        return turn.input_ended ? finish(turn) : Next::Input;
    }

private:
    static bool refuse(FileTurn& turn, const char* code, const char* message) {
        turn.fail(code, message);
        return false;
    }

    /// Returns false if it has failed, and has said so.
    bool begin(FileTurn& turn) {
        if (!path_ || path_->empty())
            return refuse(turn, "BAD_PATH", "not a path in the workspace");
        name_ = lastName(*path_);
        parent_ = turn.workspace.openParent(*path_, parents_);
        if (!parent_) {
            turn.failErrno();
            return false;
        }
        struct stat old {};
        if (fstatat(parent_.get(), name_.c_str(), &old, AT_SYMLINK_NOFOLLOW) == 0) {
            if (S_ISDIR(old.st_mode)) return refuse(turn, "IS_A_DIRECTORY", "it is a directory");
            if (!S_ISREG(old.st_mode) && !S_ISLNK(old.st_mode)) {
                return refuse(turn, "NOT_A_FILE", "it is no regular file");
            }
            if (mode_ < 0 && S_ISREG(old.st_mode)) mode_ = old.st_mode & 0777U;
        }
        if (mode_ < 0) mode_ = 0644;
        temporary_ = temporaryName();
        fd_ = Fd(openat(parent_.get(), temporary_.c_str(),
                        O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
        if (!fd_) {
            turn.failErrno();
            return false;
        }
        if (pass_) tellWhoWrites(turn);
        return true;
    }

    /// Decides who writes: the client, which shares the file offset, or the agent.
    void tellWhoWrites(FileTurn& turn) {
        Fd copy;
        if (turn.may_pass) copy = Fd(fcntl(fd_.get(), F_DUPFD_CLOEXEC, 0));
        JsonValue note = JsonValue::object();
        note.set("passed", static_cast<bool>(copy));
        turn.out.push_back({FrameType::Note, note.dump(), std::move(copy)});
    }

    Next finish(FileTurn& turn) {
        struct stat st {};
        if (fchmod(fd_.get(), static_cast<mode_t>(mode_ & 0777)) != 0 ||
            renameat(parent_.get(), temporary_.c_str(), parent_.get(), name_.c_str()) != 0) {
            turn.failErrno();
            return Next::Done;
        }
        done_ = true;
        fstat(fd_.get(), &st);
        JsonValue reply = JsonValue::object();
        reply.set("stat", describe(pathText(*path_), st, true));
        turn.reply(reply);
        return Next::Done;
    }

    std::optional<std::string> path_;
    std::int64_t mode_;
    bool parents_;
    const bool pass_;
    bool done_ = false;
    std::string name_;
    std::string temporary_;
    Fd parent_;
    Fd fd_;
};

constexpr std::string_view kOperations[] = {"read",       "write",     "list",   "stat",
                                            "mkdir",      "move",      "remove", "changes",
                                            "archiveGet", "archivePut"};

}  // namespace

void FileTurn::fail(const char* code, const std::string& message) {
    JsonValue body = JsonValue::object();
    body.set("code", code).set("message", message);
    if (*field != '\0') body.set("field", field);
    out.push_back({FrameType::Error, body.dump()});
}

void FileTurn::failErrno() {
    const int error = errno;
    fail(fileErrorCode(error), std::strerror(error));
}

bool FileOperation::isFileOperation(std::string_view op) {
    return std::find(std::begin(kOperations), std::end(kOperations), op) != std::end(kOperations);
}

bool FileOperation::isActivity(std::string_view op) {
    return op == "read" || op == "write" || op == "mkdir" || op == "move" || op == "remove" ||
           op == "archiveGet" || op == "archivePut";
}

std::unique_ptr<FileOperation> FileOperation::make(std::string_view op, const JsonValue& body) {
    if (op == "read") return std::make_unique<ReadFile>(body);
    if (op == "write") return std::make_unique<WriteFile>(body);
    if (op == "archiveGet") return makeArchiveGet(body);
    if (op == "archivePut") return makeArchivePut(body);
    return makeTreeOperation(op, body);
}

}  // namespace hearth::agent
