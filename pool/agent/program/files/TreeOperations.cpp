#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <ctime>
#include <map>
#include <string>
#include <vector>

#include "pool/agent/program/core/Settings.h"
#include "pool/agent/program/files/FileOperation.h"
#include "pool/agent/program/files/Tree.h"
#include "pool/agent/protocol/Glob.h"
#include "pool/agent/protocol/PathText.h"
#include "pool/agent/protocol/WorkspacePath.h"

namespace hearth::agent {

namespace {

constexpr std::size_t kMaxItems = 1'000;
constexpr std::size_t kMaxListBytes = kMaxPayload - 4'096;

/// Collects the items after `after`, in the order of pathBefore. Names are compared as they are
/// shown (pathText()), so that paging ends even if names are not UTF-8.
class Lister {
public:
    Lister(std::string after, bool recursive, std::size_t limit, Budget& budget)
        : after_(std::move(after)), recursive_(recursive), limit_(limit), budget_(budget) {}

    /// False once the page is full.
    bool walk(Fd fd, const std::string& path, int depth) {
        Directory directory(std::move(fd));
        if (!directory) return true;
        std::map<std::string, std::string> names;  // shown -> real, the smallest that can matter
        // Two more than fit: one shows that there are more, the other is the directory that
        // contains `after`.
        const std::size_t room = limit_ + 2 - items.items().size();
        while (const char* name = directory.next()) {
            if (!budget_.spend()) break;
            if (isTemporary(name)) continue;
            std::string shown = pathText(name);
            if (!after_.empty() && !mayFollow(joined(path, shown))) continue;
            names.emplace(std::move(shown), name);
            if (names.size() > room) names.erase(std::prev(names.end()));
        }
        for (const auto& [shown, real] : names) {
            if (!one(directory.fd(), joined(path, shown), real, depth)) return false;
        }
        return true;
    }

    JsonValue items = JsonValue::array();
    bool more = false;
    std::string last;

private:
    /// True if `path`, or something in it, may come after `after`.
    bool mayFollow(const std::string& path) const {
        if (pathBefore(after_, path)) return true;
        return recursive_ && (path == after_ || (after_.size() > path.size() &&
                                                 after_.compare(0, path.size(), path) == 0 &&
                                                 after_[path.size()] == '/'));
    }

    bool one(int directory, const std::string& path, const std::string& name, int depth) {
        struct stat st {};
        if (fstatat(directory, name.c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0) return true;
        if (after_.empty() || pathBefore(after_, path)) {
            JsonValue item = describe(path, st, false);
            if (S_ISLNK(st.st_mode)) {
                char target[1024];
                const ssize_t n = readlinkat(directory, name.c_str(), target, sizeof(target));
                item.set("target",
                         pathText({target, static_cast<std::size_t>(std::max<ssize_t>(n, 0))}));
            }
            bytes_ += item.dump().size() + 1;
            if (items.items().size() >= limit_ || bytes_ > kMaxListBytes) {
                more = true;
                return false;
            }
            items.push(std::move(item));
            last = path;
        }
        if (!recursive_ || !S_ISDIR(st.st_mode) || depth <= 0) return true;
        return walk(Fd(openat(directory, name.c_str(), kWalkFlags)), path, depth - 1);
    }

    const std::string after_;
    const bool recursive_;
    const std::size_t limit_;
    std::size_t bytes_ = 0;
    Budget& budget_;
};

/// Finds regular files whose inode changed since a time. Tenants cannot set that time, so a file
/// unpacked with an old date counts. Links are not followed.
class ChangeFinder {
public:
    ChangeFinder(std::int64_t since_ns, std::vector<std::string> globs, std::size_t limit,
                 Budget& budget)
        : since_ns_(since_ns), globs_(std::move(globs)), limit_(limit), budget_(budget) {}

    void walk(Fd fd, const std::string& path, int depth) {
        Directory directory(std::move(fd));
        if (!directory) return;
        while (const char* name = directory.next()) {
            more = more || !budget_.spend();
            if (more) return;
            struct stat st {};
            if (fstatat(directory.fd(), name, &st, AT_SYMLINK_NOFOLLOW) != 0) continue;
            if (S_ISDIR(st.st_mode) && !isTemporary(name)) {
                if (depth > 0) {
                    walk(Fd(openat(directory.fd(), name, kWalkFlags)), joined(path, name),
                         depth - 1);
                } else {
                    too_deep = true;
                }
            } else if (S_ISREG(st.st_mode) && changed(st) && !isTemporary(name)) {
                add(joined(path, name), st);
            }
        }
    }

    JsonValue items = JsonValue::array();
    bool more = false;      ///< the walk ended before the tree did
    bool too_deep = false;  ///< a part of the tree was left out

private:
    bool changed(const struct stat& st) const {
        return st.st_ctim.tv_sec * 1'000'000'000LL + st.st_ctim.tv_nsec >= since_ns_;
    }
    void add(const std::string& path, const struct stat& st) {
        if (!globs_.empty() && !anyGlobMatches(globs_, path)) return;
        JsonValue item = describe(pathText(path), st, false);
        bytes_ += item.dump().size() + 1;
        more = items.items().size() >= limit_ || bytes_ > kMaxListBytes;
        if (!more) items.push(std::move(item));
    }

