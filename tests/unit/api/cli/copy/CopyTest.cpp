#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>

#include "api/cli/copy/TarExtract.h"
#include "api/cli/copy/TarSource.h"
#include "api/cli/remote/RemotePath.h"
#include "base/Error.h"

using namespace hearth;
using namespace hearth::cli;
namespace fs = std::filesystem;

namespace {

class Folder {
public:
    Folder() {
        std::string pattern = (fs::temp_directory_path() / "hearth-copy-XXXXXX").string();
        REQUIRE(::mkdtemp(pattern.data()) != nullptr);
        path = pattern;
    }
    ~Folder() { fs::remove_all(path); }
    Folder(const Folder&) = delete;
    Folder& operator=(const Folder&) = delete;
    fs::path path;
};

void write(const fs::path& path, const std::string& text) {
    fs::create_directories(path.parent_path());
    std::ofstream(path) << text;
}

std::string read(const fs::path& path) {
    std::ifstream in(path);
    return {std::istreambuf_iterator<char>(in), {}};
}

std::string archiveOf(const fs::path& path, bool follow, std::map<std::string, std::string>& left) {
    TarSource source(path, follow,
                     [&](const std::string& n, const std::string& w) { left[n] = w; });
    std::string out;
    char piece[1000];
    while (const std::size_t got = source.read(piece, sizeof(piece))) out.append(piece, got);
    return out;
}

struct Unpacking {
    explicit Unpacking(const fs::path& path)
        : top(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)),
          extract(top.get(),
                  [this](const std::string& n, const std::string&) { left.push_back(n); }) {}
    Fd top;
    std::vector<std::string> left;
    TarExtract extract;
};

using Type = tar::TarMember::Type;

/// Returns the header and content of one member, as a hostile sandbox would write them.
std::string member(Type type, const std::string& path, const std::string& content,
                   const std::string& target = "", unsigned mode = 0644) {
    tar::TarMember one{type, path, target, content.size(), mode, 0};
    return tar::tarHeader(one, 0, 0) + content + std::string(tar::tarPadding(content.size()), '\0');
}

const std::string kEnd(1024, '\0');

}  // namespace

TEST_CASE("an argument is a workspace path only in the form WORKSPACE:PATH", "[unit][cli][copy]") {
    const auto path = [](const std::string& word) { return RemotePath::parse(word)->path; };
    CHECK_FALSE(RemotePath::parse("file"));
    CHECK_FALSE(RemotePath::parse("./ws_1:file"));
    CHECK_FALSE(RemotePath::parse("dir/ws_1:file"));
    CHECK_FALSE(RemotePath::parse(":file"));
    CHECK(RemotePath::parse("c:file")->workspace == "c");
    CHECK_FALSE(RemotePath::parse("-:file"));
    CHECK(RemotePath::parse("mine:a/b")->workspace == "mine");
    CHECK(RemotePath::parse("ws_1:a/b")->workspace == "ws_1");
    CHECK(path("ws_1:a/b/") == "a/b");
    CHECK(RemotePath::parse("ws_1:a/b/")->as_dir);
    CHECK(path("ws_1:") == ".");
    CHECK(path("ws_1:./a") == "a");
    CHECK(path("ws_1:/workspace/a") == "a");
    CHECK(path("ws_1:/workspace") == ".");
    CHECK(path("ws_1:/workspaces") == "/workspaces");
    CHECK(RemotePath::parse("ws_1:a b/ü")->fileTarget() ==
          "/v1/workspaces/ws_1/files/a%20b/%C3%BC");
    CHECK(RemotePath::parse("ws_1:")->child("x").path == "x");
}

