#include <fcntl.h>
#include <sys/stat.h>

#include <fstream>

#include "base/Error.h"
#include "base/Fd.h"
#include "pool/image/LayerStore.h"
#include "pool/tar/Tar.h"
#include "tests/unit/pool/image/Scratch.h"

using namespace hearth;
using namespace hearth::pool::image;
using tar::TarMember;

namespace {

const std::string kLayer = "sha256:" + std::string(64, 'a');

class Tar {
public:
    explicit Tar(const Scratch& scratch) : path_(scratch / "layer.tar") {}
    Tar& add(TarMember::Type type, const std::string& path, const std::string& text = {},
             unsigned mode = 0644) {
        TarMember member;
        member.type = type;
        member.path = path;
        member.mode = mode;
        if (type == TarMember::Type::File) {
            member.size = text.size();
            bytes_ += tar::tarHeader(member, 1000, 1000) + text;
            bytes_.append(tar::tarPadding(text.size()), '\0');
        } else {
            member.target = text;
            bytes_ += tar::tarHeader(member, 1000, 1000);
        }
        return *this;
    }
    Tar& file(const std::string& path, const std::string& text = "x", unsigned mode = 0600) {
        return add(TarMember::Type::File, path, text, mode);
    }
    Fd open(bool whole = true) {
        std::ofstream(path_, std::ios::binary) << bytes_ << std::string(whole ? 1024 : 0, '\0');
        return Fd(::open(path_.c_str(), O_RDONLY | O_CLOEXEC));
    }

private:
    std::string path_;
    std::string bytes_;
};

/// Returns the reason why the layer was refused; empty if it was not.
std::string layerRefusal(const Scratch& scratch, Tar& tar, const LayerLimits& limits = {}) {
    const std::string folder = scratch / "layers";
    std::filesystem::create_directories(folder);
    try {
        LayerStore(folder).add(kLayer, tar.open().get(), limits);
    } catch (const Error& e) {
        CHECK(e.code() == ErrorCode::InvalidArgument);
        CHECK(std::filesystem::is_empty(folder));
        CHECK_FALSE(std::filesystem::exists(scratch / "out"));
        return e.what();
    }
    return {};
}

}  // namespace

TEST_CASE("a layer appears whole, readable by all and writable by its owner alone",
          "[unit][image]") {
    const Scratch scratch;
    std::filesystem::create_directories(scratch / "layers");
    const LayerStore store(scratch / "layers");
    Tar tar(scratch);
    tar.add(TarMember::Type::Directory, "./", {}, 0700)
        .add(TarMember::Type::Directory, "a", {}, 0777)
        .file("a/b/module.py", "print(1)\n", 06777)
        .file("a/data", "text", 0600)
        .add(TarMember::Type::Symlink, "a/b/link", "../data");
    CHECK_FALSE(store.find(kLayer));
    store.add(kLayer, tar.open().get());
    store.add(kLayer, -1);  // it exists already
    const std::string root = store.require(kLayer);
    CHECK(store.all() == std::vector<std::string>{kLayer});
    CHECK(modeOf(root) == 0755);
    CHECK(modeOf(root + "/a/b") == 0755);
    CHECK(modeOf(root + "/a/b/module.py") == 0755);
    CHECK(modeOf(root + "/a/data") == 0644);
    std::string text;
    std::getline(std::ifstream(root + "/a/b/link"), text);
    CHECK(text == "text");
    store.remove(kLayer);
    store.remove(kLayer);
    CHECK(std::filesystem::is_empty(scratch / "layers"));
}

TEST_CASE("an archive that would leave the layer is refused and leaves nothing", "[unit][image]") {
    const auto refused = [](const std::function<void(Tar&)>& fill) {
        const Scratch scratch;
        Tar tar(scratch);
        fill(tar);
        return layerRefusal(scratch, tar);
    };
    using Type = TarMember::Type;
    CHECK(refused([](Tar& t) { t.file("../out"); }).find("out of the layer") != std::string::npos);
    CHECK(refused([](Tar& t) { t.file("a/../../out"); }) != "");
    CHECK(refused([](Tar& t) { t.file("/tmp/out"); }) != "");
    CHECK(refused([](Tar& t) { t.file("a\nb"); }) != "");
    CHECK(refused([](Tar& t) { t.file("a\xff"); }) != "");
    CHECK(refused([](Tar& t) { t.file("a").file("a"); }).find("already") != std::string::npos);
    CHECK(refused([](Tar& t) { t.file("a").file("a/b"); }).find("already") != std::string::npos);
    CHECK(refused([](Tar& t) { t.file("a").add(Type::Hardlink, "b", "a"); }) != "");
    CHECK(refused([](Tar& t) { t.add(Type::Symlink, "a", "/etc/passwd"); }) != "");
    CHECK(refused([](Tar& t) { t.add(Type::Symlink, "a/b", "../../x"); }) != "");
    CHECK(refused([](Tar& t) { t.add(Type::Symlink, "a", "b/../../x"); }) != "");
    // No link is followed while the layer is made.
    CHECK(refused([](Tar& t) {
              t.add(Type::Directory, "b").add(Type::Symlink, "a", "b").file("a/out");
          }).find("already") != std::string::npos);
}

TEST_CASE("a layer that is too large, or was cut off, is refused and leaves nothing",
          "[unit][image]") {
    const Scratch scratch;
    LayerLimits limits;
    limits.bytes = 10;
    Tar large(scratch);
    large.file("a", "123456").file("b", "123456");
    CHECK(layerRefusal(scratch, large, limits).find("larger") != std::string::npos);
    limits = {};
    limits.entries = 2;
    Tar many(scratch);
    many.file("a").file("b").file("c");
    CHECK(layerRefusal(scratch, many, limits).find("too many") != std::string::npos);
    limits = {};
    limits.depth = 2;
    Tar deep(scratch);
    deep.file("a/b/c/d");
    CHECK(layerRefusal(scratch, deep, limits).find("deep") != std::string::npos);

    Tar cut(scratch);
    cut.file("a", "text");
    const LayerStore store(scratch / "layers");
    CHECK_THROWS_AS(store.add(kLayer, cut.open(false).get()), Error);
    CHECK(store.all().empty());
}

TEST_CASE("a layer left unfinished by a crash does not count and is removed", "[unit][image]") {
    const Scratch scratch;
    write(scratch / ("layers/.unfinished-" + std::string(64, 'a') + "/file"), "x");
    write(scratch / ("layers/.old-" + std::string(64, 'b') + "/file"), "x");
    write(scratch / "layers/.view/kept", "x");
    const LayerStore store(scratch / "layers");
    CHECK(store.all().empty());
    CHECK_THROWS_AS(store.require(kLayer), Error);
    store.removeUnfinished();
    CHECK(std::distance(std::filesystem::directory_iterator(scratch / "layers"), {}) == 1);
}