    const std::int64_t since_ns_;
    const std::vector<std::string> globs_;
    const std::size_t limit_;
    std::size_t bytes_ = 0;
    Budget& budget_;
};

/// The operations that answer with one frame, in one step.
class TreeOperation final : public FileOperation {
public:
    TreeOperation(std::string_view op, const JsonValue& body)
        : op_(op), path_(workspacePath(pathBytes(body["path"].text()))), body_(body) {}

    Next step(FileTurn& turn) override {
        if (op_ == "move" || op_ == "changes") {
            if (op_ == "move") {
                move(turn);
            } else {
                changes(turn);
            }
        } else if (!path_) {
            turn.fail("BAD_PATH", "not a path in the workspace");
        } else if (op_ == "list") {
            list(turn);
        } else if (op_ == "stat") {
            stat(turn);
        } else if (op_ == "mkdir") {
            answer(turn, turn.workspace.makeDirectories(*path_));
        } else {
            remove(turn);
        }
        return Next::Done;
    }

private:
    static void answer(FileTurn& turn, bool success) {
        if (success) {
            turn.reply(JsonValue::object());
        } else {
            turn.failErrno();
        }
    }

    std::size_t limit() const {
        return static_cast<std::size_t>(
            std::clamp<std::int64_t>(body_["limit"].integer(kMaxItems), 1, kMaxItems));
    }

    void list(FileTurn& turn) {
        Fd fd = turn.workspace.open(*path_, O_RDONLY | O_DIRECTORY);
        if (!fd) return turn.failErrno();
        Budget budget{turn.cancelled};
        const std::optional<std::string> after = workspacePath(pathBytes(body_["after"].text()));
        if (!after) return turn.fail("BAD_PATH", "after is no path in the workspace");
        Lister lister(pathText(*after), body_["recursive"].boolean(), limit(), budget);
        lister.walk(std::move(fd), pathText(*path_), kMaxDepth);
        JsonValue reply = JsonValue::object();
        reply.set("items", std::move(lister.items));
        if (lister.more) reply.set("next", lister.last);
        turn.reply(reply);
    }

    void stat(FileTurn& turn) {
        const Fd fd = turn.workspace.open(*path_, O_PATH | O_NOFOLLOW);
        struct stat st {};
        if (!fd || fstatat(fd.get(), "", &st, AT_EMPTY_PATH) != 0) return turn.failErrno();
        JsonValue reply = JsonValue::object();
        reply.set("stat", describe(pathText(*path_), st, true));
        turn.reply(reply);
    }

    void move(FileTurn& turn) {
        const std::optional<std::string> from = workspacePath(pathBytes(body_["from"].text()));
        const std::optional<std::string> to = workspacePath(pathBytes(body_["to"].text()));
        if (!from || from->empty()) return turn.fail("BAD_PATH", "not a path in the workspace");
        const Fd source = turn.workspace.openParent(*from, false);
        if (!source) return turn.failErrno();
        struct stat st {};
        if (fstatat(source.get(), lastName(*from).c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0) {
            return turn.failErrno();  // nothing is made for a missing source
        }
        turn.field = "to";
        if (!to || to->empty()) return turn.fail("BAD_PATH", "not a path in the workspace");
        const Fd target = turn.workspace.openParent(*to, true);
        if (!target) return turn.failErrno();
        const unsigned flags = body_["replace"].boolean() ? 0U : RENAME_NOREPLACE;
        answer(turn, syscall(SYS_renameat2, source.get(), lastName(*from).c_str(), target.get(),
                             lastName(*to).c_str(), flags) == 0);
    }

    void remove(FileTurn& turn) {
        if (path_->empty()) return turn.fail("BAD_PATH", "the workspace itself stays");
        const Fd parent = turn.workspace.openParent(*path_, false);
        if (!parent) return turn.failErrno();
        const std::string name = lastName(*path_);
        Budget budget{turn.cancelled, INT_MAX};
        answer(turn, removeTree(parent.get(), name.c_str(),
                                body_["recursive"].boolean() ? kMaxDepth : 0, budget));
    }

    void changes(FileTurn& turn) {
        // Files carry wall-clock times of the last tick; a file may look 10 ms older than it is.
        timespec wall{};
        clock_gettime(CLOCK_REALTIME, &wall);
        const std::int64_t skew = wall.tv_sec * 1'000'000'000LL + wall.tv_nsec - nowNs();
        const std::int64_t since =
            std::clamp<std::int64_t>(body_["sinceNs"].integer(), 0, INT64_MAX / 2) + skew -
            10'000'000;
        Budget budget{turn.cancelled};
        std::vector<std::string> globs;
        for (const JsonValue& glob : body_["globs"].items()) globs.emplace_back(glob.text());
        ChangeFinder finder(since, std::move(globs), limit(), budget);
        Fd root = turn.workspace.open("", O_RDONLY | O_DIRECTORY);
        if (!root) return turn.failErrno();
        finder.walk(std::move(root), "", kMaxDepth);
        JsonValue reply = JsonValue::object();
        reply.set("items", std::move(finder.items));
        if (finder.more || finder.too_deep) reply.set("more", true);
        turn.reply(reply);
    }

    const std::string op_;
    const std::optional<std::string> path_;
    const JsonValue body_;
};

}  // namespace

std::unique_ptr<FileOperation> makeTreeOperation(std::string_view op, const JsonValue& body) {
    return std::make_unique<TreeOperation>(op, body);
}

}  // namespace hearth::agent