TEST_CASE("a directory goes through a tar and comes out the same", "[unit][cli][copy]") {
    const Folder from;
    const Folder to;
    write(from.path / "a.txt", "hello");
    write(from.path / "d/empty", "");
    write(from.path / "d/big", std::string(700'001, 'x'));
    fs::permissions(from.path / "a.txt", fs::perms(0755));
    fs::create_symlink("d/big", from.path / "link");
    REQUIRE(::mkfifo((from.path / "pipe").c_str(), 0600) == 0);
    std::map<std::string, std::string> left;
    const std::string archive = archiveOf(from.path, false, left);
    CHECK(left.size() == 1);
    CHECK(left.contains("pipe"));

    Unpacking unpacking(to.path);
    for (std::size_t at = 0; at < archive.size(); at += 777) {
        unpacking.extract.feed(std::string_view(archive).substr(at, 777));
    }
    unpacking.extract.finish();
    CHECK(unpacking.extract.files() == 3);
    CHECK(read(to.path / "a.txt") == "hello");
    CHECK(fs::exists(to.path / "d/empty"));
    CHECK(read(to.path / "d/big") == std::string(700'001, 'x'));
    CHECK(fs::read_symlink(to.path / "link") == "d/big");
    CHECK((fs::status(to.path / "a.txt").permissions() & fs::perms::owner_exec) != fs::perms::none);
}

TEST_CASE("followed links end at a cycle", "[unit][cli][copy]") {
    const Folder from;
    write(from.path / "d/file", "1");
    fs::create_symlink("..", from.path / "d/loop");
    fs::create_symlink("nowhere", from.path / "dead");
    fs::create_symlink("d/file", from.path / "link");
    fs::create_symlink("itself", from.path / "itself");
    std::map<std::string, std::string> left;
    const std::string archive = archiveOf(from.path, true, left);
    CHECK(left.size() == 3);
    CHECK(left["itself"] == "cannot be read: Too many levels of symbolic links");
    const Folder to;
    Unpacking unpacking(to.path);
    unpacking.extract.feed(archive);
    unpacking.extract.finish();
    CHECK(fs::is_regular_file(fs::symlink_status(to.path / "link")));
    CHECK(read(to.path / "link") == "1");
}

TEST_CASE("an archive's names cannot lead out of the destination", "[unit][cli][copy]") {
    const Folder to;
    const fs::path inside = to.path / "inside";
    fs::create_directory(inside);
    write(to.path / "mine", "untouched");
    fs::create_symlink("..", inside / "up");  // existed before
    for (const std::string& name :
         {std::string("../mine"), std::string("a/../../mine"), "/" + (to.path / "mine").string(),
          std::string("up/mine"), std::string("..")}) {
        INFO(name);
        Unpacking unpacking(inside);
        CHECK_THROWS_AS(unpacking.extract.feed(member(Type::File, name, "theirs") + kEnd), Error);
        CHECK(read(to.path / "mine") == "untouched");
    }
    SECTION("a file takes the place of a link instead of going through it") {
        fs::create_symlink("../mine", inside / "x");
        Unpacking unpacking(inside);
        unpacking.extract.feed(member(Type::File, "x", "theirs") + kEnd);
        CHECK(read(to.path / "mine") == "untouched");
        CHECK(read(inside / "x") == "theirs");
    }
    SECTION("nothing goes through a link of the archive's own") {
        Unpacking unpacking(inside);
        unpacking.extract.feed(member(Type::Directory, "d", "") +
                               member(Type::Symlink, "l", "", "d"));
        CHECK_THROWS_AS(unpacking.extract.feed(member(Type::File, "l/x", "1") + kEnd), Error);
        CHECK_FALSE(fs::exists(inside / "d/x"));
    }
    SECTION("a hard link has an end that the archive brought") {
        Unpacking unpacking(inside);
        CHECK_THROWS_AS(unpacking.extract.feed(member(Type::Hardlink, "h", "", "../mine")), Error);
        Unpacking good(inside);
        good.extract.feed(member(Type::File, "f", "1") + member(Type::Hardlink, "h", "", "f") +
                          kEnd);
        CHECK(read(inside / "h") == "1");
    }
    SECTION("one that is cut off leaves no half file") {
        Unpacking unpacking(inside);
        unpacking.extract.feed(member(Type::File, "cut", std::string(2000, 'x')).substr(0, 1500));
        CHECK_THROWS_AS(unpacking.extract.finish(), Error);
        CHECK_FALSE(fs::exists(inside / "cut"));
    }
}

TEST_CASE("links that may lead out of the destination are left out", "[unit][cli][copy]") {
    CHECK(linkStaysInside("a/b", 0));
    CHECK(linkStaysInside("../a", 1));
    CHECK(linkStaysInside(".././/../a", 2));
    CHECK_FALSE(linkStaysInside("", 0));
    CHECK_FALSE(linkStaysInside("/etc", 5));
    CHECK_FALSE(linkStaysInside("../a", 0));
    CHECK_FALSE(linkStaysInside("../../a", 1));
    CHECK_FALSE(linkStaysInside("l/../a", 3));  // l may be a link to a directory elsewhere

    const Folder to;
    Unpacking unpacking(to.path);
    unpacking.extract.feed(member(Type::Symlink, "out", "", "/etc/passwd") +
                           member(Type::Symlink, "d/up", "", "..") +
                           member(Type::Symlink, "two", "", "d/up/..") + kEnd);
    unpacking.extract.finish();
    CHECK(unpacking.left == std::vector<std::string>{"out", "two"});
    CHECK(fs::is_symlink(to.path / "d/up"));
}

TEST_CASE("a hard link points to a file of the archive, not to its replacement",
          "[unit][cli][copy]") {
    const Folder home;
    write(home.path / "secret", "outside");
    const auto unpack = [&](const std::string& archive) {
        fs::remove_all(home.path / "out");
        fs::create_directory(home.path / "out");
        Unpacking unpacking(home.path / "out");
        unpacking.extract.feed(archive + kEnd);
        unpacking.extract.finish();
    };
    // The link is allowed two directories down. At the top it would lead outside.
    const std::string deep = member(Type::File, "d/e/a", "x");
    for (const char* again : {"d/e/a", "d//e/./a"}) {
        for (const char* target : {"d/e/a", "./d/e//a"}) {
            CHECK_THROWS_AS(unpack(deep + member(Type::Symlink, again, "", "../../secret") +
                                   member(Type::Hardlink, "b", "", target)),
                            Error);
            CHECK_FALSE(fs::is_symlink(home.path / "out/b"));
        }
    }
    unpack(deep + member(Type::Hardlink, "b", "", "./d/e/a"));
    CHECK(read(home.path / "out/b") == "x");
    unpack(deep + member(Type::File, "d/e/a", "y") + member(Type::Hardlink, "b", "", "d/e/a"));
    CHECK(read(home.path / "out/b") == "y");

    // A foreign file at a name of the archive.
    fs::remove_all(home.path / "out");
    fs::create_directory(home.path / "out");
    Unpacking unpacking(home.path / "out");
    unpacking.extract.feed(deep + member(Type::File, "f", ""));
    fs::remove(home.path / "out/d/e/a");
    fs::create_symlink("../../../secret", home.path / "out/d/e/a");
    CHECK_THROWS_AS(unpacking.extract.feed(member(Type::Hardlink, "b", "", "d/e/a") + kEnd), Error);
    CHECK(read(home.path / "secret") == "outside");
}

TEST_CASE("set-id bits are not copied", "[unit][cli][copy]") {
    const Folder to;
    Unpacking unpacking(to.path);
    unpacking.extract.feed(member(Type::File, "f", "1", "", 06755) + kEnd);
    struct stat told {};
    REQUIRE(::stat((to.path / "f").c_str(), &told) == 0);
    CHECK((told.st_mode & 07000U) == 0);
}
