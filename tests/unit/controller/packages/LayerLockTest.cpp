#include <catch2/catch.hpp>
#include <fstream>

#include "controller/packages/LayerLock.h"
#include "tests/support/Support.h"

using namespace hearth;
using namespace hearth::controller;
using namespace hearth::test;

namespace {

const std::string kHash = " --hash=sha256:" + std::string(64, '0');

bool refused(const std::string& text) {
    return codeOf([&] { parseLayerLock(text); }) == ErrorCode::InvalidArgument;
}

LayerRecord layerRecord(const std::string& text, std::vector<std::string> specs) {
    LayerRecord out{
        "python", "sha256:" + std::string(64, '1'), std::move(specs), {}, parseLayerLock(text)};
    out.layer = layerDigest(out.image_digest, out.lock);
    return out;
}

}  // namespace

TEST_CASE("a lock is the same in whatever order its lines came", "[unit][controller]") {
    const LayerLock one = parseLayerLock("b==2.0" + kHash + "\na==1.0" + kHash + kHash + "\n");
    const LayerLock other = parseLayerLock("a==1.0" + kHash + kHash + "\n\nb==2.0" + kHash);
    CHECK(one.text == other.text);
    CHECK(one.packages == std::vector<LockedPackage>{{"a", "1.0"}, {"b", "2.0"}});
    CHECK(layerDigest("sha256:x", one) == layerDigest("sha256:x", other));
    CHECK(layerDigest("sha256:x", one) != layerDigest("sha256:y", one));
}

TEST_CASE("a lock holds packages with versions and hashes and nothing else", "[unit][controller]") {
    CHECK_FALSE(refused("a-b.c==1.0+cpu" + kHash));
    for (const char* line :
         {"a", "a>=1", "a==1.*", "a==1,<2", "a[x]==1", "a==1; os_name=='x'",
          "a==", "--index-url http://x", "a @ file:///x", "../a==1", "a==1 -e ."}) {
        CAPTURE(line);
        CHECK(refused(line + kHash));
    }
    CHECK(refused("a==1"));
    CHECK(refused("a==1 --hash=md5:00"));
    CHECK(refused("a==1" + kHash + " -r x"));
    CHECK(refused("a==1" + kHash + "\na==2" + kHash));
    CHECK(refused(""));
}

TEST_CASE("locks are found again by image and packages, whole or not at all",
          "[unit][controller]") {
    TempDir dir;
    const std::string place = dir.file("layers");
    const LayerRecord kept = layerRecord("a==1.0" + kHash, {"a"});
    {
        const LayerLocks locks(place);
        locks.put(kept);
        std::ofstream(place + "/x" + kUnfinishedLock) << "half";
    }
    const LayerLocks locks(place);
    CHECK_FALSE(std::filesystem::exists(place + "/x" + kUnfinishedLock));
    const auto found = locks.find(kept.image_digest, {"a"});
    REQUIRE(found);
    CHECK(found->layer == kept.layer);
    CHECK(found->image == "python");
    CHECK(found->lock.text == kept.lock.text);
    CHECK_FALSE(locks.find(kept.image_digest, {"b"}));
    CHECK_FALSE(locks.find("sha256:other", {"a"}));
    CHECK(locks.all().size() == 1);

    std::ofstream(place + "/" + LayerLocks::nameOf(kept.image_digest, {"a"}), std::ios::app)
        << "c==1.0" + kHash + "\n";
    CHECK_FALSE(locks.find(kept.image_digest, {"a"}));  // its lock is not the layer's any more
    locks.put(kept);
    CHECK(locks.find(kept.image_digest, {"a"}));
    locks.remove(kept);
    CHECK(locks.all().empty());
}
